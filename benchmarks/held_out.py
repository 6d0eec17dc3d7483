"""Held-out numbers against the truth: coverage of intervals, bias of coupling, few labels, donors.

python benchmarks/held_out.py [--reps 200] [--jobs 2] [--parts coverage] [--again] [--out docs/held_out.csv]
                              [--write docs/held_out.md]

Data are simulated from populations with known covariances, so alignment and coupling of a fitted map on new rows are
formulas. Every setting is written to --out when it is done, and a setting that is there is not run again; --again runs
it again and replaces it. --write puts the tables of the --parts into a page, after the line '<!-- measured -->', and
leaves the tables of other parts there as they are. Some settings or parts can be measured today and others tomorrow.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock
from zlib import crc32

import numpy as np
import pandas as pd
from scipy.special import gamma
from scipy.stats import norm

import covalign as ca
from covalign._core.text_tables import markdown
from covalign.closed_form import regimes
from covalign.closed_form.shrinkage import Ridge
from covalign.moments import block_sizes

for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # of worker processes

LAMS = (0.0, 0.5, 1.0)
NEAR, NEAR_SHARE = 0.03, 0.15  # the bias of coupling that is allowed
PERMUTATIONS = 199
NEW, FACTORS = 5000, 10  # of factor models: new samples, factors
MIXED = (0.7, 0.6, 0.5, 0.0, 0.0)  # effects
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)  # of p-values


class Setting(NamedTuple):
    """A population and how much of it is seen: z = spectrum * x, y = a function of effect B'x + noise."""

    n: int
    K: int
    P: int = 3
    effect: float | tuple[float, ...] = 0.7  # of all covariates, or of each
    kind: str = "normal"  # or exp, t3, flag5, flag10 (per cent)
    groups: int = 0
    decay: float = 0.0  # spectrum k^-decay
    noise: float = 0.3  # correlation of the noise of any two covariates
    labels: int = 0  # rows that have covariates, 0: all
    few_parts: bool = False  # as many buckets as folds, as if K were large
    ridge: float | None = None  # None: chosen by held-out alignment
    share: float = 1.0  # of the repetitions

    def named(self) -> str:
        """The setting in words."""
        words = [f"n = {self.n}, K = {self.K}, P = {self.P}"]
        words += [{0.0: "no effect", 0.7: "", MIXED: "effects .7 to 0"}.get(self.effect, f"effect {self.effect}")]
        words += [
            {"normal": "", "t3": "t with 3 df"}.get(self.kind, self.kind.replace("flag", "flags of ") + self.per_cent)
        ]
        words += [f"{self.groups} groups" if self.groups else "", f"spectrum k^-{self.decay:g}" if self.decay else ""]
        words += [f"{self.labels} labels" if self.labels else "", "5 buckets" if self.few_parts else ""]
        words += ["" if self.ridge is None else f"ridge {self.ridge:g}" if self.ridge else "no ridge"]
        return ", ".join(word for word in words if word)

    @property
    def per_cent(self) -> str:
        return " %" if self.kind.startswith("flag") else ""


class Drawn(NamedTuple):
    """Rows, and what is true of all rows: variances of z, and cov(z, y) / sd(y)."""

    Z: np.ndarray
    Y: np.ndarray
    groups: np.ndarray | None
    variance: np.ndarray
    s_zy: np.ndarray

    def alignment(self, T: np.ndarray) -> np.ndarray:
        """corr(t_p'z, y_p) on new rows."""
        return np.sum(T * self.s_zy.T, axis=1) / np.sqrt(np.sum(T**2 * self.variance, axis=1))

    def coupling(self, T: np.ndarray) -> float:
        """|corr(Tz) - I|^2 on new rows."""
        S = (T * self.variance) @ T.T
        sd = np.sqrt(np.diag(S))
        return float(np.sum((S / np.outer(sd, sd) - np.eye(len(S))) ** 2))


