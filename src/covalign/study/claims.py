"""The paper's sentences as measured verdicts. Each check reads the store and answers (measured, verdict)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign._core.linalg import Array
from covalign.study.profiles import SIMULATED, Profile
from covalign.study.results_store import Store
from covalign.study.subsets import means, rows
from covalign.study.theory import LAMS

HOLDS, IN_PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "not measured"
ROUNDING = 1e-8
UNPAIRED = ("PCA", "MOFA", "PLS", "SPCA (Bair)", "SPCA (Barshan)")


class Answer(NamedTuple):
    """What was found, in a sentence with numbers, and what follows from it."""

    measured: str
    verdict: str


class Claim(NamedTuple):
    """A statement, where the paper makes it, and how it is checked."""

    name: str
    statement: str
    where: str
    check: Callable[[Store, Profile], Answer]


def verdict(parts: list[bool]) -> str:
    """All, some or none of the parts."""
    return HOLDS if all(parts) else IN_PART if any(parts) else FAILS


def spread(values: pd.Series) -> str:
    """Mean and standard deviation."""
    return f"{values.mean():.3f} ± {values.std():.3f}" if len(values) > 1 else f"{values.mean():.3f}"


def answered(claim: Claim, store: Store, profile: Profile) -> Answer:
    """The answer, or that there is nothing in the store to answer from."""
    try:
        return claim.check(store, profile)
    except LookupError:
        return Answer("no results in the store", UNKNOWN)


# -- theorems ---------------------------------------------------------------------------------------------------------


def worst(store: Store, profile: Profile, *names: str) -> tuple[dict[str, float], int]:
    """Largest violation of each statement over all covariances, and their number."""
    frame = rows(store, "theorems", profile)
    found = frame.groupby("metric")["value"].max()
    return {name: float(found[name]) for name in names}, int((frame["covariances"].iloc[0]) * frame["rep"].nunique())


def ordering(store: Store, profile: Profile) -> Answer:
    found, count = worst(store, profile, "ordering, per covariate", "ordering, in total")
    text = ", ".join(f"{name.split(', ')[1]} {-value:+.0e}" for name, value in found.items())
    text = f"smallest step up along the order, over {count} random covariances and 21 lambdas: {text}"
    return Answer(text, verdict([value < ROUNDING for value in found.values()]))


def couplings(store: Store, profile: Profile) -> Answer:
    found, count = worst(store, profile, "coupling of T_0 over T_1", "coupling of T_0 over T_ex")
    text = ", ".join(f"{name.split()[-1]} {-value:+.0e}" for name, value in found.items())
    text = f"smallest excess over T_0's coupling, {count} random covariances: {text}"
    return Answer(text, verdict([value < ROUNDING for value in found.values()]))


def equal_iff_diagonal(store: Store, profile: Profile) -> Answer:
    found, count = worst(store, profile, "spread where M is diagonal", "not all equal elsewhere")
    same, differ = found.values()
    text = f"alignments differ by at most {same:.0e} where M is diagonal; "
    text += f"elsewhere T_1 gains at least {-differ:.1e} on T_0"
    return Answer(f"{text} ({count} covariances)", verdict([same < ROUNDING, differ < 0]))


def invariance(store: Store, profile: Profile) -> Answer:
    found, count = worst(store, profile, "change under Z -> AZ")
    (value,) = found.values()
    return Answer(
        f"largest change {value:.0e}, relative to the condition of A ({count} covariances)", verdict([value < ROUNDING])
    )


# -- pretrained representations ---------------------------------------------------------------------------------------


def pretrained(store: Store, profile: Profile) -> Answer:
    frame, parts, text = rows(store, "embedding", profile), [], []
    for name, one in frame.groupby("embedding"):
        for label in ("in sample", "held out"):
            a, c = (means(one, f"{metric}, {label}", ["method"]) for metric in ("alignment", "coupling"))
            best, rotated = a["max-correlation dimensions"], a["Procrustes"]
            for route in ("Procrustes", "ridge"):
                T = [f"{route}, then {T}" for T in ("T_0", "T_0.5", "T_1")]
                parts += [bool((a[T] > max(best, rotated)).all()), bool(c[f"{route}, then T_1"] < c["Procrustes"])]
            text.append(
                f"{name}, {label}: max-corr {best:.2f}, Procrustes {rotated:.2f} (coupling {c['Procrustes']:.1f}), "
                f"then T_0 {a['Procrustes, then T_0']:.2f}, T_1 {a['Procrustes, then T_1']:.2f} "
                f"({c['Procrustes, then T_1']:.1f}); ridge then "
                f"T_0 {a['ridge, then T_0']:.2f}, T_1 {a['ridge, then T_1']:.2f} ({c['ridge, then T_1']:.1f})"
            )
    return Answer(". ".join(text), verdict(parts))


# -- simulations ------------------------------------------------------------------------------------------------------


def consistent(store: Store, profile: Profile) -> Answer:
    frame = rows(store, "consistency", profile)
    error, cosine = (means(frame, metric, ["n"]) for metric in ("beta error", "cosine"))
    slope = np.polyfit(np.log(error.index), np.log(error), 1)[0] if len(error) > 1 else np.nan
    text = f"squared error of beta falls as N^{slope:.2f}; cosine with the truth {cosine.iloc[0]:.3f} "
    text += f"at N = {cosine.index[0]}, "
    return Answer(
        text + f"{cosine.iloc[-1]:.3f} at N = {cosine.index[-1]}",
        verdict([slope < -0.8, cosine.is_monotonic_increasing]),
    )


def mean_beta(store: Store, profile: Profile) -> Answer:
    frame = rows(store, "methods", profile)
    frame = frame[(frame["method"] == "iFA (no T)") & (frame["metric"] == "alignment") & np.isclose(frame["alpha"], 1)]
    parts, text = [], []
    for b, expected in ((1.0, 0.6), (2 / 3, 0.4)):
        at = frame[np.isclose(frame["b"], b, atol=1e-3)]
        if set(at["scenario"]) != set(SIMULATED):
            raise LookupError("iFA")
        found = [f"{name} {spread(at.loc[at['scenario'] == name, 'value'])}" for name in SIMULATED]
        parts += [abs(at.loc[at["scenario"] == name, "value"].mean() - expected) < 0.03 for name in SIMULATED]
        text.append(f"b = {b:.2g} (expected {expected}): {', '.join(found)}")
    return Answer("; ".join(text), verdict(parts))


def lams_of(frame: pd.DataFrame) -> list[tuple[float, str]]:
    """(lambda, method) of the iFA family, rising."""
    names = {name for name in frame["method"] if name.startswith("iFA (lam=")}
    if not names:
        raise LookupError("iFA")
    return sorted((float(name[len("iFA (lam=") : -1]), name) for name in names)


def traces(store: Store, profile: Profile) -> Answer:
    """Both metrics rise with lambda, in every setting; and how far the sample is from the population's frontier."""
    frame, away, parts = rows(store, "methods", profile), [], []
    population = rows(store, "population", profile)
    family = [name for _, name in lams_of(frame)]
    for (scenario, alpha, b), one in frame.groupby(["scenario", "alpha", "b"]):
        a, c = (means(one, metric, ["method"])[family] for metric in ("alignment", "coupling"))
        if alpha > 0:
            parts += [bool(a.is_monotonic_increasing), bool(c.is_monotonic_increasing)]
        truth = population[
            (population["scenario"] == scenario)
            & np.isclose(population["alpha"], alpha)
            & np.isclose(population["b"], b, atol=1e-4)
        ]
        expected = means(truth, "alignment", ["method"])
        away += [abs(a[name] - expected[f"T_{lam:g}"]) for lam, name in lams_of(one) if f"T_{lam:g}" in expected]
    text = f"alignment and coupling rise with lambda in {sum(parts)} of {len(parts)} checks (alpha > 0); "
    return Answer(
        text + f"mean alignment is {np.mean(away):.3f} from the population's on average, {max(away):.3f} at most",
        verdict(parts),
    )


