"""The published packages ("peers"), run by another Python interpreter; data and results are exchanged as files.

``make peers`` installs them in ``.venv-peers``, so that their pinned versions do not affect ours. The interpreter is
the one that the environment variable COVALIGN_PEERS names, else the one in ``.venv-peers`` in the current folder or
beside our own environment. A peer that is not installed there is reported as absent and is not replaced by another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from covalign._core.linalg import Array
from covalign.exceptions import PeerError
from covalign.study.baselines.linear_decoder import posterior_means
from covalign.study.baselines.method import Cost, Fitted

WORKER = Path(__file__).with_name("peer_worker.py")
REMEDY = "install the peers with  make peers  or name an interpreter that has them in COVALIGN_PEERS."


@dataclass(frozen=True)
class Peer:
    """A package in the other environment.

    ``timeout`` is in seconds, ``cpu_limit`` in seconds of computation; None sets no limit.
    """

    timeout: float | None = field(default=None, kw_only=True)
    cpu_limit: float | None = field(default=None, kw_only=True)

    key: ClassVar[str]  # its name in the worker
    package: ClassVar[str]
    paired: ClassVar[bool]
    takes_gaps: ClassVar[bool] = True  # missing cells are NaN; without it, they are the mean of their feature

    @property
    def name(self) -> str:
        """The name in tables and figures."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """The settings that its function in the worker needs: all fields but the limits."""
        return {name: value for name, value in asdict(self).items() if name not in ("timeout", "cpu_limit")}

    def absent(self) -> str | None:
        """Why it cannot run here, with the remedy, or None. The peer is not imported for this."""
        python = interpreter()
        if python is None:
            return f"there is no environment with {self.package}: {REMEDY}"
        versions, trouble = ask(python)
        if trouble is not None:
            return f"{python} does not answer ({trouble}): {REMEDY}"
        if versions.get(self.key, {}).get(self.package) is None:
            return f"{self.package} is not installed for {python}: {REMEDY}"
        return None

    def fit(self, views: dict[str, Array], Y: Array, n_factors: int, seed: int, budget: int) -> Fitted:
        """Write the task, run the worker, read its answer. Constant features get loadings of 0."""
        python = interpreter()
        if python is None:
            raise ValueError(f"{self.name} cannot run here: {self.absent()}")
        varying = {name: np.nanmax(view, axis=0) > np.nanmin(view, axis=0) for name, view in views.items()}
        shown = {name: view[:, varying[name]] for name, view in views.items()}
        said = {"n_factors": int(n_factors), "seed": int(seed), "budget": int(budget), "settings": self.settings()}
        said["cpu_limit"] = self.cpu_limit
        with tempfile.TemporaryDirectory(prefix="covalign-") as folder:
            task, answer = (str(Path(folder) / name) for name in ("task.npz", "answer.npz"))
            write_task(task, shown, Y, said)
            _, trouble = call(python, [self.key, task, answer], folder, self.timeout)
            if trouble is not None or not Path(answer).exists():
                raise PeerError(f"{self.name} failed: {trouble or 'it wrote no answer'}")
            fitted = read_answer(answer, self.name, varying, (len(Y), n_factors))
        return fitted._replace(place=partial(posterior_means, views, fitted.factors, fitted.loadings or {}))


@dataclass(frozen=True)
class MOFA(Peer):
    """Multi-omics factor analysis (mofapy2) with the paper's settings; at most ``budget`` iterations.

    >>> import covalign as ca
    >>> from covalign import baselines
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> baselines.run(baselines.MOFA(), s.X, s.Y, n_factors=10)  # after make peers  # doctest: +SKIP
    """

    key = "mofa"
    package = "mofapy2"
    name = "MOFA"
    paired = False


@dataclass(frozen=True)
class SOFA(Peer):
    """Semi-supervised factor analysis (biosofa): factor p is guided by covariate p.

    ``scaling_factor`` is the weight of the covariates against the features. Covariates of two values are Bernoulli, all
    others Gaussian. A guided factor has the sign of its regression slope, so that it rises with its covariate.
    ``budget`` is the number of steps.

    >>> import covalign as ca
    >>> from covalign import baselines
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> baselines.run(baselines.SOFA(), s.X, s.Y, n_factors=10)  # after make peers  # doctest: +SKIP
    """

    scaling_factor: float = 0.1
    learning_rate: float = 0.01

    key = "sofa"
    package = "biosofa"
    paired = True

    @property
    def name(self) -> str:
        """SOFA with its scaling factor."""
        return f"SOFA (sf={self.scaling_factor:g})"


@dataclass(frozen=True)
class MOFAFLEX(Peer):
    """MOFA-FLEX (mofaflex) with one guided factor for each covariate, among K in all: it needs P < K.

    Prior of the weights and learning rate are those of the package's preset for MOFA; ``guiding_scale`` = 1 gives the
    covariates the weight that a scaling factor of 0.1 gives them in SOFA. Likelihoods and signs are as in SOFA. It
    stops by its own rule, or after ``budget`` epochs.

    >>> import covalign as ca
    >>> from covalign import baselines
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> baselines.run(baselines.MOFAFLEX(), s.X, s.Y, n_factors=10)  # after make peers  # doctest: +SKIP
    """

    guiding_scale: float = 1.0
    learning_rate: float = 0.05

    key = "mofaflex"
    package = "mofaflex"
    name = "MOFA-FLEX"
    paired = True


@dataclass(frozen=True)
class MuVI(Peer):
    """MuVI (muvi) without prior feature sets: it has no factors guided by covariates, so it is matched afterwards.

    Its covariates are regressors beside the factors: with Y, it removes from the factors what Y explains. By default
    it therefore gets no Y. It stops by its own rule, or after ``budget`` epochs.

    >>> import covalign as ca
    >>> from covalign import baselines
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> baselines.run(baselines.MuVI(), s.X, s.Y, n_factors=10)  # after make peers  # doctest: +SKIP
    """

    regress_out: bool = False

    key = "muvi"
    package = "muvi"
    paired = False

    @property
    def name(self) -> str:
        """MuVI, and whether Y is regressed out."""
        return "MuVI (Y regressed out)" if self.regress_out else "MuVI"


@dataclass(frozen=True)
class SparsePLS(Peer):
    """Sparse PLS (cca-zoo): successive directions of all features with the largest covariance with Y.

    ``l1_share`` limits the L1 norm of a direction, as a share of that of equal weights; 0.3 is the default of Witten et
    al. (2009), whose penalised matrix decomposition this is. There are no more factors than covariates.

    >>> import covalign as ca
    >>> from covalign.study.baselines.peers import SparsePLS
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> ca.baselines.run(SparsePLS(), s.X, s.Y, n_factors=10)  # after make peers  # doctest: +SKIP
    """

    l1_share: float = 0.3

    key = "sparsepls"
    package = "cca-zoo"
    name = "sparse PLS"
    paired = False
    takes_gaps = False

    def fit(self, views: dict[str, Array], Y: Array, n_factors: int, seed: int, budget: int) -> Fitted:
        """At most ``budget`` iterations for every factor. The weights of features also give the factors of new rows."""
        most = min(n_factors, Y.shape[1], sum(int((np.ptp(view, axis=0) > 0).sum()) for view in views.values()))
        fitted = super().fit(views, Y, most, seed, budget)
        weights = fitted.loadings or {}

        def place(new: dict[str, Array]) -> Array:
            return np.asarray(sum(new[name] @ W for name, W in weights.items()))

        return fitted._replace(loadings=None, place=place)


# -- the interpreter --------------------------------------------------------------------------------------------------


def interpreter() -> str | None:
    """The Python of the peers, or None. Links are not resolved: that would leave the virtual environment."""
    named = os.environ.get("COVALIGN_PEERS")
    if named:
        return os.path.abspath(named)
    for folder in (Path.cwd(), Path(sys.prefix).parent):
        python = folder / ".venv-peers" / "bin" / "python"
        if python.exists():
            return str(python)
    return None


def call(
    python: str, arguments: list[str], folder: str | None = None, timeout: float | None = None
) -> tuple[str, str | None]:
    """Run the worker: its output, and its error, if there was one. An interrupt or a timeout also ends it.

    -I keeps our folders and PYTHONPATH out of its imports; the environment sets its threads, as it sets ours. The
    plotting backend of a notebook does not exist there, so it gets Agg.
    """
    command = [python, "-I", str(WORKER), *arguments]
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            timeout=timeout,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"stopped after {timeout:g} seconds"
    except OSError as error:
        return "", str(error)
    last_lines = "\n".join(done.stderr.strip().splitlines()[-8:])
    return done.stdout, last_lines or f"exit code {done.returncode}" if done.returncode else None


@cache
def ask(python: str) -> tuple[dict[str, dict[str, str | None]], str | None]:
    """{peer: {package: version or None}} of an interpreter, or why there is none; it is asked once in a session."""
    text, trouble = call(python, ["--have"], timeout=60)
    if trouble is not None:
        return {}, (trouble.splitlines() or [""])[-1]
    try:
        return json.loads(text), None
    except json.JSONDecodeError:
        return {}, "not a list of peers"


# -- the files --------------------------------------------------------------------------------------------------------


def write_task(path: str, views: dict[str, Array], Y: Array, said: dict[str, Any]) -> None:
    """Views, Y and a JSON text. Views are numbered, because their names can be any text."""
    arrays: dict[str, Any] = {f"view_{m}": view for m, view in enumerate(views.values())}
    np.savez(path, json=np.array(json.dumps({**said, "n_views": len(views)})), Y=Y, **arrays)


def read_answer(path: str, name: str, varying: dict[str, Array], shape: tuple[int, int]) -> Fitted:
    """Factors, loadings, curve, seconds and versions; an error if their shapes are wrong or they are not finite."""
    with np.load(path, allow_pickle=False) as file:
        said = json.loads(str(file["json"]))
        factors, curve = file["factors"], file["curve"]
        loadings = {view: file[f"loadings_{m}"] for m, view in enumerate(varying)}
    needed = {"factors": (factors, shape)}
    needed |= {f"loadings of {view!r}": (W, (int(varying[view].sum()), shape[1])) for view, W in loadings.items()}
    for what, (got, need) in needed.items():
        if got.shape != need:
            raise PeerError(f"{name} failed: its {what} need shape {need}, got {got.shape}")
        if not np.isfinite(got).all():
            raise PeerError(f"{name} failed: its {what} are not all finite (it diverged)")
    return Fitted(
        factors.astype(np.float64),
        {view: spread(W, varying[view]) for view, W in loadings.items()},
        curve[np.isfinite(curve)].astype(np.float64),
        float(said["seconds"]),
        said["versions"],
        cost=Cost(said["cpu_seconds"], said["memory"]) if "memory" in said else None,
    )


def spread(W: Array, varying: Array) -> Array:
    """The loadings of all features: those of constant ones are 0."""
    full = np.zeros((len(varying), W.shape[1]))
    full[varying] = W
    return full
