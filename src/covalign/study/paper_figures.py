"""Every figure of the paper under its name there, drawn from the store; closed forms are computed when drawn."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from covalign._core.linalg import to_correlation
from covalign.bridges import datasets
from covalign.closed_form import regimes, simulate
from covalign.closed_form.metrics.alignment import cross_correlation
from covalign.moments.moments import Moments
from covalign.study.contenders import members
from covalign.study.experiments import Output
from covalign.study.model_diagram import model_diagram
from covalign.study.profiles import SIMULATED, Inputs, Profile
from covalign.study.real_data import numbers, routes
from covalign.study.results_store import Store, at_setting, rows
from covalign.study.scores import LABELS
from covalign.study.steering_figure import TITLES, steering_figure
from covalign.study.theory import regimes_of

# -- matrices ---------------------------------------------------------------------------------------------------------


def transformed(m: Moments) -> dict[str, Moments]:
    """The moments after T_ex (where it exists), T_0, T_1/2 and T_1."""
    return {name: m.transform(T) for name, T in regimes_of(regimes.whitened_polar(m)).items()}


def matrix_rows(axes: Any, columns: dict[str, Moments], titles: dict[str, str]) -> Any:
    """corr(y, z~) above corr(z~), one column for each regime; titles give the mean alignment and the coupling."""
    from covalign.study.study_style import heatmap

    image = None
    for j, (name, m) in enumerate(columns.items()):
        C = cross_correlation(m)
        coupling = regimes.squared_distance_from_identity(to_correlation(m.cov_z))
        text = f"\n{titles.get(name, name)}\nalignment {np.mean(np.diag(C)):.2f}\ncoupling {coupling:.2f}"
        heatmap(axes[0, j], C.T, text)
        image = heatmap(axes[1, j], to_correlation(m.cov_z))
    axes[0, 0].set_ylabel(r"corr$(y, \tilde z)$", fontsize=8)
    axes[1, 0].set_ylabel(r"corr$(\tilde z)$", fontsize=8)
    return image


def overview(figure: Any, scenario: str) -> None:
    """Panels A (the covariates and the latents they inform) and B (after each transformation)."""
    from covalign.study.study_style import colour_bar, heatmap

    m = simulate.population_moments(scenario)
    after = transformed(m)
    grid = figure.subplots(2, 2 + len(after), width_ratios=[1, 1, *[1] * len(after)])
    heatmap(grid[0, 0], to_correlation(m.cov_y), r"A   corr$(y)$")
    grid[1, 0].axis("off")
    heatmap(grid[0, 1], cross_correlation(m).T, r"corr$(y, z)$")
    heatmap(grid[1, 1], to_correlation(m.cov_z), r"corr$(z)$")
    titles = {**TITLES, next(iter(after)): "B   " + TITLES[next(iter(after))]}
    colour_bar(figure, matrix_rows(grid[:, 2:], after, titles), grid, 0.7)


def fig1(store: Store, profile: Profile, inputs: Inputs) -> Any:
    """The overview, scenario 1."""
    from covalign.study.study_style import plt

    figure = plt.figure(figsize=(11, 4), layout="constrained")
    overview(figure, "PN")
    return figure


def latex(route: str) -> str:
    """The name of a route with its T as mathematics."""
    start, comma, T = route.rpartition("then ")
    return start + comma + TITLES.get(T, T)


def sup_emb(store: Store, profile: Profile, inputs: Inputs) -> Any:
    """Latent-covariate and latent-latent correlations of every representation, fitted to all rows."""
    from covalign.study.study_style import plt

    data_sets = {name: datasets.embedding(path) for name, path in inputs.embeddings.items()}
    shown = ["max-correlation dimensions", "Procrustes"]
    shown += [f"{route}, then {T}" for route in ("Procrustes", "ridge") for T in ("T_ex", "T_0", "T_1")]
    figure = plt.figure(figsize=(15, 4.2 * len(data_sets)), layout="constrained")
    parts = np.atleast_1d(figure.subfigures(len(data_sets), 1))
    for part, (name, data) in zip(parts, data_sets.items(), strict=True):
        Z, Y = numbers(data)
        m = Moments.from_arrays(Z, Y)
        made = {route: m.transform(T) for route, T in routes(Z, Y).items() if route in shown}
        made = {route: made[route] for route in shown if route in made}
        axes = part.subplots(2, len(made))
        image = matrix_rows(axes, made, {route: latex(route) for route in made})
        for ax in axes.ravel():
            ax.title.set_fontsize(7)
        for ax in axes[:, 0]:
            ax.set_yticks(range(Y.shape[1]), [str(label)[:18] for label in data.covariates.columns], fontsize=5)
        part.colorbar(image, ax=axes, shrink=0.7, pad=0.01)
        part.suptitle(f"{name}: P = {Y.shape[1]}, K = {Z.shape[1]}, n = {len(Z)}", fontsize=10, x=0.01, ha="left")
    return figure


# -- the plane of coupling and alignment ------------------------------------------------------------------------------


def panel_d(store: Store, profile: Profile, scenario: str, axes: Any, which: tuple[int, ...] = (0, 1)) -> None:
    """Methods in one or both settings of a scenario."""
    from covalign.study.study_style import coupling_axis, trade_off

    for ax, i in zip(axes, which, strict=True):
        alpha, b = profile.panels(scenario)[i]
        name = f"scenario {SIMULATED.index(scenario) + 1} ({scenario}),  α = {alpha:g}, b = {b:.2g}"
        trade_off(at_setting(rows(store, "methods", profile), scenario, alpha, b), ax, title=name)
        coupling_axis(ax)


def legend(figure: Any, ax: Any) -> None:
    """One legend for the whole figure."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, frameon=False, loc="outside right center")