def gain_grows(store: Store, profile: Profile) -> Answer:
    frame = rows(store, "methods", profile)
    frame, family = frame[np.isclose(frame["b"], 1)], lams_of(frame)
    parts, text = [], []
    for scenario in SIMULATED:
        a = means(frame[frame["scenario"] == scenario], "alignment", ["alpha", "method"]).unstack()
        gain = a[family[-1][1]] - a[family[0][1]]
        parts.append(bool(gain.is_monotonic_increasing))
        text.append(f"{scenario} " + " ".join(f"{value:.3f}" for value in gain))
    return Answer(
        f"T_1 minus T_0 at alpha = {', '.join(f'{a:g}' for a in gain.index)}: {'; '.join(text)}", verdict(parts)
    )


def variance_kept(store: Store, profile: Profile) -> Answer:
    frame = rows(store, "methods", profile)
    family = [name for _, name in lams_of(frame)]
    total = means(frame, "total variance", ["scenario", "alpha", "b", "method"]).unstack()[family]
    # T_1 of scenario N at alpha = 1 is singular: its P informed factors span one direction less.
    drop = total[family[0]] - total.min(axis=1)
    where = drop.idxmax()
    text = f"joint share of X explained at lambda = 0: {total[family[0]].mean():.3f}; "
    text += f"largest drop along lambda {drop.max():.4f} "
    return Answer(
        text + f"(scenario {where[0]}, alpha = {where[1]:g}, b = {where[2]:.2g}), median {drop.median():.5f}",
        verdict([bool(drop.max() < 0.01), bool(drop.median() < 0.01)]),
    )