def slope(kind: str) -> float:
    """corr(f(y), y) of a standard normal y, f the function that makes a covariate of this kind."""
    if kind == "exp":
        return 1 / np.sqrt(np.e - 1)
    if kind == "t3":
        return np.sqrt(3 / 2) * gamma(1) / gamma(1.5) / np.sqrt(3)
    if kind.startswith("flag"):
        share = float(kind[4:]) / 100
        return norm.pdf(norm.ppf(share)) / np.sqrt(share * (1 - share))
    return 1.0


def drawn(s: Setting, rng: np.random.Generator) -> Drawn:
    """Rows of a new population. A flag that no row has is drawn again."""
    B, effect = rng.normal(size=(s.K, s.P)), np.asarray(s.effect)
    B /= np.linalg.norm(B, axis=0)
    root = np.linalg.cholesky(s.noise + (1 - s.noise) * np.eye(s.P))
    spectrum = (1.0 + np.arange(s.K)) ** -s.decay
    while True:
        x, e = rng.normal(size=(s.n, s.K)), rng.normal(size=(s.n, s.P))
        of = np.arange(s.n) % s.groups if s.groups else None
        if of is not None:  # 64 % of all variance is between groups
            x = 0.6 * x + 0.8 * rng.normal(size=(s.groups, s.K))[of]
            e = 0.6 * e + 0.8 * rng.normal(size=(s.groups, s.P))[of]
        y = effect * (x @ B) + np.sqrt(1 - effect**2) * (e @ root.T)
        if s.kind == "exp":
            y = np.exp(y)
        elif s.kind == "t3":
            y = y * np.sqrt(3 / rng.chisquare(3, size=(s.n, 1)))
        elif s.kind.startswith("flag"):
            y = (y > -norm.ppf(float(s.kind[4:]) / 100)).astype(float)
        if y.std(axis=0).min() > 0:
            break
    if s.labels:
        y[rng.permutation(s.n)[s.labels :]] = np.nan
    return Drawn(x * spectrum, y, of, spectrum**2, effect * slope(s.kind) * spectrum[:, None] * B)


def fitted(data: Drawn, s: Setting, **options: Any) -> ca.LatentAligner:
    size = 0 if s.few_parts else block_sizes.BUCKETS_BYTES
    with mock.patch.object(block_sizes, "BUCKETS_BYTES", size):
        return ca.LatentAligner(**options).fit(data.Z, data.Y, groups=data.groups)


# -- one repetition of every part: {quantity: value} ------------------------------------------------------------------


def covered(s: Setting, rng: np.random.Generator) -> dict[str, float]:
    """How many of the P intervals hold the truth; NaN intervals count apart."""
    data = drawn(s, rng)
    al = fitted(data, s)
    if s.ridge is None:
        table, mean, T = al.summary(), al.mean_alignment_, al.T_
    else:
        table, mean, T = at_ridge(al, Ridge(s.ridge))
    return judged(table, mean, data.alignment(T))


def judged(table: pd.DataFrame, mean: Any, truth: np.ndarray) -> dict[str, float]:
    """Which intervals hold the truth."""
    low, high, there = table["low"].to_numpy(), table["high"].to_numpy(), table["high"].notna().to_numpy()
    return {
        "covered": _mean(((low <= truth) & (truth <= high))[there]),
        "below": _mean((truth < low)[there]),
        "above": _mean((truth > high)[there]),
        "true": _mean(truth[there]),
        "reported": _mean(table["held_out"].to_numpy()[there]),
        "width": _mean((high - low)[there]),
        "known": _mean(there),
        "mean covered": float(mean["low"] <= truth.mean() <= mean["high"]),
    }


def at_ridge(al: ca.LatentAligner, ridge: Ridge) -> tuple[pd.DataFrame, Any, np.ndarray]:
    """Held-out numbers and the map of a ridge that nothing chose."""
    polar = regimes.whitened_polar(al.moments_, *ridge)
    checked = al._validated()
    held = checked.held_out(polar, checked.ridges(None, ridge), ridge, al.n_groups_ is not None)
    found = held.measure(al.regime_, al.lam_)
    table = pd.DataFrame(found.alignment._asdict()).rename(columns={"value": "held_out"})
    return table, found.mean._asdict(), regimes.turned(polar, al.regime_, al.lam_)