def fig3(store: Store, profile: Profile, inputs: Inputs) -> Any:
    """The trade-off, scenarios 1 and 4."""
    from covalign.study.study_style import plt

    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
    for ax, scenario in zip(axes, ("PN", "N"), strict=True):
        panel_d(store, profile, scenario, [ax], (1,))
    legend(figure, axes[0])
    return figure


def scenario_figure(scenario: str, store: Store, profile: Profile, inputs: Inputs) -> Any:
    """Panels A to D of one scenario."""
    from covalign.show import plot
    from covalign.study.study_style import plt

    figure = plt.figure(figsize=(12, 8.6), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1])
    overview(top, scenario)
    axes = bottom.subplots(1, 3)
    m = simulate.population_moments(scenario)
    plot.frontier(regimes.frontier(m), axes[0], title=f"C   population frontier, {scenario}")
    panel_d(store, profile, scenario, axes[1:])
    axes[1].set_title("D   " + axes[1].get_title(loc="left"), loc="left", fontsize=10)
    legend(bottom, axes[1])
    return figure


# -- sweeps -----------------------------------------------------------------------------------------------------------


def sweep_figure(scenario: str, store: Store, profile: Profile, inputs: Inputs) -> Any:
    """Eight metrics, one below the other, along alpha (A) and along b (B): iFA on the left, other methods beside it."""
    from covalign.study.study_style import plt, sweep

    frame = rows(store, "methods", profile)
    frame = frame[frame["scenario"] == scenario]
    figure, axes = plt.subplots(len(LABELS), 4, figsize=(11.5, 13), sharex="col", sharey="row")
    figure.subplots_adjust(left=0.075, right=0.925, top=0.945, bottom=0.035, wspace=0.5, hspace=0.22)
    for part, (along, fixed) in enumerate((("alpha", "b"), ("b", "alpha"))):
        along_it = frame[np.isclose(frame[fixed], 1.0)]
        for row, metric in zip(axes, LABELS, strict=True):
            sweep(along_it, along, metric, row[2 * part : 2 * part + 2])
    label_sweeps(axes, frame.groupby("method")["rep"].nunique())
    title = f"Scenario {SIMULATED.index(scenario) + 1} ({scenario}): means of {frame['rep'].nunique()} repetitions "
    title += "± 1 s.d. (numbers in brackets: methods with fewer repetitions). Grey: range of iFA$_\\lambda$."
    figure.suptitle(title, fontsize=9, x=0.01, ha="left")
    return figure


