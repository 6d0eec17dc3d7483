"""The steering study as a figure and as a page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from covalign._core.linalg import Array
from covalign._core.text_tables import markdown
from covalign.study.intervals import Interval, over_splits
from covalign.study.profiles import Inputs, Profile
from covalign.study.results_store import Store, rows
from covalign.study.steering import LAMS, REFERENCES
from covalign.study.theory import SHOWN

REGIMES = ("T_ex", *(f"T_{lam:g}" for lam in LAMS))
TITLES = {"T_ex": r"$T_{\mathrm{ex}}$", "T_0": "$T_0$", "T_0.5": "$T_{1/2}$", "T_1": "$T_1$"}


def data_sets(frame: pd.DataFrame, profile: Profile, inputs: Inputs) -> dict[str, pd.DataFrame]:
    """The rows of each data set: representations first, then scenarios at this profile's size."""
    made = {}
    for name in inputs.embeddings:
        for covariates, text in (("given", ""), ("overlapping", ", overlapping groups")):
            made[f"{name}{text}"] = selected(frame, embedding=name, covariates=covariates)
    for scenario in ("PN", "AR", "P", "N"):
        for alpha in (0.5, 1.0):
            one = selected(frame, scenario=scenario, alpha=alpha, n=profile.n)
            made[f"scenario {scenario}, α = {alpha:g}"] = one
    return {name: one for name, one in made.items() if not one.empty}