def informed(s: Setting, rng: np.random.Generator) -> dict[str, float]:
    """Intervals of a factor model with K features for n samples; what is true is measured on new samples."""
    data = ca.simulate.scenario(
        "PN",
        n_samples=s.n + NEW,
        n_features=s.K,
        n_factors=FACTORS,
        noise=s.noise,
        random_state=int(rng.integers(2**31)),
    )
    X, Y = data.X, data.Y / data.Y.std(axis=0)
    Y = s.effect * Y + np.sqrt(1 - s.effect**2) * rng.normal(size=Y.shape)
    fa = ca.InformedFactorAnalysis(FACTORS).fit(X[: s.n], Y[: s.n]).at(0.5)
    placed = fa.transform(X[s.n :])[:, : s.P]
    truth = [np.corrcoef(z, y)[0, 1] for z, y in zip(placed.T, Y[s.n :].T, strict=True)]
    return judged(fa.summary(), fa.mean_alignment_, np.array(truth))


def coupled(s: Setting, rng: np.random.Generator) -> dict[str, float]:
    """Coupling on new rows, and the held-out coupling that is reported."""
    data = drawn(s, rng)
    al = fitted(data, s)
    reported = al.frontier(LAMS).set_index("lam")["held_out_coupling"]
    found = {f"true {lam:g}": data.coupling(al.at(lam=lam).T_) for lam in LAMS}
    found |= {f"reported {lam:g}": float(reported[lam]) for lam in LAMS}
    return found | {f"bias {lam:g}": found[f"reported {lam:g}"] - found[f"true {lam:g}"] for lam in LAMS}


def labelled(s: Setting, rng: np.random.Generator) -> dict[str, float]:
    """Few labels: with Z of the unlabelled rows ("pairs") and without ("drop")."""
    data, found = drawn(s, rng), {}
    for missing in ("pairs", "drop"):
        try:
            al = fitted(data, s, missing=missing)
            table = al.summary()
        except ValueError:
            found[f"{missing} works"] = 0.0
            continue
        truth, there = data.alignment(al.T_), table["high"].notna().to_numpy()
        inside = ((table["low"] <= truth) & (truth <= table["high"])).to_numpy()[there]
        found |= {f"{missing} works": 1.0, f"{missing} true": _mean(truth), f"{missing} known": _mean(there)}
        found |= {f"{missing} reported": _mean(table["held_out"].to_numpy()[there])}
        found |= {f"{missing} covered": _mean(inside), f"{missing} width": _mean((table["high"] - table["low"])[there])}
    return found


def nested(s: Setting, rng: np.random.Generator) -> dict[str, float]:
    """The summary, which chooses the shrinkage inside every training set, against one choice on the same folds.

    ``fits`` is the true alignment of the fits without a fold, which a held-out number measures. Its difference from
    that number is noisy. The same difference at a shrinkage that nothing chose is as noisy, so it is subtracted. What
    is left (``optimism``) is the bias of the choice, without that of a correlation of few rows, which both have.
    """
    data = drawn(s, rng)
    al = fitted(data, s)
    checked, one = al._validated(), Ridge(al.shrinkage_, al.scale_)
    ridges = {"summary": checked.ridges(al.shrinkage_path_ if al._nested() else None, one)}
    ridges |= {
        name: [ridge] * len(ridges["summary"]) for name, ridge in (("one", one), ("fixed", Ridge(s.K / (s.n + s.K))))
    }
    found = {"true": _mean(data.alignment(al.T_))}
    for name, chosen in ridges.items():
        held = checked.held_out(al._polar(), chosen, one, data.groups is not None)
        maps = [regimes.mixing(of.polar, al.regime_, al.lam_) @ of.polar.T_0 for of in held.folds]
        found[name] = float(held.measure(al.regime_, al.lam_).mean.value)
        found[f"{name} fits"] = _mean([_mean(data.alignment(T)) for T in maps])
    error = {name: found[name] - found[f"{name} fits"] for name in ridges}
    for name in ("summary", "one"):
        found |= {f"{name} optimism": error[name] - error["fixed"], f"{name} against fits": error[name]}
        found |= {f"{name} against map": found[name] - found["true"]}
    return found