def label_sweeps(axes: Any, counts: Any) -> None:
    """Titles of the columns, names of metrics and of lines; the axis of coupling is logarithmic above 0.1."""
    from covalign.study.study_style import name_ends

    along = {"A": "α, correlation of covariates", "B": "b, scale of β"}
    titles = [f"{part}   {who}, along {text[0]}" for part, text in along.items() for who in ("iFA", "other methods")]
    for ax, title, text in zip(axes[0], titles, [text for text in along.values() for _ in range(2)], strict=True):
        ax.set_title(title, loc="left", fontsize=9)
        axes[-1, axes[0].tolist().index(ax)].set_xlabel(text, fontsize=8)
    for row, (metric, label) in zip(axes, LABELS.items(), strict=True):
        row[0].set_ylabel(label.replace("  ", "\n", 1), fontsize=8)
        if metric == "coupling":
            row[0].set_yscale("symlog", linthresh=0.1)
            row[0].set_ylim(bottom=-0.03)
            row[0].set_ylabel("coupling\n(logarithmic\nabove 0.1)", fontsize=8)
    for ax in axes.ravel():
        name_ends(ax, counts)


def fig4(store: Store, profile: Profile, inputs: Inputs) -> Any:
    """Population D, C, I, SAP and nSAP along alpha, scenario 1."""
    from covalign.study.study_style import finish, plt

    frame = rows(store, "population", profile)
    frame = frame[(frame["scenario"] == "PN") & np.isclose(frame["b"], 1.0)]
    viridis = plt.get_cmap("viridis")
    shown = {"T_ex": ("#CC79A7", "--")} | {f"T_{lam:g}": (viridis(0.08 + 0.84 * lam), "-") for lam in profile.lams}
    metrics = list(LABELS)[3:]
    figure, axes = plt.subplots(1, len(metrics), figsize=(13, 3), layout="constrained")
    for ax, metric in zip(axes, metrics, strict=True):
        for name, (colour, style) in shown.items():
            one = frame[(frame["method"] == name) & (frame["metric"] == metric)].sort_values("alpha")
            label = TITLES["T_ex"] if name == "T_ex" else rf"$T_\lambda$, $\lambda$ = {name[2:]}"
            ax.plot(one["alpha"], one["value"], color=colour, ls=style, lw=1.8, label=label)
        ax.set_title(LABELS[metric], loc="left", fontsize=9)
        ax.set_xlabel("α, correlation of covariates", fontsize=8)
        finish(ax)
    legend(figure, axes[0])
    figure.suptitle("Population, scenario 1 (PN), b = 1", fontsize=10, x=0.01, ha="left")
    return figure


def sup_consistency(store: Store, profile: Profile, inputs: Inputs) -> Any:
    """beta, its squared error, and the cosine between factors and truth, as N grows."""
    from covalign.study.study_style import COLOURS, band, finish, plt, summary

    table = summary(rows(store, "consistency", profile), ["n"])
    table = table[table["n"].isin(profile.sizes)].sort_values("n")
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    for p, beta in enumerate(simulate.coefficients()):
        one, colour = table[table["metric"] == f"beta_{p + 1}"], plt.get_cmap("viridis")(p / 5)
        band(axes[0], one["n"], one["mean"], one["sd"], colour, 0.2, marker="o", ms=3)
        axes[0].axhline(beta, color=colour, ls=":", lw=1)
    axes[0].set_title(r"A   $\hat\beta_p$ (dotted: truth)", loc="left", fontsize=9)
    for ax, metric, title in (
        (axes[1], "beta error", r"B   squared error of $\hat\beta$"),
        (axes[2], "cosine", "C   cosine with the true factors"),
    ):
        one = table[table["metric"] == metric]
        ax.plot(one["n"], one["mean"], color=COLOURS[0], marker="o", ms=3)
        low = np.maximum(one["mean"] - one["sd"], one["mean"] / 4)  # an error has no logarithm below zero
        ax.fill_between(one["n"], low, one["mean"] + one["sd"], color=COLOURS[0], alpha=0.2, lw=0)
        ax.set_title(title, loc="left", fontsize=9)
    one = table[table["metric"] == "beta error"]
    slope = one["mean"].iloc[-1] * one["n"].iloc[-1] / one["n"]
    axes[1].plot(one["n"], slope, color="#888888", ls=":", lw=1)
    middle = len(one) // 2
    at = (one["n"].iloc[middle], slope.iloc[middle])
    axes[1].annotate("1/N", at, xytext=(4, 4), textcoords="offset points", fontsize=8)
    axes[1].set_yscale("log")
    for ax in axes:
        ax.set_xscale("log")
        ax.set_xlabel("N", fontsize=8)
        finish(ax)
    return figure


