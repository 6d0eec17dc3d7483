"""Claims of the paper about samples: the other methods and the front, variance, disentanglement, representations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from covalign._core.messages import counted
from covalign.study.claim_verdicts import Found, along, claim, runs
from covalign.study.profiles import SIMULATED, Profile
from covalign.study.results_store import at_setting, means

SCORES = ("disentanglement", "completeness", "informativeness", "sap", "nsap")
BEHIND, ABOVE, PAST = "behind", "on or above", "past its end"
HIGH = 0.8  # of the share that the factors explain before T: "remains high"
UNCHANGED = 0.5  # of the change of iFA's scores: "largely unchanged"
EXACT = 1e-6  # coupling that counts as none

# -- the front --------------------------------------------------------------------------------------------------------


def places(frame: pd.DataFrame) -> dict[str, str]:
    """Where each other method lies: behind the front of iFA at its coupling, on or above it, or past its end."""
    c, a = (means(frame, metric, ["method"]) for metric in ("coupling", "alignment"))
    front = along(frame)
    found = {}
    for name in (name for name in a.index if not str(name).startswith("iFA")):
        if a[name] < np.interp(c[name], c[front], a[front]):
            found[str(name)] = BEHIND
        else:
            found[str(name)] = PAST if c[name] > c[front].max() else ABOVE
    return found


def said(found: list[dict[str, str]]) -> str:
    """How many are behind, and the names of the others."""
    each = [(name, place) for one in found for name, place in one.items()]
    text = f"{sum(place == BEHIND for _, place in each)} of {len(each)} behind"
    for kind in (ABOVE, PAST):
        names = sorted({name for name, place in each if place == kind})
        text += f", {kind}: {', '.join(names)}" if names else ""
    return text


@claim("C16", "Results, competing methods; figs. 3 and 5", "methods", "tcga")
def most_lie_behind(frame: Any, real: Any) -> Found:
    """Most other methods lie behind the front of iFA, in simulations and on breast cancer."""
    simulated = [
        places(at_setting(frame, scenario, alpha, b)) for scenario in SIMULATED for alpha, b in Profile.panels(scenario)
    ]
    cancer = [places(real)]
    parts = [
        np.mean([place == BEHIND for one in found for place in one.values()]) > 0.5 for found in (simulated, cancer)
    ]
    text = f"in sample, at equal coupling. Simulations ({len(simulated)} settings): {said(simulated)}. "
    return f"{text}Breast cancer: {said(cancer)}", [bool(part) for part in parts]


@claim("C17", "Results, competing methods; fig. 5", "tcga")
def sofa_aligns_less(frame: Any) -> Found:
    """Breast cancer: SOFA at its largest scaling factor aligns less than iFA at large lambda."""
    sofa, ours = along(frame, "SOFA")[-1], along(frame)[-1]
    wide = frame[(frame["metric"] == "alignment") & frame["method"].isin([sofa, ours])]
    both = wide.pivot_table(index=["rep", "fold"], columns="method", values="value").dropna()
    less = both[ours] - both[sofa]
    text = f"{sofa} {both[sofa].mean():.3f}, {ours} {both[ours].mean():.3f}, in sample; "
    text += f"less in {int((less > 0).sum())} of {len(less)} folds ({runs(frame, sofa)} of SOFA)"
    return text, [bool(less.mean() > 0), bool((less > 0).all())]


# -- scores of SOFA and iFA -------------------------------------------------------------------------------------------


def scores_at(frame: pd.DataFrame, scenario: str, alpha: float, names: list[str]) -> pd.DataFrame:
    """Mean scores (methods x D, C, I, SAP, nSAP) at b = 1; LookupError if there are none."""
    one = at_setting(frame, scenario, alpha, 1.0)
    wide: pd.DataFrame = one[one["method"].isin(names)].pivot_table(index="method", columns="metric", values="value")
    if wide.empty:
        raise LookupError(names[0])
    return pd.DataFrame(wide[list(SCORES)])


def sofa_panels() -> list[tuple[str, float]]:
    """Scenarios in which SOFA is run with two values of alpha, and the smaller one."""
    pairs = [(scenario, Profile.panels(scenario)[1]) for scenario in SIMULATED]
    return [(scenario, alpha) for scenario, (alpha, _) in pairs if alpha < 1]


@claim("C18", "Results, competing methods; metric sweeps A", "methods")
def sofa_does_not_shift(frame: Any) -> Found:
    """The scores of SOFA (D, C, I, SAP, nSAP) do not change with alpha, while those of iFA do."""
    parts, text = [], []
    for scenario, alpha in sofa_panels():
        moved = {}
        for kind in ("SOFA", "iFA"):
            low, high = (scores_at(frame, scenario, at, along(frame, kind)) for at in (alpha, 1.0))
            moved[kind] = float((high - low).abs().to_numpy().mean())
        parts += [moved["SOFA"] < moved["iFA"], moved["SOFA"] < UNCHANGED * moved["iFA"]]
        text.append(f"{scenario}: SOFA {moved['SOFA']:.3f}, iFA {moved['iFA']:.3f}")
    ran = (
        f"mean absolute change of the scores from alpha = {alpha:g} to 1, {runs(frame, *along(frame, 'SOFA'))} of SOFA"
    )
    return f"{ran}: {'; '.join(text)}. Unchanged would be at most half of the change of iFA", parts


@claim("C19", "Results, competing methods; metric sweeps", "methods")
def sofa_spans_more(frame: Any) -> Found:
    """SOFA spans a broader range of scores (D, C, I, SAP, nSAP) than iFA."""
    parts, text = [], []
    for scenario in SIMULATED:
        ranges = [
            np.ptp(scores_at(frame, scenario, 1.0, along(frame, kind)).to_numpy(), axis=0) for kind in ("SOFA", "iFA")
        ]
        wider = ranges[0] > ranges[1]
        parts += wider.tolist()
        each = ", ".join(
            f"{s} {a:.2f} and {b:.2f}" for s, a, b in zip(("D", "C", "I", "SAP", "nSAP"), *ranges, strict=True)
        )
        text.append(f"{scenario}: {each}")
    return (
        f"ranges of SOFA and of iFA at alpha = b = 1, wider in {sum(parts)} of {len(parts)}: {'; '.join(text)}",
        parts,
    )


# -- variance and disentanglement of iFA ------------------------------------------------------------------------------


@claim("C20", "Results, iFA; metric sweeps, fig. 5", "methods", "tcga")
def variance_stays_high(frame: Any, real: Any) -> Found:
    """The variance explained per informed factor stays high for all lambda."""
    parts, text = [], []
    for label, one, by in (("simulations", frame, ["scenario", "alpha", "b"]), ("breast cancer", real, ["k"])):
        names = along(one)
        share = means(one, "variance", [*by, "method"]).unstack()
        ratio = share[names].div(share["iFA (no T)"], axis=0)
        least = ratio.min().idxmin()
        parts.append(bool(ratio.to_numpy().min() >= HIGH))
        text.append(
            f"{label}: {share[names].to_numpy().min():.3f} to {share[names].to_numpy().max():.3f}, "
            f"at least {ratio.to_numpy().min():.0%} of that before T ({least})"
        )
    return f"marginal share. {'; '.join(text)}. High means {HIGH:.0%} of that before T", parts


@claim("C21", "Results, disentanglement; metric sweeps", "methods")
def sample_scores(frame: Any) -> Found:
    """In samples, D and C of iFA rise with lambda, and SAP and nSAP favour small lambda."""
    names, parts, text = along(frame), [], []
    for scenario in SIMULATED:
        D, C, S, n = (
            scores_at(frame, scenario, 1.0, names).loc[names, score]
            for score in ("disentanglement", "completeness", "sap", "nsap")
        )
        checks = {
            "D rises": D.is_monotonic_increasing,
            "C rises": C.is_monotonic_increasing,
            "SAP highest at lambda <= .5": float(str(S.idxmax())[9:-1]) <= 0.5,
            "nSAP falls": n.is_monotonic_decreasing,
        }
        parts += [bool(good) for good in checks.values()]
        failing = [name for name, good in checks.items() if not good]
        values = f"D {D.iloc[0]:.2f} → {D.iloc[-1]:.2f}, C {C.iloc[0]:.2f} → {C.iloc[-1]:.2f}, "
        values += f"SAP {S.iloc[0]:.2f} → {S.iloc[-1]:.2f}, nSAP {n.iloc[0]:.2f} → {n.iloc[-1]:.2f}"
        text.append(f"{scenario}: {values}" + (f"; fails: {', '.join(failing)}" if failing else ""))
    return f"alpha = b = 1, lambda = {names[0][9:-1]} → {names[-1][9:-1]}. {'. '.join(text)}", parts


@claim("C22", "Results, disentanglement; metric sweeps", "methods", "population")
def informativeness_grows(frame: Any, population: Any) -> Found:
    """I grows with alpha (correlation of covariates) and with b (strength of effects) for every lambda. The paper has
    the two letters the wrong way round.
    """
    parts, text = [], []
    for label, one, names in (("population", population, ["T_0", "T_1"]), ("samples", frame, along(frame))):
        values = means(
            one[one["method"].isin(names)], "informativeness", ["scenario", "alpha", "b", "method"]
        ).unstack()
        rising = []
        for scenario in SIMULATED:
            table = values.loc[scenario]
            for fixed, other in (("b", "alpha"), ("alpha", "b")):
                path = table[np.isclose(table.index.get_level_values(fixed), 1.0)].sort_index(level=other)
                rising += [bool(path[name].is_monotonic_increasing) for name in names]
        parts += [all(rising)]
        text.append(f"{label}: rises in {sum(rising)} of {len(rising)} sweeps")
    ends = frame["alpha"].min(), frame["alpha"].max()
    both = [
        means(at_setting(frame, "PN", alpha, 1.0), "informativeness", ["method"])[along(frame)].mean() for alpha in ends
    ]
    text.append(f"PN, samples, alpha = {ends[0]:g} → {ends[1]:g}: {both[0]:.3f} → {both[1]:.3f}")
    return "; ".join(text), parts


# -- representations --------------------------------------------------------------------------------------------------


@claim("C23", "Results, post hoc; fig. 2", "embedding")
def order_of_embeddings(frame: Any) -> Found:
    """Pretrained representations: alignment has the order of Theorem 1 (T_ex, T_0, T_1/2, T_1); T_0 is uncoupled."""
    parts, text = [], []
    for name, one in frame.groupby("embedding"):
        for route in ("Procrustes", "ridge"):
            order = [f"{route}, then {T}" for T in ("T_ex", "T_0", "T_0.5", "T_1")]
            if order[0] not in set(one["method"]):
                raise LookupError("T_ex")
            for label in ("in sample", "held out"):
                a = means(one, f"alignment, {label}", ["method"])[order]
                parts.append(bool(a.is_monotonic_increasing))
                text.append(f"{route}, {label}: {' '.join(f'{value:.3f}' for value in a)}")
            coupling = means(one, "coupling, in sample", ["method"])[order[1]]
            parts.append(bool(coupling < EXACT))
            text.append(f"coupling of T_0 in sample {abs(coupling):.0e}")
        text[0] = f"{name} ({counted(one['rep'].nunique(), 'split')}). {text[0]}"
    return "; ".join(text), parts