def donors(s: Setting, rng: np.random.Generator) -> dict[str, float]:
    """Cells of donors. Age has no effect, dose moves the first dimension by its standard deviation."""
    donor = rng.integers(0, s.groups, s.n)
    Z = rng.normal(size=(s.groups, s.K))[donor] + rng.normal(size=(s.n, s.K))
    Y = pd.DataFrame({"age": rng.uniform(20, 80, s.groups)[donor], "dose": rng.normal(size=s.n)})
    Z[:, 0] += Y["dose"]
    found = {}
    for name, groups in (("ungrouped", None), ("grouped", donor)):
        al = ca.LatentAligner().fit(Z, Y, groups=groups)
        table, p = (
            al.summary(),
            al.permutation_test(Z, Y, PERMUTATIONS, int(rng.integers(2**31)), groups=groups)["p_value"],
        )
        # Cells of new donors: var(z) = 2 I + 1 in the first dimension, cov(z, age) = 0, cov(z, dose) = e_1.
        first, length = al.T_[:, 0], np.sum(al.T_**2, axis=1)
        truth = {"age": 0.0, "dose": float((first / np.sqrt(2 * length + first**2))[1])}
        for y in Y:
            low, high = table.loc[y, ["low", "high"]]
            found |= {f"{name} {y} true": truth[y], f"{name} {y} covered": float(low <= truth[y] <= high)}
            found |= {f"{name} {y}": table.loc[y, "held_out"], f"{name} {y} p": p[y]}
            found |= {f"{name} {y} holds 0": float(low <= 0 <= high), f"{name} {y} width": high - low}
    return found


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else np.nan


# -- settings ---------------------------------------------------------------------------------------------------------