def sup_time(store: Store, profile: Profile, inputs: Inputs) -> Any:
    """Median seconds of one fit, for all methods on one machine with one thread."""
    from covalign.study.study_style import FAMILIES, STYLES, fewer_runs, plt

    frame = rows(store, "runtime", profile)
    frame = frame[frame["metric"] == "seconds"]
    table = frame.groupby("method")["value"].agg(["median", "min", "max", "count"]).sort_values("median")
    figure, ax = plt.subplots(figsize=(6.6, 0.6 + 0.34 * len(table)), layout="constrained")
    at = np.arange(len(table))
    families = {"iFA": "#0072B2", "SOFA": FAMILIES["SOFA"].shade(1, 2)}
    colours = [families.get(name.split()[0].rstrip(","), STYLES.get(name, ("#FFFFFF", ""))[0]) for name in table.index]
    ax.hlines(at, table["min"], table["max"], color="#BBBBBB", lw=3)
    ax.scatter(table["median"], at, c=colours, edgecolor="#222222", s=48, zorder=3)
    for y, (name, line) in enumerate(table.iterrows()):
        text = f"{line['median']:.3g} s" + fewer_runs(table["count"], name)
        ax.annotate(text, (line["max"], y), xytext=(8, -3), textcoords="offset points", fontsize=8)
    ax.set_yticks(at, list(table.index), fontsize=8)
    ax.set_xscale("log")
    ax.set_xlim(right=table["max"].max() * 12)
    ax.set_xlabel(
        f"seconds for one fit (N = {profile.n}, D = {profile.d}, K = {profile.k}; one thread; median, range)",
        fontsize=8,
    )
    ax.spines[["top", "right"]].set_visible(False)
    return figure


# -- real data --------------------------------------------------------------------------------------------------------


def fig5(store: Store, profile: Profile, inputs: Inputs) -> Any:
    """Breast cancer: the trade-off, the variance that an informed factor explains, and left-out patients."""
    from covalign.study.study_style import COLOURS, band, coupling_axis, finish, plt, summary, trade_off

    frame = rows(store, "tcga", profile)
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained", width_ratios=[1.15, 1.15, 0.8])
    trade_off(frame, axes[0], title="A   dependence and independence")
    coupling_axis(axes[0])
    trade_off(frame, axes[1], x="variance", title="B   dependence and variance explained")
    axes[1].set_xlabel("variance of the three views explained per informed factor")
    table = summary(frame, ["method"])
    lams, family = zip(*members(frame["method"], "iFA"), strict=True)
    for metric, label, colour in (
        ("alignment", "patients fitted", "#8A8A8A"),
        ("held-out alignment", "patients left out, labels unseen", COLOURS[0]),
    ):
        one = table[table["metric"] == metric].set_index("method").loc[list(family)]
        band(axes[2], lams, one["mean"], one["sd"], colour, 0.15, marker="o", ms=4, label=label)
    axes[2].set_title(r"C   iFA$_\lambda$ on new patients (± 1 s.d.)", loc="left", fontsize=10)
    axes[2].set(xlabel=r"$\lambda$", ylabel=LABELS["alignment"])
    axes[2].legend(fontsize=8, frameon=False, loc="lower right")
    finish(axes[2])
    legend(figure, axes[0])
    return figure


