"""The claims of the paper, each checked against the results in the store. ``sample_claims`` has C16 and up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from covalign.study import sample_claims  # noqa: F401  (adds its claims to the table)
from covalign.study.claim_verdicts import CLAIMS, UNKNOWN, Answer, Found, along, claim, runs, spread
from covalign.study.contenders import CLASSICAL, members
from covalign.study.profiles import SIMULATED, Profile
from covalign.study.results_store import ReadOnce, Store, at_setting, means
from covalign.study.theory import LAMS, SHOWN

ROUNDING = 1e-8
NEXT_TO_NOTHING = 0.05  # of the seconds of a fit
UNPAIRED = ("PCA", "MOFA", "PLS", "SPCA (Bair)", "SPCA (Barshan)")


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
    """Pretrained representations: T (also T_ex) beats the max-correlation dimensions and plain Procrustes; T_1 stays
    less coupled than Procrustes.
    """
    parts, text = [], []
    names = sorted(frame["embedding"].unique())
    for name in names:
        one = frame[frame["embedding"] == name]
        for label in ("in sample", "held out"):
            a, c = (means(one, f"{metric}, {label}", ["method"]) for metric in ("alignment", "coupling"))
            best, rotated = a["max-correlation dimensions"], a["Procrustes"]
            said = f"{name}, {label}: max-corr {best:.2f}, Procrustes {rotated:.3f} (coupling {c['Procrustes']:.1f})"
            for route in ("Procrustes", "ridge"):
                T = {T: f"{route}, then {T}" for T in SHOWN if f"{route}, then {T}" in a}
                parts += [bool(a[found] > max(best, rotated)) for found in T.values()]
                parts.append(bool(c[f"{route}, then T_1"] < c["Procrustes"]))
                said += f", {route} then " + ", ".join(f"{T} {a[found]:.3f}" for T, found in T.items())
                said += f" (coupling of T_1 {c[f'{route}, then T_1']:.1f})"
            text.append(said)
    only = "the only representation" if len(names) == 1 else f"{len(names)} representations"
    return f"{', '.join(names)} ({only} measured; the paper has CLIP, ViT and DINOv2). {'. '.join(text)}", parts


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


SHARES = {"variance": "marginal share (R² of a feature on the factor alone)", "loading variance": "loading-based share"}


@claim("C11", "Results, iFA; fig. 5", "tcga")
def informed_variance_rises(frame: Any) -> Found:
    """Breast cancer: the variance an informed factor explains rises from T_0 to T_1."""
    family, parts, text = along(frame), [], []
    for metric, label in SHARES.items():
        share = frame[(frame["metric"] == metric) & frame["method"].isin(family)].pivot_table(
            index=["rep", "fold"], columns="method", values="value"
        )
        if share.empty:
            raise LookupError(metric)
        rises = float((share[family[-1]] > share[family[0]]).mean())
        values = ", ".join(f"{name[9:-1]}: {spread(share[name])}" for name in family)
        text.append(f"{label} at lambda = {values}; higher at the last lambda in {rises:.0%} of {len(share)} fits")
        parts.append(bool(share[family].mean().is_monotonic_increasing and rises > 0.95))
    return "It depends on the share. " + ". ".join(text), parts


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
        if "T_ex" not in one.index:  # M is singular, and so is the covariance of the latents at T_1
            detail += f" (T_1 is singular here: D depends on the generalised inverse, {D.iloc[-1]:.2f} with the "
            detail += "pseudo-inverse, 1 with the diagonal solution)"
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
    factors = ", ".join(name[9:-1] for name in names)
    ran = f"run with sf = {factors} at alpha = b = 1, {runs(frame, *names)}, first → last"
    return f"{ran}: {'; '.join(text)}", parts


@claim("C15", "Results, competing methods; runtime figure", "runtime")
def faster(frame: Any) -> Found:
    """iFA is slower than the classical methods and faster than SOFA, and a further lambda costs next to nothing."""
    frame = frame[frame["metric"] == "seconds"]
    t = frame.groupby("method")["value"].median()
    if "SOFA (sf=0.1)" not in t:
        raise LookupError("SOFA")
    further = t["iFA, a further lambda"] / t["iFA"]
    text = [f"iFA {t['iFA']:.3f} s ({runs(frame, 'iFA')})"]
    text.append(f"a further lambda {t['iFA, a further lambda']:.4f} s, {further:.0%} of a fit")
    parts = [bool(t["SOFA (sf=0.1)"] > t["iFA"]), bool(further < NEXT_TO_NOTHING)]
    classical = [name for name in CLASSICAL if name in t]
    if classical:
        slowest = max(classical, key=lambda name: float(t[name]))
        text.append(f"{slowest} {t[slowest]:.3f} s, the slowest classical method")
        parts.append(bool(t["iFA"] > t[slowest]))
    others = {"SOFA (sf=0.1)": "SOFA with sf = 0.1", "MOFA": "MOFA"}
    text += [
        f"{others[name]} {t[name]:.2f} s ({t[name] / t['iFA']:.0f} times; {runs(frame, name)})"
        for name in others
        if name in t
    ]
    return "; ".join(text) + ". Next to nothing would be 5 %", parts


def table(store: Store, profile: Profile) -> pd.DataFrame:
    """One row for each claim: claim, statement, where, measured, verdict."""
    store, lines = ReadOnce(store), []
    for _, (name, statement, where, check) in sorted(CLAIMS.items()):
        try:
            answer = check(store, profile)
        except LookupError:
            answer = Answer("no results in the store", UNKNOWN)
        lines.append((name, statement, where, *answer))
    return pd.DataFrame(lines, columns=["claim", "statement", "where", "measured", "verdict"])