def front(frame: Any) -> tuple[Array, Array]:
    """(coupling, alignment) of the iFA family, by rising lambda."""
    family = [name for _, name in lams_of(frame)]
    x, y = (means(frame, metric, ["method"])[family].to_numpy() for metric in ("coupling", "alignment"))
    return x, y


def unpaired_fall_behind(store: Store, profile: Profile) -> Answer:
    """Alignment below the front at the same coupling, in the settings of panel D."""
    below: dict[str, list[bool]] = {}
    gaps: dict[str, list[float]] = {}
    frame = rows(store, "methods", profile)
    for scenario in SIMULATED:
        for alpha, b in profile.panels(scenario):
            one = frame[
                (frame["scenario"] == scenario)
                & np.isclose(frame["alpha"], alpha)
                & np.isclose(frame["b"], b, atol=1e-3)
            ]
            x, y = front(one)
            for name in (*UNPAIRED, "iVAE"):
                if name in set(one["method"]):
                    at = one[one["method"] == name]
                    gap = (
                        np.interp(means(at, "coupling", ["method"]).iloc[0], x, y)
                        - means(at, "alignment", ["method"]).iloc[0]
                    )
                    below.setdefault(name, []).append(bool(gap > 0))
                    gaps.setdefault(name, []).append(float(gap))
    text = ", ".join(
        f"{name} {np.mean(gaps[name]):.2f} below on average ({sum(below[name])} of {len(below[name])} settings)"
        for name in gaps
    )
    return Answer(f"at equal coupling: {text}", verdict([all(below[name]) for name in below if name in UNPAIRED]))