NONE = {"effect": 0.0}
COVERAGE = [
    *(Setting(60, 5), Setting(60, 5, **NONE), Setting(60, 120), Setting(60, 120, **NONE)),
    *(Setting(100, 20), Setting(100, 20, effect=0.3), Setting(100, 20, effect=0.98)),
    *(Setting(100, 60, effect=0.9), Setting(100, 200, effect=0.9)),
    *(Setting(100, 200), Setting(100, 200, **NONE)),
    *(Setting(200, 10), Setting(200, 10, **NONE), Setting(1000, 50), Setting(1000, 50, **NONE)),
    *(Setting(5000, 50), Setting(5000, 50, **NONE)),
    *(Setting(300, 20, kind="exp"), Setting(2000, 20, kind="exp"), Setting(300, 20, kind="t3")),
    *(Setting(n, 5, effect=0.8, kind=kind) for kind in ("exp", "t3") for n in (100, 1000)),
    *(Setting(60, 10, kind="flag5"), Setting(300, 20, kind="flag5"), Setting(1000, 20, kind="flag5")),
    *(Setting(1000, 5, kind="flag5", **NONE), Setting(100, 20, kind="flag10")),
    *(Setting(400, 10, groups=g, effect=e) for g in (40, 20, 12, 8) for e in (0.7, 0.0)),
    *(Setting(300, 20, few_parts=True), Setting(300, 20, few_parts=True, **NONE)),
    *(Setting(400, 10, groups=20, few_parts=True, effect=e) for e in (0.7, 0.0)),
    *(Setting(60, 50, effect=0.98), Setting(100, 60, effect=0.95), Setting(100, 150, effect=0.98, decay=1)),
    *(Setting(100, k, effect=0.95, ridge=0.0) for k in (20, 60, 75, 85, 95, 130)),
    *(Setting(100, 60, effect=0.95, ridge=0.01), Setting(100, 60, effect=0.0, ridge=0.0)),
    Setting(300, 850, share=0.15),
]
INFORMED = [
    *(Setting(60, 50, 5, 1.0, share=0.3), Setting(100, 100, 5, 1.0, noise=1.0, share=0.3)),
    *(Setting(100, 100, 5, 0.6, noise=1.0, share=0.3), Setting(100, 100, 5, 0.0, noise=1.0, share=0.3)),
    *(Setting(100, 300, 5, 1.0, noise=1.0, share=0.2), Setting(500, 50, 5, 1.0, noise=1.0, share=0.3)),
]
DEPENDENT = {"noise": 0.5}
COUPLING = [
    *(Setting(100, 20, 5, **DEPENDENT), Setting(200, 100, 10, **DEPENDENT), Setting(1000, 100, 10, **DEPENDENT)),
    *(Setting(60, 10, 3, **DEPENDENT), Setting(500, 20, 2, **DEPENDENT), Setting(300, 50, 8, **DEPENDENT)),
    *(Setting(100, 200, 5, **DEPENDENT), Setting(300, 300, 5, **DEPENDENT)),
    *(Setting(200, 100, 10, decay=1, **DEPENDENT), Setting(500, 50, 6, decay=0.5, **DEPENDENT)),
    *(Setting(100, 20, 5, effect=0.3, **DEPENDENT), Setting(200, 20, 5, effect=0.0, **DEPENDENT)),
    *(Setting(400, 20, 4, groups=40, **DEPENDENT), Setting(400, 10, 3, groups=20, **DEPENDENT)),
    *(Setting(400, 10, 3, groups=8, **DEPENDENT), Setting(400, 10, 3, groups=5, **DEPENDENT)),
    *(Setting(3000, 20, 3, groups=8, **DEPENDENT), Setting(200, 50, 3, groups=15, **DEPENDENT)),
]
LABELS = [Setting(300, 20, 2, 0.9, decay=d, labels=m, share=0.5) for d in (0, 1) for m in (3, 5, 10, 20)]
NESTED = [
    *(Setting(60, 5, share=0.5), Setting(60, 5, effect=0.0, share=0.5), Setting(100, 20, effect=0.3, share=0.5)),
    *(Setting(100, 200, share=0.5), Setting(100, 200, effect=0.0, share=0.5), Setting(1000, 50, share=0.25)),
    *(Setting(60, 20, 5, MIXED), Setting(100, 200, 5, MIXED), Setting(200, 100, 5, MIXED)),
    Setting(1000, 100, 5, MIXED, share=0.5),
]
PARTS: dict[str, tuple[Callable[[Setting, np.random.Generator], dict[str, float]], list[Setting]]] = {
    "donors": (donors, [Setting(3000, 20, 2, groups=8)]),
    "coupling": (coupled, COUPLING),
    "labels": (labelled, LABELS),
    "coverage": (covered, COVERAGE),
    "factors": (informed, INFORMED),
    "nested": (nested, NESTED),
}


def repetition(part: str, s: Setting, rep: int) -> dict[str, float]:
    warnings.simplefilter("ignore")  # few groups and few labels are the point
    return PARTS[part][0](s, np.random.default_rng([crc32(s.named().encode()), rep]))


def summarised(part: str, s: Setting, found: list[dict[str, float]]) -> pd.DataFrame:
    """The mean of every quantity over repetitions and its Monte-Carlo error; quantiles of p-values."""
    wide = pd.DataFrame(found)
    count = wide.notna().sum()
    rows = {name: (wide[name].mean(), wide[name].std() / np.sqrt(count[name])) for name in wide}
    for name in (name for name in wide if name.endswith(" p")):
        rows |= {f"{name} {q:g}": (wide[name].quantile(q), np.nan) for q in QUANTILES}
    values = [(part, s.named(), len(found), name, *pair) for name, pair in rows.items()]
    return pd.DataFrame(values, columns=["part", "setting", "reps", "quantity", "mean", "error"])