def fig2(store: Store, profile: Profile, inputs: Inputs) -> Any:
    """Pretrained representations, every route: in sample (faint) and on held-out rows."""
    from covalign.study.study_style import coupling_axis, finish, plt, summary

    frame = rows(store, "embedding", profile)
    names = [name for name in inputs.embeddings if name in set(frame.get("embedding", ()))]
    columns = max(len(names), 1)
    figure, axes = plt.subplots(1, columns, figsize=(1.6 + 5.2 * columns, 4.4), layout="constrained", squeeze=False)
    for ax, name in zip(axes[0], names, strict=False):
        table = summary(frame[frame["embedding"] == name], ["method"])
        table = table.pivot(index="method", columns="metric", values="mean")
        for label, faint in (("held out", False), ("in sample", True)):
            routes_panel(ax, table[f"coupling, {label}"], table[f"alignment, {label}"], label, faint)
        ax.margins(y=0.09)  # for the names of the two scales, below all points
        coupling_axis(ax)
        ax.set(xlabel=LABELS["coupling"], ylabel=LABELS["alignment"])
        finish(ax, name)
    legend(figure, axes[0, 0])
    return figure


def routes_panel(ax: Any, x: Any, y: Any, label: str, faint: bool) -> None:
    """One point for each route. A line joins the regimes of a route; faint points have no names."""
    look = {"alpha": 0.3 if faint else 1.0, "edgecolor": "none" if faint else "#222222", "linewidth": 0.8, "zorder": 3}
    for start, colour, marker, text in (
        ("Procrustes, then ", "#E69F00", "s", "$T$ after Procrustes (the paper)"),
        ("ridge, then ", "#0072B2", "o", "ridge, then $T$ (ours)"),
    ):
        made = [f"{start}{T}" for T in TITLES if f"{start}{T}" in x.index]
        ax.plot(x[made[-3:]], y[made[-3:]], color=colour, lw=1, alpha=look["alpha"], zorder=2)
        ax.scatter(x[made], y[made], s=50, color=colour, marker=marker, label=f"{text}, {label}", **look)
        for route in [] if faint else made:
            where = {"xytext": (5, 5) if route.endswith("T_1") else (5, -10), "textcoords": "offset points"}
            ax.annotate(TITLES[route.removeprefix(start)], (x[route], y[route]), fontsize=7, **where)
    for route, colour, marker in (("max-correlation dimensions", "#999999", "X"), ("Procrustes", "#D55E00", "D")):
        ax.scatter(x[route], y[route], s=60, color=colour, marker=marker, label=f"{route}, {label}", **look)


FIGURES = {
    "model": Output((), "the graphical model", model_diagram),
    "fig1": Output((), "overview: scenario 1 before and after each transformation", fig1),
    "fig2": Output(("embedding",), "pretrained representations, every route", fig2, "embeddings"),
    "fig3": Output(("methods",), "trade-off of all methods, scenarios 1 and 4", fig3),
    "fig4": Output(("population",), "population D, C, I, SAP, nSAP along alpha", fig4),
    "fig5": Output(("tcga",), "breast cancer multi-omics", fig5, "tcga"),
    "sup_emb": Output((), "correlation matrices of pretrained representations", sup_emb, "embeddings"),
    **{
        f"sup_sim{i}_fig{part}": Output(("methods",), f"scenario {i} ({name}): {what}", partial(draw, name))
        for part, what, draw in (
            (1, "matrices, frontier, all methods", scenario_figure),
            (2, "eight metrics along alpha and b", sweep_figure),
        )
        for i, name in enumerate(SIMULATED, 1)
    },
    "sup_consistency": Output(("consistency",), "recovery as N grows", sup_consistency),
    "steering": Output(("steering",), "what moving one dimension does to linear probes", steering_figure),
    "sup_time": Output(("runtime",), "seconds a fit, all methods", sup_time),
}