def sofa_collapses(store: Store, profile: Profile) -> Answer:
    frame = rows(store, "methods", profile)
    names = sorted(
        {name for name in frame["method"] if name.startswith("SOFA")},
        key=lambda name: float(name[len("SOFA (sf=") : -1]),
    )
    if len(names) < 2:
        raise LookupError("SOFA")
    parts, text = [], []
    for scenario in SIMULATED:
        one = frame[(frame["scenario"] == scenario) & np.isclose(frame["alpha"], 1) & np.isclose(frame["b"], 1)]
        if names[0] not in set(one["method"]):
            continue
        a, c = (means(one, metric, ["method"]) for metric in ("alignment", "coupling"))
        a, c = a[[*(n for n in names if n in a), "Y as factors"]], c[[*(n for n in names if n in c), "Y as factors"]]
        parts += [bool(a.iloc[-2] > a.iloc[0]), bool(abs(c.iloc[-2] - c.iloc[-1]) < abs(c.iloc[0] - c.iloc[-1]))]
        text.append(
            f"{scenario}: alignment {a.iloc[0]:.2f} → {a.iloc[-2]:.2f}, "
            f"coupling {c.iloc[0]:.2f} → {c.iloc[-2]:.2f} (Y itself 1, {c.iloc[-1]:.2f})"
        )
    runs = frame.loc[frame["method"] == names[-1], "rep"].nunique()
    return Answer(f"sf {names[0][9:-1]} → {names[-1][9:-1]}, {runs} repetitions: " + "; ".join(text), verdict(parts))


def faster(store: Store, profile: Profile) -> Answer:
    frame = rows(store, "runtime", profile)
    t = frame[frame["metric"] == "seconds"].groupby("method")["value"].median()
    further = t["iFA, a further lambda"] / t["iFA"]
    text, parts = (
        [f"iFA {t['iFA']:.3f} s, a further lambda {t['iFA, a further lambda']:.4f} s ({further:.2f} of it)"],
        [bool(further < 0.25)],
    )
    for name, label in (("SOFA (sf=0.1)", "SOFA"), ("MOFA", "MOFA")):
        if name in t:
            text.append(f"{label} {t[name]:.2f} s ({t[name] / t['iFA']:.0f} times)")
            parts += [bool(t[name] > t["iFA"])] if label == "SOFA" else []
    if "SOFA (sf=0.1)" not in t:
        raise LookupError("SOFA")
    return Answer("; ".join(text), verdict(parts))


# -- breast cancer, populations ---------------------------------------------------------------------------------------


def informed_variance_rises(store: Store, profile: Profile) -> Answer:
    frame = rows(store, "tcga", profile)
    family = [name for _, name in lams_of(frame)]
    share = frame[(frame["metric"] == "variance") & frame["method"].isin(family)].pivot_table(
        index=["rep", "fold"], columns="method", values="value"
    )[family]
    rises = float((share[family[-1]] > share[family[0]]).mean())
    text = ", ".join(f"lambda = {name[9:-1]}: {spread(share[name])}" for name in family)
    return Answer(
        f"{text}; rises in {rises:.0%} of {len(share)} fits",
        verdict([bool(share.mean().is_monotonic_increasing), rises > 0.95]),
    )


def population_scores(store: Store, profile: Profile) -> Answer:
    """D, C, I, SAP and nSAP at b = alpha = 1, every lambda."""
    frame = rows(store, "population", profile)
    frame = frame[np.isclose(frame["alpha"], 1) & np.isclose(frame["b"], 1)]
    parts, text = [], []
    for scenario in SIMULATED:
        one = frame[frame["scenario"] == scenario].pivot(index="method", columns="metric", values="value").astype(float)
        along = one.loc[[f"T_{lam:g}" for lam in LAMS]]
        D, C, inform, S, n = (
            along[name] for name in ("disentanglement", "completeness", "informativeness", "sap", "nsap")
        )
        checks = {
            "D and C rise": bool((np.diff(D) > -1e-9).all() and (np.diff(C) > -1e-9).all()),
            "to 1": bool(min(D.iloc[-1], C.iloc[-1]) > 1 - 1e-6),
            "I constant": bool(np.ptp(inform) < 1e-9),
            "nSAP falls": bool((np.diff(n) < 1e-9).all()),
            "SAP highest at lambda <= .5": bool(LAMS[int(np.argmax(S))] <= 0.5),
        }
        if "T_ex" in one.index:
            checks["T_ex: nSAP 1, lowest SAP"] = bool(
                one.loc["T_ex", "nsap"] > 1 - 1e-9 and one.loc["T_ex", "sap"] < S.min()
            )
        parts += list(checks.values())
        failing = [name for name, good in checks.items() if not good]
        detail = f"D {D.iloc[0]:.2f} → {D.iloc[-1]:.2f}, I {inform.iloc[-1]:.3f}, "
        detail += f"SAP highest at lambda = {LAMS[int(np.argmax(S))]:g}"
        text.append(f"{scenario}: {detail}" + (f"; fails: {', '.join(failing)}" if failing else ""))
    return Answer(". ".join(text), verdict(parts))