def selected(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """Rows with these settings; no rows if the frame has no such setting."""
    for column, value in wanted.items():
        frame = frame[frame[column] == value] if column in frame else frame.iloc[:0]
    return frame


def over_repetitions(one: pd.DataFrame, method: str, metric: str) -> Interval:
    """Mean and interval of a metric: splits of the same rows, or independent samples of a scenario."""
    found = one[(one["method"] == method) & (one["metric"] == metric)].sort_values("rep")["value"]
    resampled = "scenario" not in one or one["scenario"].isna().all()
    return over_splits(found, 1.0 if resampled else 0.0)


def steering_figure(store: Store, profile: Profile, inputs: Inputs) -> Any:
    """Held-out responses by regime for every data set that has them, leakage along lambda, and its price in effort."""
    from covalign.study.study_style import COLOURS, finish, plt

    frame = rows(store, "steering", profile)
    sets = data_sets(frame, profile, inputs)
    shown = {name: one for name, one in sets.items() if one["metric"].str.startswith("response").any()}
    figure = plt.figure(figsize=(11.5, 2.7 * len(shown) + 4.2), layout="constrained")
    parts = figure.subfigures(len(shown) + 1, 1, height_ratios=[2.7] * len(shown) + [4.2])
    letters = iter("ABCDEFGH")
    for part, (name, one) in zip(parts, shown.items(), strict=False):
        responses(
            part, one, f"{next(letters)}   {name}: change of probe q (row) by a move of dimension p (column), held out"
        )
    axes = parts[-1].subplots(1, 2)
    curves = [name for name in sets if not name.startswith("scenario") or name.startswith("scenario PN")]
    for colour, name in zip(COLOURS, curves, strict=False):
        along_lambda(axes[0], sets[name], name, colour)
        prices(axes[1], sets[name], name, colour)
    axes[0].set_title(
        f"{next(letters)}   leakage along λ (dashed: probes of the fitted rows; crosses: $T_{{ex}}$)",
        loc="left",
        fontsize=9,
    )
    axes[0].set(xlabel="λ", ylabel="leakage: other probes' squared change / own\n(logarithmic above .1)")
    title = f"{next(letters)}   leakage and effort, held out (cross $T_{{ex}}$, line λ = 0 to 1)"
    axes[1].set_title(title, loc="left", fontsize=9)
    axes[1].set_xlabel("effort relative to $T_{ex}$: squared length of a move per squared effect")
    axes[0].legend(fontsize=8, frameon=False)
    for ax in axes:
        ax.set_yscale("symlog", linthresh=0.1)  # most of the differences are near zero
        ax.set_yticks([0, 0.05, 0.1, 0.2, 0.5, 1, 2], ["0", ".05", ".1", ".2", ".5", "1", "2"])
        ax.yaxis.set_minor_locator(plt.NullLocator())
        ax.set_ylim(bottom=0)
        finish(ax)
    return figure


def responses(part: Any, one: pd.DataFrame, title: str) -> None:
    """Response matrices, averaged over repetitions, each column relative to the change of its own probe."""
    from covalign.study.study_style import colour_bar, heatmap

    names = [name for name in SHOWN if name in set(one["method"])]
    axes = np.atleast_1d(part.subplots(1, len(names)))
    image = None
    for ax, name in zip(axes, names, strict=True):
        R = response_matrix(one, name)
        leak = over_repetitions(one, name, "leakage, held out").mean
        image = heatmap(ax, R / np.diag(R), f"{TITLES[name]}   leakage {leak:.2f}")
    colour_bar(part, image, axes, 0.8)
    part.suptitle(title, fontsize=9, x=0.01, ha="left")


def response_matrix(one: pd.DataFrame, method: str) -> Array:
    """P x P, the mean over repetitions."""
    kept = one[(one["method"] == method) & one["metric"].str.startswith("response ")]
    means = kept.groupby("metric")["value"].mean()
    at = np.array([name.split()[1:] for name in means.index], dtype=int)
    R = np.zeros(at.max(axis=0) + 1)
    R[at[:, 0], at[:, 1]] = means
    return R


def along_lambda(ax: Any, one: pd.DataFrame, name: str, colour: str) -> None:
    """Leakage of T_lambda, held out with its interval, in sample dashed; T_ex as a cross left of lambda = 0."""
    from covalign.study.study_style import band

    lams = [lam for lam in LAMS if f"T_{lam:g}" in set(one["method"])]
    held = [over_repetitions(one, f"T_{lam:g}", "leakage, held out") for lam in lams]
    seen = [over_repetitions(one, f"T_{lam:g}", "leakage, in sample").mean for lam in lams]
    means, reach = np.array([h.mean for h in held]), np.nan_to_num([h.reach for h in held])
    band(ax, lams, means, reach, colour, 0.15, marker="o", ms=4, label=name)
    ax.plot(lams, seen, color=colour, ls="--", lw=1)
    if "T_ex" in set(one["method"]):
        ax.scatter(-0.08, over_repetitions(one, "T_ex", "leakage, held out").mean, color=colour, marker="x")


def prices(ax: Any, one: pd.DataFrame, name: str, colour: str) -> None:
    """Leakage against effort, relative to the effort of T_ex."""
    made = [name for name in REGIMES if name in set(one["method"])]
    effort = np.array([over_repetitions(one, name, "effort, held out").mean for name in made])
    leak = np.array([over_repetitions(one, name, "leakage, held out").mean for name in made])
    ax.plot(effort / effort[0], leak, color=colour, lw=1)
    ax.scatter(effort[1:] / effort[0], leak[1:], color=colour, s=14)
    ax.scatter(1.0, leak[0], color=colour, marker="x" if made[0] == "T_ex" else "o")


def steering_table(store: Store, profile: Profile, inputs: Inputs) -> str:
    """Leakage, effect and effort of every move on every data set, and T_0 and T_ex against T_1."""
    frame, parts = rows(store, "steering", profile), []
    for name, one in data_sets(frame, profile, inputs).items():
        methods = [m for m in (*REGIMES, *REFERENCES) if m in set(one["method"])]
        simulated = name.startswith("scenario")
        header = ["move", "leakage, in sample", "leakage, held out", "less that of T_1", "effect", "effort / T_0's"]
        header += ["cosine with intervention", "with observation"] if simulated else []
        lines = [measured(one, method, simulated) for method in methods]
        parts.append(f"**{name}** ({one['rep'].nunique()} repetitions)\n\n" + markdown(header, lines))
    return "\n".join(parts)


def measured(one: pd.DataFrame, method: str, simulated: bool) -> list[str]:
    """One line of the table."""
    wide = one.pivot_table(index="rep", columns=["method", "metric"], values="value")
    own = wide[method]
    leak = over_repetitions(one, method, "leakage, held out")
    if method == "T_1" or "T_1" not in wide.columns.get_level_values(0):
        less = ""
    else:
        less = str(over_splits(own["leakage, held out"] - wide["T_1"]["leakage, held out"], 0.0 if simulated else 1.0))
    effort = (own["effort, held out"] / wide["T_0"]["effort, held out"]).mean()
    seen = abs(own["leakage, in sample"].mean())  # rounding below zero is zero
    line = [method, f"{seen:.3f}", f"{leak:.3f}", less, f"{own['effect, held out'].mean():.2f}", f"{effort:.2f}"]
    labels = ("intervention", "observation") if simulated else ()
    return line + [f"{own[f'cosine with {label}'].mean():.2f}" for label in labels]
