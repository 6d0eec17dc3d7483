"""The claims of the paper, each checked against the results in the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign.study.contenders import members
from covalign.study.profiles import SIMULATED, Profile
from covalign.study.results_store import Store, at_setting, means, rows
from covalign.study.theory import LAMS

HOLDS, IN_PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "not measured"
ROUNDING = 1e-8
UNPAIRED = ("PCA", "MOFA", "PLS", "SPCA (Bair)", "SPCA (Barshan)")


class Answer(NamedTuple):
    """A sentence with the measured numbers, and the verdict that follows."""

    measured: str
    verdict: str


Check = Callable[[Store, Profile], Answer]
Found = tuple[str, list[bool]]  # the sentence, and whether each part of the statement holds


class Claim(NamedTuple):
    """A statement, its place in the paper, and the function that checks it."""

    name: str
    statement: str
    where: str
    check: Check


CLAIMS: list[Claim] = []


def claim(name: str, where: str, *experiments: str) -> Callable[[Callable[..., Found]], Check]:
    """Add a function of the rows of experiments to the claims. Its docstring is the statement."""

    def added(check: Callable[..., Found]) -> Check:
        def answer(store: Store, profile: Profile) -> Answer:
            measured, parts = check(*(rows(store, experiment, profile) for experiment in experiments))
            return Answer(measured, HOLDS if all(parts) else IN_PART if any(parts) else FAILS)

        CLAIMS.append(Claim(name, " ".join((check.__doc__ or "").split()), where, answer))
        return answer

    return added


def spread(values: pd.Series) -> str:
    """Mean and standard deviation."""
    return f"{values.mean():.3f} ± {values.std():.3f}" if len(values) > 1 else f"{values.mean():.3f}"


# -- theorems ---------------------------------------------------------------------------------------------------------


def worst(frame: Any, *names: str) -> tuple[list[float], int]:
    """The largest violation of each statement over all covariances, and the number of covariances."""
    found = frame.groupby("metric")["value"].max()
    return [float(found[name]) for name in names], int((frame["covariances"].iloc[0]) * frame["rep"].nunique())


@claim("C1", "Theorem 1", "theorems")
def ordering(frame: Any) -> Found:
    """Alignment rises in the order T_ex, T_0, T_lambda (with lambda), T_1, per covariate and in total."""
    found, count = worst(frame, "ordering, per covariate", "ordering, in total")
    text = f"per covariate {-found[0]:+.0e}, in total {-found[1]:+.0e}"
    text = f"smallest step up along the order, over {count} random covariances and 21 lambdas: {text}"
    return text, [value < ROUNDING for value in found]


@claim("C2", "Theorem 1", "theorems")
def couplings(frame: Any) -> Found:
    """T_0 is the least coupled: coupling(T_0) ≤ coupling(T_1), coupling(T_ex)."""
    found, count = worst(frame, "coupling of T_0 over T_1", "coupling of T_0 over T_ex")
    text = f"T_1 {-found[0]:+.0e}, T_ex {-found[1]:+.0e}"
    text = f"smallest excess over T_0's coupling, {count} random covariances: {text}"
    return text, [value < ROUNDING for value in found]


@claim("C3", "Theorem 1", "theorems")
def equal_iff_diagonal(frame: Any) -> Found:
    """All regimes are equal if and only if M is diagonal."""
    (same, differ), count = worst(frame, "spread where M is diagonal", "not all equal elsewhere")
    text = f"alignments differ by at most {same:.0e} where M is diagonal; "
    text += f"elsewhere T_1 gains at least {-differ:.1e} on T_0"
    return f"{text} ({count} covariances)", [same < ROUNDING, differ < 0]


@claim("C4", "supplement, identifiability", "theorems")
def invariance(frame: Any) -> Found:
    """The transformed latents do not change when Z is replaced by AZ."""
    (value,), count = worst(frame, "change under Z -> AZ")
    text = f"largest change {value:.0e}, relative to the condition of A ({count} covariances)"
    return text, [value < ROUNDING]


# -- pretrained representations ---------------------------------------------------------------------------------------


@claim("C5", "Results, post hoc; fig. 2", "embedding")
def pretrained(frame: Any) -> Found:
    """Pretrained representations: T beats the max-correlation dimensions and plain Procrustes; T_1 stays less coupled
    than Procrustes.
    """
    parts, text = [], []
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
    return ". ".join(text), parts


# -- simulations ------------------------------------------------------------------------------------------------------


@claim("C6", "Results, iFA; consistency figure", "consistency")
def consistent(frame: Any) -> Found:
    """Estimated beta and informed factors converge to the truth as N grows."""
    error, cosine = (means(frame, metric, ["n"]) for metric in ("beta error", "cosine"))
    slope = np.polyfit(np.log(error.index), np.log(error), 1)[0] if len(error) > 1 else np.nan
    text = f"squared error of beta falls as N^{slope:.2f}; cosine with the truth {cosine.iloc[0]:.3f} "
    text += f"at N = {cosine.index[0]}, {cosine.iloc[-1]:.3f} at N = {cosine.index[-1]}"
    return text, [slope < -0.8, cosine.is_monotonic_increasing]


@claim("C7", "Results, iFA; fig. 3", "methods")
def mean_beta(frame: Any) -> Found:
    """iFA before realigning has mean alignment near mean beta: .6 at b = 1, .4 at b = 2/3."""
    frame = frame[(frame["method"] == "iFA (no T)") & (frame["metric"] == "alignment")]
    parts, text = [], []
    for b, expected in ((1.0, 0.6), (2 / 3, 0.4)):
        at = {name: at_setting(frame, name, 1.0, b)["value"] for name in SIMULATED}
        if any(values.empty for values in at.values()):
            raise LookupError("iFA")
        parts += [abs(values.mean() - expected) < 0.03 for values in at.values()]
        found = ", ".join(f"{name} {spread(values)}" for name, values in at.items())
        text.append(f"b = {b:.2g} (expected {expected}): {found}")
    return "; ".join(text), parts


def along(frame: pd.DataFrame, kind: str = "iFA") -> list[str]:
    """The methods of a family by rising parameter; LookupError if there are none."""
    found = [name for _, name in members(frame["method"], kind)]
    if not found:
        raise LookupError(kind)
    return found


@claim("C8", "Results, iFA; fig. 3", "methods", "population")
def traces(frame: Any, population: Any) -> Found:
    """The iFA_lambda family traces the frontier: alignment and coupling grow with lambda."""
    # Both metrics rise with lambda in every setting; and the distance of samples from the population's frontier.
    away, parts, names = [], [], along(frame)
    for (scenario, alpha, b), one in frame.groupby(["scenario", "alpha", "b"]):
        a, c = (means(one, metric, ["method"])[names] for metric in ("alignment", "coupling"))
        if alpha > 0:
            parts += [bool(a.is_monotonic_increasing), bool(c.is_monotonic_increasing)]
        expected = means(at_setting(population, scenario, alpha, b), "alignment", ["method"])
        there = [(name, f"T_{lam:g}") for lam, name in members(one["method"], "iFA") if f"T_{lam:g}" in expected]
        away += [abs(a[name] - expected[T]) for name, T in there]
    text = f"alignment and coupling rise with lambda in {sum(parts)} of {len(parts)} checks (alpha > 0); "
    text += f"mean alignment is {np.mean(away):.3f} from the population's on average, {max(away):.3f} at most"
    return text, parts


@claim("C9", "Results, iFA; metric sweeps A", "methods")
def gain_grows(frame: Any) -> Found:
    """The gain of T_1 over T_0 grows with alpha."""
    frame, names = frame[np.isclose(frame["b"], 1)], along(frame)
    parts, text = [], []
    for scenario in SIMULATED:
        a = means(frame[frame["scenario"] == scenario], "alignment", ["alpha", "method"]).unstack()
        gain = a[names[-1]] - a[names[0]]
        parts.append(bool(gain.is_monotonic_increasing))
        text.append(f"{scenario} " + " ".join(f"{value:.3f}" for value in gain))
    alphas = ", ".join(f"{alpha:g}" for alpha in gain.index)
    return f"T_1 minus T_0 at alpha = {alphas}: {'; '.join(text)}", parts


@claim("C10", "Results, iFA", "methods")
def variance_kept(frame: Any) -> Found:
    """Total variance explained does not drop along lambda."""
    family = along(frame)
    total = means(frame, "total variance", ["scenario", "alpha", "b", "method"]).unstack()[family]
    # T_1 of scenario N at alpha = 1 is singular: its P informed factors span one direction less.
    drop = total[family[0]] - total.min(axis=1)
    where = drop.idxmax()
    text = f"joint share of X explained at lambda = 0: {total[family[0]].mean():.3f}; "
    text += f"largest drop along lambda {drop.max():.4f} "
    text += f"(scenario {where[0]}, alpha = {where[1]:g}, b = {where[2]:.2g}), median {drop.median():.5f}"
    return text, [bool(drop.max() < 0.01), bool(drop.median() < 0.01)]


# -- breast cancer, populations ---------------------------------------------------------------------------------------


@claim("C11", "Results, iFA; fig. 5", "tcga")
def informed_variance_rises(frame: Any) -> Found:
    """Breast cancer: the variance an informed factor explains rises from T_0 to T_1."""
    family = along(frame)
    share = frame[(frame["metric"] == "variance") & frame["method"].isin(family)].pivot_table(
        index=["rep", "fold"], columns="method", values="value"
    )[family]
    rises = float((share[family[-1]] > share[family[0]]).mean())
    text = ", ".join(f"lambda = {name[9:-1]}: {spread(share[name])}" for name in family)
    text += f"; rises in {rises:.0%} of {len(share)} fits"
    return text, [bool(share.mean().is_monotonic_increasing), rises > 0.95]


@claim("C12", "Results, disentanglement; fig. 4", "population")
def population_scores(frame: Any) -> Found:
    """Population D and C rise with lambda to 1 at T_1, nSAP falls, SAP is highest at small lambda, T_ex has nSAP 1 and
    the lowest SAP, I does not depend on the regime.
    """
    # D, C, I, SAP and nSAP at b = alpha = 1, every lambda.
    frame = frame[np.isclose(frame["alpha"], 1) & np.isclose(frame["b"], 1)]
    parts, text = [], []
    for scenario in SIMULATED:
        one = frame[frame["scenario"] == scenario].pivot(index="method", columns="metric", values="value").astype(float)
        scores = ["disentanglement", "completeness", "informativeness", "sap", "nsap"]
        D, C, inform, S, n = (one.loc[[f"T_{lam:g}" for lam in LAMS], name] for name in scores)
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
    return ". ".join(text), parts


# -- competing methods ------------------------------------------------------------------------------------------------


@claim("C13", "Results, competing methods", "methods")
def unpaired_fall_behind(frame: Any) -> Found:
    """Unpaired baselines (PCA, MOFA, PLS, SPCA) sit at low coupling and low alignment, below the iFA front."""
    # Alignment below the front of iFA at the same coupling, in the settings of panel D.
    gaps: dict[str, list[float]] = {}
    for scenario in SIMULATED:
        for alpha, b in Profile.panels(scenario):
            one = at_setting(frame, scenario, alpha, b)
            c, a = (means(one, metric, ["method"]) for metric in ("coupling", "alignment"))
            front = along(one)
            for name in (*UNPAIRED, "iVAE"):
                if name in a:
                    gaps.setdefault(name, []).append(float(np.interp(c[name], c[front], a[front]) - a[name]))
    below = {name: [gap > 0 for gap in found] for name, found in gaps.items()}
    text = ", ".join(
        f"{name} {np.mean(gaps[name]):.2f} below on average ({sum(below[name])} of {len(below[name])} settings)"
        for name in gaps
    )
    return f"at equal coupling: {text}", [all(below[name]) for name in below if name in UNPAIRED]


@claim("C14", "Results, competing methods", "methods")
def sofa_collapses(frame: Any) -> Found:
    """SOFA goes to Y-as-factors as its scaling factor grows."""
    names = along(frame, "SOFA")
    if len(names) < 2:
        raise LookupError("SOFA")
    parts, text = [], []
    for scenario in SIMULATED:
        one = at_setting(frame, scenario, 1.0, 1.0)
        shown = [*(name for name in names if name in set(one["method"])), "Y as factors"]
        if names[0] not in shown:
            continue
        a, c = (means(one, metric, ["method"])[shown] for metric in ("alignment", "coupling"))
        parts += [bool(a.iloc[-2] > a.iloc[0]), bool(abs(c.iloc[-2] - c.iloc[-1]) < abs(c.iloc[0] - c.iloc[-1]))]
        text.append(
            f"{scenario}: alignment {a.iloc[0]:.2f} → {a.iloc[-2]:.2f}, "
            f"coupling {c.iloc[0]:.2f} → {c.iloc[-2]:.2f} (Y itself 1, {c.iloc[-1]:.2f})"
        )
    runs = frame.loc[frame["method"] == names[-1], "rep"].nunique()
    return f"sf {names[0][9:-1]} → {names[-1][9:-1]}, {runs} repetitions: " + "; ".join(text), parts


@claim("C15", "Results, competing methods; runtime figure", "runtime")
def faster(frame: Any) -> Found:
    """iFA is faster than SOFA, and a further lambda costs next to nothing."""
    t = frame[frame["metric"] == "seconds"].groupby("method")["value"].median()
    further = t["iFA, a further lambda"] / t["iFA"]
    text = [f"iFA {t['iFA']:.3f} s, a further lambda {t['iFA, a further lambda']:.4f} s ({further:.2f} of it)"]
    parts = [bool(further < 0.25)]
    for name, label in (("SOFA (sf=0.1)", "SOFA"), ("MOFA", "MOFA")):
        if name in t:
            text.append(f"{label} {t[name]:.2f} s ({t[name] / t['iFA']:.0f} times)")
            parts += [bool(t[name] > t["iFA"])] if label == "SOFA" else []
    if "SOFA (sf=0.1)" not in t:
        raise LookupError("SOFA")
    return "; ".join(text), parts


def table(store: Store, profile: Profile) -> pd.DataFrame:
    """One row for each claim: claim, statement, where, measured, verdict."""
    lines = []
    for name, statement, where, check in CLAIMS:
        try:
            answer = check(store, profile)
        except LookupError:
            answer = Answer("no results in the store", UNKNOWN)
        lines.append((name, statement, where, *answer))
    return pd.DataFrame(lines, columns=["claim", "statement", "where", "measured", "verdict"])