CLAIMS = [
    Claim(
        "C1",
        "Alignment rises in the order T_ex, T_0, T_lambda (with lambda), T_1, per covariate and in total.",
        "Theorem 1",
        ordering,
    ),
    Claim("C2", "T_0 is the least coupled: coupling(T_0) ≤ coupling(T_1), coupling(T_ex).", "Theorem 1", couplings),
    Claim("C3", "All regimes are equal if and only if M is diagonal.", "Theorem 1", equal_iff_diagonal),
    Claim(
        "C4",
        "The transformed latents do not change when Z is replaced by AZ.",
        "supplement, identifiability",
        invariance,
    ),
    Claim(
        "C5",
        "Pretrained representations: T beats the max-correlation dimensions and plain Procrustes; "
        "T_1 stays less coupled than Procrustes.",
        "Results, post hoc; fig. 2",
        pretrained,
    ),
    Claim(
        "C6",
        "Estimated beta and informed factors converge to the truth as N grows.",
        "Results, iFA; consistency figure",
        consistent,
    ),
    Claim(
        "C7",
        "iFA before realigning has mean alignment near mean beta: .6 at b = 1, .4 at b = 2/3.",
        "Results, iFA; fig. 3",
        mean_beta,
    ),
    Claim(
        "C8",
        "The iFA_lambda family traces the frontier: alignment and coupling grow with lambda.",
        "Results, iFA; fig. 3",
        traces,
    ),
    Claim("C9", "The gain of T_1 over T_0 grows with alpha.", "Results, iFA; metric sweeps A", gain_grows),
    Claim("C10", "Total variance explained does not drop along lambda.", "Results, iFA", variance_kept),
    Claim(
        "C11",
        "Breast cancer: the variance an informed factor explains rises from T_0 to T_1.",
        "Results, iFA; fig. 5",
        informed_variance_rises,
    ),
    Claim(
        "C12",
        "Population D and C rise with lambda to 1 at T_1, nSAP falls, SAP is highest at small lambda, "
        "T_ex has nSAP 1 and the lowest SAP, I does not depend on the regime.",
        "Results, disentanglement; fig. 4",
        population_scores,
    ),
    Claim(
        "C13",
        "Unpaired baselines (PCA, MOFA, PLS, SPCA) sit at low coupling and low alignment, below the iFA front.",
        "Results, competing methods",
        unpaired_fall_behind,
    ),
    Claim(
        "C14", "SOFA goes to Y-as-factors as its scaling factor grows.", "Results, competing methods", sofa_collapses
    ),
    Claim(
        "C15",
        "iFA is faster than SOFA, and a further lambda costs next to nothing.",
        "Results, competing methods; runtime figure",
        faster,
    ),
]


def table(store: Store, profile: Profile) -> pd.DataFrame:
    """One row for each claim: claim, statement, where, measured, verdict."""
    answers = [(claim, answered(claim, store, profile)) for claim in CLAIMS]
    return pd.DataFrame(
        [(c.name, c.statement, c.where, a.measured, a.verdict) for c, a in answers],
        columns=["claim", "statement", "where", "measured", "verdict"],
    )
