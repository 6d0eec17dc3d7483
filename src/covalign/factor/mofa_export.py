"""A fitted model in the HDF5 layout of MOFA2, for mofax and for MOFA2's R package.

Values are in the units of the fit (a feature divided by its standard deviation), so that ``data`` is Z W' plus noise,
and ``data + intercepts`` is X divided by these standard deviations, without what confounders explain.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covalign._core.data_errors import rows_not_kept
from covalign._core.extras import optional
from covalign._core.files import replacing
from covalign._core.linalg import Array
from covalign._core.messages import listed, message
from covalign.exceptions import CannotBeSavedError
from covalign.factor.fitted_rows import Rows
from covalign.factor.inference.row_evidence import intercept
from covalign.tables import groups as grouping

ONE_GROUP = "group1"  # MOFA's own name for the only group
TRAINING = ("maxiter", "freqELBO", "start_elbo", "gpu_mode", "stochastic", "seed")
MODEL = {"spikeslab_factors": "False", "spikeslab_weights": "False", "ard_factors": "False", "ard_weights": "True"}
RESERVED = ("sample", "group")  # columns of the metadata that readers make themselves


class Group(NamedTuple):
    """Samples of a group: their positions among all samples, and their names."""

    name: str
    at: NDArray[np.intp]
    samples: list[str]


def write(model: Any, path: Any, groups: Any = None) -> None:
    """Write the model. The file appears only when it is complete."""
    h5py = optional("h5py", "mofa")
    text, buffer = h5py.string_dtype("utf-8"), io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for at, values in layout(model, groups).items():
            large = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if at.startswith("data/") else {}
            dtype = {"dtype": text} if isinstance(values, list) else {}
            file.create_dataset(at, data=values, **large, **dtype)
        file["training_opts"].attrs["names"] = np.array(TRAINING, dtype="S")
        file["model_options/ard_weights"].attrs["names"] = np.array(["likelihoods", *MODEL], dtype="S")
    with replacing(path) as out:
        out.write(buffer.getbuffer())


def layout(model: Any, groups: Any = None) -> dict[str, Any]:
    """Path in the file -> values: arrays, or lists of text."""
    table, Z = model._table, model.factors_
    views = stored_names(table.views, "view")
    members = _groups(model, groups)
    W = {name: model.loadings_[view] for view, name in views.items()}
    shift = {name: intercept(of.w) for name, of in zip(views.values(), model._state.views, strict=False)}
    found: dict[str, Any] = {
        "views/views": list(views.values()),
        "groups/groups": [group.name for group in members],
        **{f"features/{name}": _texts(table.views[view].names) for view, name in views.items()},
        **{f"samples/{group.name}": group.samples for group in members},
        **{f"factors/{group.name}": _texts(model.factor_names_) for group in members},
        **{f"expectations/Z/{group.name}": Z[group.at].T for group in members},
        **{f"expectations/W/{name}": w.T for name, w in W.items()},
        **_options(model, len(views)),
        **_covariates(model, members),
    }
    for view, name in views.items():
        scale = table.views[view]
        centre = scale.mean / scale.sd + shift[name]
        found |= {f"intercepts/{name}/{group.name}": centre for group in members}
        found |= {f"features_metadata/{name}/mean": scale.mean, f"features_metadata/{name}/sd": scale.sd}
    return found | _explained(model, Z, W, np.concatenate(list(shift.values())), members)


def _groups(model: Any, groups: Any) -> list[Group]:
    """The groups in order of appearance; one, if none are given."""
    samples, n = model._table.samples, model._problem.n
    names = [f"sample{i + 1}" for i in range(n)] if samples is None else _texts(samples)
    if groups is None:
        return [Group(ONE_GROUP, np.arange(n), names)]
    labels = grouping.label_texts(groups, n, None if samples is None else pd.Index(samples))
    codes, levels = pd.factorize(np.array(labels, dtype=object))
    stored = stored_names(levels, "group")
    at = {level: np.flatnonzero(codes == code) for code, level in enumerate(levels)}
    return [Group(stored[level], at[level], [names[i] for i in at[level]]) for level in levels]


def _options(model: Any, n_views: int) -> dict[str, Any]:
    """How the model was fitted, in MOFA's terms. It keeps no times: they are NaN."""
    sweeps, seed = len(model.elbo_), model.random_state
    number = float(seed) if isinstance(seed, int | np.integer) else np.nan
    return {
        "model_options/likelihoods": np.array(["gaussian"] * n_views, dtype="S"),
        **{f"model_options/{name}": np.array(value, dtype="S") for name, value in MODEL.items()},
        "training_opts": np.array([model.max_iter, 1, 1, 0, 0, number]),
        "training_stats/elbo": np.asarray(model.elbo_, dtype=np.float64),
        "training_stats/number_factors": np.full(sweeps, float(model.n_factors_)),
        "training_stats/time": np.full(sweeps, np.nan),
    }