def run(out: Path, reps: int, jobs: int, parts: list[str], again: bool = False) -> None:
    """Run what is not in ``out`` yet, or everything again."""
    done = pd.read_csv(out) if out.exists() and not again else pd.DataFrame(columns=["part", "setting"])
    with ProcessPoolExecutor(jobs) as pool:
        for part in parts:
            for s in PARTS[part][1]:
                if ((done["part"] == part) & (done["setting"] == s.named())).any():
                    continue
                count = max(2, round(reps * s.share))
                frame = summarised(
                    part, s, list(pool.map(repetition, [part] * count, [s] * count, range(count), chunksize=5))
                )
                kept(out, frame.round(5))
                print(part, s.named(), frame.set_index("quantity")["mean"].round(3).to_dict(), flush=True)


def kept(out: Path, frame: pd.DataFrame) -> None:
    """Put a setting into ``out``, in the place of the same setting if that is there."""
    if out.exists():
        old = pd.read_csv(out)
        same = old["part"].isin(frame["part"]) & old["setting"].isin(frame["setting"])
        frame = pd.concat([old[~same], frame])
    part = out.with_name(f".{out.name}.part")
    frame.to_csv(part, index=False)
    part.replace(out)


# -- tables -----------------------------------------------------------------------------------------------------------


LATEST = {"nested": "summary optimism"}  # settings without this quantity were measured by an earlier version


def tables(out: Path, parts: list[str]) -> list[str]:
    """The tables of some parts, each below its heading."""
    data = pd.read_csv(out)
    made, makers = [], {"donors": donors_table, "coupling": coupling_table, "labels": labels_table}
    makers |= {"coverage": coverage_table, "factors": factors_table, "nested": nested_table}
    for part in parts:
        there = data[data["part"] == part]
        known = set(there.loc[there["quantity"] == LATEST.get(part, there["quantity"]), "setting"])
        there = there[there["setting"].isin(known)]
        if len(there):
            named = [s.named() for s in PARTS[part][1] if s.named() in set(there["setting"])]
            wide = there.pivot_table(index="setting", columns="quantity", values=["mean", "error", "reps"])
            made.append(makers[part](wide.loc[named]))
    return made


def with_tables(page: str, made: list[str]) -> str:
    """The page with these tables, each in the place of that with the same heading, new ones at the end."""
    head, mark, rest = page.partition("<!-- measured -->")
    there = ["### " + text.strip() + "\n" for text in rest.split("### ")[1:]]
    found = {text.partition("\n")[0]: text for text in (*there, *made)}
    return head + mark + "\n\n" + "\n".join(found.values())


def shown(value: float, factor: float = 1.0, digits: int = 3) -> str:
    """A number without -0.000; a dash where there is none."""
    return "-" if np.isnan(value) else f"{round(factor * value, digits) + 0.0:.{digits}f}"


def donors_table(wide: pd.DataFrame) -> str:
    header = [
        "",
        "true on new donors",
        "held out",
        "width",
        "covered, %",
        "holds 0, %",
        "quantiles of p: .1, .25, .5, .75, .9",
    ]
    (row,), rows = wide["mean"].to_dict("records"), []
    for name, title in (("ungrouped", "no groups"), ("grouped", "groups")):
        for y in ("age", "dose"):
            numbers = [f"{row[f'{name} {y}{key}'] + 0.0:.3f}" for key in (" true", "", " width")]
            shares = [f"{100 * row[f'{name} {y} {key}']:.1f}" for key in ("covered", "holds 0")]
            p = ", ".join(f"{row[f'{name} {y} p {q:g}']:.3f}" for q in QUANTILES)
            rows.append([f"{y}, {title}", *numbers, *shares, p])
    return f"### Donors\n\n{int(wide['reps'].max(axis=None))} repetitions.\n\n" + markdown(header, rows)


