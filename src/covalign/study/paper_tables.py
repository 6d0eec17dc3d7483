"""The tables of the paper under their names there, and a comparison of its inference with ours, as Markdown."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pandas as pd

from covalign._core.text_tables import markdown
from covalign.closed_form import regimes, simulate
from covalign.study import baselines, claim_verdicts, claims, contenders
from covalign.study.embedding_table import embedding_table
from covalign.study.experiments import EXPERIMENTS, Output
from covalign.study.profiles import SIMULATED, Inputs, Profile
from covalign.study.results_store import Store, rows
from covalign.study.simulations import INFERENCES
from covalign.study.steering_figure import steering_table


def summaryt(store: Store, profile: Profile, inputs: Inputs) -> str:
    """The transformations and the alignment of each dimension, with the numbers of scenario 1."""
    m = simulate.population_moments("PN")
    polar = regimes.whitened_polar(m)
    formulas = {
        "exclusive": ("T_ex", "unit_rows(M^-1) T_0", "1 / sqrt((M^-2)_pp)"),
        "independent": ("T_0", "V U' S_z^(-1/2)", "M_pp"),
        "tunable": (
            "T_lambda",
            "unit_rows((1-λ) I + λ M) T_0",
            "(((1-λ) I + λ M) M)_pp / sqrt((((1-λ) I + λ M)^2)_pp)",
        ),
        "strongest": ("T_1", "unit_rows(M) T_0", "sqrt((M^2)_pp)"),
    }
    lines = []
    for regime, (name, T, aligned) in formulas.items():
        values = regimes.alignment(regimes.turned(polar, regime, 0.5), m)
        lines.append([name, T, aligned, " ".join(f"{value:.3f}" for value in values)])
    return markdown(["regime", "T", "alignment of dimension p", "scenario PN (λ = 1/2)"], lines)


def sup_scenarios(store: Store, profile: Profile, inputs: Inputs) -> str:
    """The correlations of the covariates."""
    parts = []
    for i, name in enumerate(SIMULATED, 1):
        S = simulate.covariate_correlation(name)
        rank = np.linalg.matrix_rank(S)
        parts.append(
            f"Scenario {i} ({name}), rank {rank}:\n\n" + markdown([f"y{j}" for j in range(len(S))], S.round(4).tolist())
        )
    return "\n".join(parts)


def sup_sim_par(store: Store, profile: Profile, inputs: Inputs) -> str:
    """The parameters that are fixed."""
    beta = ", ".join(f"{value:g}" for value in simulate.coefficients())
    lines = {"N": profile.n, "D": profile.d, "K": profile.k, "β": beta, "θ, noise to signal": 0.1}
    lines |= {"repetitions": profile.reps, "iterations": profile.budget}
    return markdown(["parameter", "value"], lines.items())


def sup_vary_par(store: Store, profile: Profile, inputs: Inputs) -> str:
    """The parameters that vary. The b grid of the paper (1/3, 1/2, 2/3, 3/4, 1) is not evenly spaced; ours is."""
    lines = [["α", ", ".join(f"{a:g}" for a in profile.alphas)], ["b", ", ".join(f"{b:.3g}" for b in profile.bs)]]
    return markdown(["parameter", "values"], [*lines, ["λ", ", ".join(f"{lam:g}" for lam in profile.lams)]])


def sup_methods(store: Store, profile: Profile, inputs: Inputs) -> str:
    """The methods of the comparison, and whether each can run here."""
    lines = []
    for method in baselines.catalogue():
        about = (type(method).__doc__ or "").strip().splitlines()[0]
        lines.append([method.name, "paired" if method.paired else "matched", about, method.absent() or "here"])
    return markdown(["method", "factors", "what it is", "status"], lines)


def inference(store: Store, profile: Profile, inputs: Inputs) -> str:
    """Bound and recovery (mean ± sd over repetitions), mean sweeps, median seconds."""
    frame, lines = rows(store, "inference", profile), []
    for (scenario, n), part in frame.groupby(["scenario", "n"], sort=False):
        wide = part.pivot_table(index="rep", columns=["metric", "method"], values="value")
        paper = wide["bound"]["paper"]
        for method in (name for name in INFERENCES if name in wide["bound"]):
            one = wide.xs(method, axis=1, level="method")
            gain = one["bound"] - paper
            lines.append([
                scenario, n, method, f"{gain.mean():+.1f} ± {gain.std():.1f}", claim_verdicts.spread(one["recovery"]),
                claim_verdicts.spread(one["weakest"]), f"{one['sweeps'].mean():.0f}", f"{one['seconds'].median():.3f}",
            ])  # fmt: skip
    header = ["scenario", "N", "inference", "bound over the paper's (nats)", "recovery", "weakest factor"]
    header += ["sweeps", "seconds"]
    note = (
        f"\n{frame['rep'].nunique()} repetitions. Recovery: mean correlation of the informed factors with the truth. "
        "A mean-field and a full posterior of the same model have different bounds below the same evidence, so the "
        "higher is the tighter. Our two rows have a prior of beta that the paper has not: its cost is in their bounds. "
        + bought(frame, min(frame["n"]))
        + " Seconds are medians; other programs ran on the machine, so they are orders of magnitude.\n"
    )
    return markdown(header, lines) + note


def bought(frame: pd.DataFrame, n: int) -> str:
    """What the higher bound of the full posterior buys at this N: the scenarios whose recovery rises.

    It rises if the mean of the paired differences is above two standard errors.
    """
    gains: list[float] = []
    better: dict[str, bool] = {}
    for scenario, part in frame[frame["n"] == n].groupby("scenario", sort=False):
        wide = part.pivot_table(index="rep", columns=["metric", "method"], values="value")
        more = {metric: wide[metric]["full, converged"] - wide[metric]["paper"] for metric in ("bound", "recovery")}
        gains.append(more["bound"].mean())
        better[str(scenario)] = bool(more["recovery"].mean() > 2 * more["recovery"].std() / np.sqrt(len(wide)))
    names = [name for name, rises in better.items() if rises]
    others = [name for name, rises in better.items() if not rises]
    text = f"The {min(gains):+.0f} to {max(gains):+.0f} nats at N = {n} buy "
    if not names:
        return f"{text}no recovery in any scenario."
    return f"{text}recovery in {', '.join(names)}" + (f", and none in {', '.join(others)}." if others else ".")


TABLES = {
    "summaryt": Output((), "the transformations", summaryt),
    "sup_scenarios": Output((), "correlations of the covariates", sup_scenarios),
    "sup_sim_par": Output((), "fixed parameters", sup_sim_par),
    "sup_vary_par": Output((), "varied parameters", sup_vary_par),
    "sup_methods": Output((), "methods compared", sup_methods),
    "embedding": Output(("embedding",), "fig2 in numbers, with intervals", embedding_table, "embeddings"),
    "steering_table": Output(("steering",), "the steering figure in numbers, with intervals", steering_table),
    "inference": Output(("inference",), "the paper's inference against ours", inference),
}


def claims_page(store: Store, profile: Profile, inputs: Inputs) -> str:
    """docs/claims.md: every claim with its verdict, then the inference table."""
    found = claims.table(store, profile)
    lines = [
        "# The paper's claims, measured",
        "",
        "Written by `covalign reproduce` from the result files; not edited by hand.",
        "",
        "; ".join(f"{count} {name}" for name, count in found["verdict"].value_counts().items()) + ".",
        repetitions(store),
        "",
        markdown(
            ["", "claim", "where", "measured", "verdict"],
            found[["claim", "statement", "where", "measured", "verdict"]].to_numpy(),
        ),
    ]
    with suppress(LookupError):
        lines += ["## The paper's inference and ours", "", inference(store, profile, inputs)]
    return "\n".join(lines)


def repetitions(store: Store) -> str:
    """The number of repetitions of the simulations, and those of the methods that have fewer."""
    counts = store.frame("methods").groupby("method")["rep"].nunique()
    slow = counts[[name for name in counts.index if str(name).startswith(("SOFA", "MOFA-FLEX", "MuVI"))]]
    text = f"Repetitions of simulations: {counts.max() if len(counts) else 0}"
    fewer = [f"{name} {counts[name]}" for name in contenders.SECONDS if name in counts and counts[name] < counts.max()]
    text += f" ({', '.join(fewer)})." if fewer else "."
    few = " to ".join(map(str, sorted(set(slow))))
    return text + (f" Methods that take a minute a fit: {few}." if few else "")


CLAIMS = Output(tuple(EXPERIMENTS), "the claims of the paper, with a verdict on each", claims_page)