def _covariates(model: Any, members: Iterable[Group]) -> dict[str, Any]:
    """The coded covariates in their units, without what confounders explain, as metadata of samples."""
    table, Y = model._table, model._rows.Y
    if Y is None:
        raise rows_not_kept()
    values = np.asarray(Y, dtype=np.float64) * table.sd_y + table.mean_y
    names = stored_names([f"{n}_covariate" if n in RESERVED else n for n in model.covariate_names_], "covariate")
    return {
        f"samples_metadata/{group.name}/{name}": values[group.at, p]
        for group in members
        for p, name in enumerate(names.values())
    }


def _explained(model: Any, Z: Array, W: Mapping[str, Array], shift: Array, members: list[Group]) -> dict[str, Any]:
    """MOFA's shares of variance, in percent, and the rows if they are in memory.

    Of factor k in a view, 1 - |X - z_k w_k'|^2 / |X|^2 over observed cells; of all of them, with Z W'.
    """
    table, kept = model._table, isinstance(model._rows, Rows)
    sums, data = np.zeros((len(members), len(W), Z.shape[1] + 2)), {}
    for here, parts, _, C in model._rows.chunks(table):
        X = table.standardised(parts, C) - shift
        for g, group in enumerate(members):
            at = group.at[(group.at >= here.start) & (group.at < here.stop)]
            for v, (name, where) in enumerate(zip(W, table.bounds, strict=True)):
                rows = X[at - here.start, where]
                sums[g, v] += _squares(rows, Z[at], W[name])
                if kept:
                    data[f"data/{name}/{group.name}"] = rows
    total = np.where(sums[..., -1] > 0, sums[..., -1], np.inf)[..., None]  # a view without values explains nothing
    shares = 100 * sums[..., :-1] / total
    return {
        **data,
        **{f"variance_explained/r2_per_factor/{group.name}": shares[g, :, :-1] for g, group in enumerate(members)},
        **{f"variance_explained/r2_total/{group.name}": shares[g, :, -1] for g, group in enumerate(members)},
    }


def _squares(X: Array, Z: Array, W: Array) -> Array:
    """|X|^2 - |X - z_k w_k'|^2 of every factor, the same of all factors, and |X|^2, over observed cells."""
    seen = ~np.isnan(X)
    filled = np.where(seen, X, 0.0)
    single = np.sum(2 * (filled.T @ Z) * W - (seen.T.astype(np.float64) @ Z**2) * W**2, axis=0)
    total = np.sum(filled**2)
    left = np.sum(np.where(seen, filled - Z @ W.T, 0.0) ** 2)
    return np.array([*single, total - left, total])


def stored_names(names: Iterable[Any], what: str) -> dict[Any, str]:
    """Name -> its name in the file, where a slash would open a group: it becomes a hyphen, as MOFA2 advises."""
    every = list(names)
    stored = dict(zip(every, (text.replace("/", "-") for text in _texts(every)), strict=True))
    if len(set(stored.values())) < len(every) or any(name.strip(".") == "" for name in stored.values()):
        need = f"every {what} needs its own name in the file, where '/' becomes '-' and '.' is not allowed"
        raise CannotBeSavedError(message(need, got=listed(every), remedy="rename them"))
    return stored


def _texts(names: Iterable[Any]) -> list[str]:
    """Names as text that HDF5 can store."""
    texts = [str(name) for name in names]
    wrong = [
        text for text in texts if "\0" in text or text.encode(errors="ignore") != text.encode(errors="surrogatepass")
    ]
    if wrong:
        need = "names need to be valid text without the character 0"
        raise CannotBeSavedError(message(need, got=listed(map(ascii, wrong)), remedy="rename them"))
    return texts