def coverage_table(wide: pd.DataFrame) -> str:
    header = [
        "setting",
        "repetitions",
        "covered, %",
        "truth below",
        "truth above",
        "true",
        "held out",
        "width",
        "NaN, %",
    ]
    rows = []
    for name, row in wide.iterrows():
        mean = row["mean"]
        share = f"{100 * mean['covered']:.1f} ± {100 * row['error']['covered']:.1f}"
        sides = [f"{100 * mean[side]:.1f}" for side in ("below", "above")]
        numbers = [shown(mean[key]) for key in ("true", "reported", "width")]
        rows.append([name, int(row["reps"]["covered"]), share, *sides, *numbers, f"{100 * (1 - mean['known']):.1f}"])
    return "### Coverage of intervals\n\n" + markdown(header, rows)


def factors_table(wide: pd.DataFrame) -> str:
    _, _, rest = coverage_table(wide).partition("\n\n")
    return f"### Coverage of intervals of factor models\n\n{rest}"


def coupling_table(wide: pd.DataFrame) -> str:
    header = ["setting", "repetitions", *(f"λ = {lam:g}: true, reported" for lam in LAMS), "within .03 or 15 %"]
    rows = []
    for name, row in wide.iterrows():
        mean = row["mean"]
        pairs = [(mean[f"true {lam:g}"], mean[f"reported {lam:g}"]) for lam in LAMS]
        near = all(abs(b - a) <= max(NEAR, NEAR_SHARE * a) for a, b in pairs)
        errors = [row["error"][f"bias {lam:g}"] for lam in LAMS]
        cells = [f"{a:.3f}, {b:.3f} ± {e:.3f}" for (a, b), e in zip(pairs, errors, strict=True)]
        rows.append([name, int(row["reps"]["true 0"]), *cells, "yes" if near else "no"])
    return "### Coupling on new rows\n\n" + markdown(header, rows)


def labels_table(wide: pd.DataFrame) -> str:
    header = ["setting", "rows used", "fits that work, %", "true", "held out", "covered, %", "width", "NaN, %"]
    rows = []
    for name, row in wide.iterrows():
        for missing, used in (("pairs", "all"), ("drop", "labelled")):
            mean = {key: row["mean"].get(f"{missing} {key}", np.nan) for key in _LABELS}
            row_of = [shown(mean["works"], 100, 0), shown(mean["true"]), shown(mean["reported"])]
            row_of += [shown(mean["covered"], 100, 0), shown(mean["width"]), shown(1 - mean["known"], 100, 0)]
            rows.append([name, used, *row_of])
    return "### Few labels\n\n" + markdown(header, rows)


_LABELS = ("works", "true", "reported", "covered", "width", "known")


def nested_table(wide: pd.DataFrame) -> str:
    header = ["setting", "repetitions", "true: map", "true: fits without a fold", "`summary()`"]
    header += ["minus map", "minus fits", "optimism of its choice", "one choice: minus map", "optimism"]
    rows = []
    for name, row in wide.iterrows():
        mean, error = row["mean"], row["error"]
        numbers = [shown(mean[key]) for key in ("true", "summary fits", "summary")]
        keys = [f"summary {kind}" for kind in ("against map", "against fits", "optimism")]
        keys += [f"one {kind}" for kind in ("against map", "optimism")]
        biases = [f"{shown(mean[key])} ± {error[key]:.3f}" for key in keys]
        rows.append([name, int(row["reps"]["true"]), *numbers, *biases])
    return "### The choice of shrinkage\n\n" + markdown(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reps", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--again", action="store_true", help="Run settings that are in --out, too.")
    parser.add_argument("--out", type=Path, default=Path("docs/held_out.csv"))
    parser.add_argument("--write", metavar="PAGE", type=Path, help="Put the tables after the line '<!-- measured -->'.")
    args = parser.parse_args()
    run(args.out, args.reps, args.jobs, args.parts, args.again)
    if args.write:
        args.write.write_text(with_tables(args.write.read_text(), tables(args.out, args.parts)))


if __name__ == "__main__":
    main()
