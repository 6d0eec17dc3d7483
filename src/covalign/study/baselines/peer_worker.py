# mypy: disable-error-code="import-not-found,import-untyped"
# The peers are installed in another environment, so mypy does not find them.
"""Fit a peer in the environment that has it. This is run as a script and does not import covalign.

    python peer_worker.py --have              # a JSON object, peer -> package -> version (null if not installed)
    python peer_worker.py PEER task.npz answer.npz

A task holds Y, view_0, view_1, ... and a JSON text: n_factors, seed, budget, settings. An answer holds factors (n x K),
loadings_0, loadings_1, ... (D x K), curve (the bound, step by step) and a JSON text: seconds, cpu_seconds, memory,
versions. The seconds are those of construction and fit, without imports; memory is the most that the process had, in
megabytes. NaN in a view is a missing cell. A process with a cpu_limit in its task ends after so many seconds.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib import metadata
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Task(NamedTuple):
    """What to fit. Views (n x D) and Y (n x P) are standardised."""

    views: list[Array]
    Y: Array
    n_factors: int
    seed: int
    budget: int
    settings: dict[str, Any]
    cpu_limit: float | None = None  # seconds

    @property
    def named(self) -> dict[str, Array]:
        """The views, with names that every peer accepts."""
        return {f"view_{m}": view for m, view in enumerate(self.views)}


class Answer(NamedTuple):
    """The result of a fit."""

    factors: Array
    loadings: list[Array]
    curve: Array
    seconds: Array  # those of the clock on the wall, and those of computation


def clock() -> Array:
    """The clock on the wall and that of this process, in seconds."""
    return np.array([time.perf_counter(), time.process_time()])


def mofa(task: Task) -> Answer:
    """Spike-and-slab weights, ARD on weights and factors; no factor is dropped, so there are always K."""
    from mofapy2.run.entry_point import entry_point

    start = clock()
    model = entry_point()
    model.set_data_options(scale_views=False)
    model.set_data_matrix([[view] for view in task.views], views_names=list(task.named))
    model.set_model_options(factors=task.n_factors, spikeslab_weights=True, ard_weights=True, ard_factors=True)
    model.set_train_options(
        iter=task.budget, convergence_mode="medium", dropR2=None, seed=task.seed, quiet=True, verbose=False
    )
    model.build()
    model.run()
    seconds = clock() - start
    Z, W = (model.model.nodes[name].getExpectation() for name in ("Z", "W"))
    return Answer(Z, list(W), model.model.train_stats["elbo"], seconds)


def sofa(task: Task) -> Answer:
    """Factor p is guided by covariate p, with ``scaling_factor`` times the number of features as its weight."""
    import anndata
    import mudata
    import pyro
    import torch
    from sofa import SOFA

    def table(values: Array, likelihood: str) -> Any:
        # A mask leaves out whole samples of a view; SOFA has none for single cells, which get the mean.
        data = anndata.AnnData(np.nan_to_num(values).astype(np.float32))
        data.uns.update(llh=likelihood, scaling_factor=task.settings["scaling_factor"])
        data.obsm["mask"] = ~np.isnan(values).all(axis=1)
        return data

    start = clock()
    P = task.Y.shape[1]
    guides = {}
    for p in range(P):
        y, binary = zero_one(task.Y[:, [p]])
        guides[f"y_{p}"] = table(y, "bernoulli" if binary else "gaussian")
    model = SOFA(
        Xmdata=mudata.MuData({name: table(view, "gaussian") for name, view in task.named.items()}),
        Ymdata=mudata.MuData(guides),
        num_factors=task.n_factors,
        design=torch.eye(P, task.n_factors),
        seed=task.seed,
        verbose=False,
    )
    # Newer versions of anndata store a mask as (n, 1), but SOFA expects (n,).
    model.Xmask, model.Ymask = ([mask.flatten() for mask in masks] for masks in (model.Xmask, model.Ymask))
    model.fit(n_steps=task.budget, lr=task.settings["learning_rate"], predict=False)
    seconds = clock() - start
    # The exact posterior means; the prediction of the package averages 25 draws around them.
    value = {name: parameter.detach().numpy() for name, parameter in pyro.get_param_store().items()}
    slopes = [value[f"beta_loc_{p}"].item() for p in range(P)]
    W = [value[f"W_loc_{m}"].T for m in range(len(task.views))]
    return Answer(*oriented(value["Z_loc"], W, slopes), -np.asarray(model.history), seconds)


def mofaflex(task: Task) -> Answer:
    """K - P free factors and one guided by each covariate; the guided ones come first in the answer."""
    import pandas as pd
    import pyro
    from anndata import AnnData
    from mofaflex import MOFAFLEX, DataOptions, ModelOptions, TrainingOptions

    P, free = task.Y.shape[1], task.n_factors - task.Y.shape[1]
    if free < 1:
        sys.exit(f"MOFA-FLEX needs a free factor besides the {P} guided ones, got n_factors = {task.n_factors}.")
    start = clock()
    guides = {f"y_{p}": zero_one(task.Y[:, p]) for p in range(P)}
    likelihoods = {name: "Bernoulli" if binary else "Normal" for name, (_, binary) in guides.items()}
    samples = [f"sample_{i}" for i in range(len(task.Y))]
    obs = pd.DataFrame({name: y.astype(np.float32) for name, (y, _) in guides.items()}, index=samples)
    data = {name: AnnData(view.astype(np.float32), obs=obs) for name, view in task.named.items()}
    for name, view in data.items():  # feature names must differ between views
        view.var_names = [f"{name}_{d}" for d in range(view.n_vars)]
    model = MOFAFLEX(
        {"all": data},
        DataOptions(guiding_vars_obs_keys=list(guides), plot_data_overview=False),
        ModelOptions(
            n_factors=free,
            weight_prior="Horseshoe",
            likelihoods="Normal",
            guiding_vars_likelihoods=likelihoods,
            guiding_vars_scales=task.settings["guiding_scale"],
        ),
        TrainingOptions(
            device="cpu",
            max_epochs=task.budget,
            lr=task.settings["learning_rate"],
            seed=task.seed,
            save_path=False,
        ),
    )
    seconds = clock() - start
    guided_first = np.r_[free : task.n_factors, :free]
    Z = model.get_factors("numpy")["all"][:, guided_first]
    weights = model.get_weights("numpy")
    W = [weights[name].T[:, guided_first] for name in task.named]
    store = pyro.get_param_store()
    slopes = [store[f"_guiding_locs.{name}"].detach().numpy()[0, 1] for name in guides]
    return Answer(*oriented(Z, W, slopes), -np.asarray(model.training_loss), seconds)


def muvi(task: Task) -> Answer:
    """Regularised horseshoe on the weights and no prior feature sets; Y is used only to regress it out."""
    import pyro
    from pyro.infer.autoguide import guides

    # MuVI imports a helper that pyro 1.9.2 replaced by this function of the standard library.
    guides.deep_getattr = lambda thing, name: attrgetter(name)(thing)
    from muvi import MuVI

    start = clock()
    pyro.set_rng_seed(task.seed)
    model = MuVI(
        observations=task.named,
        covariates=task.Y if task.settings["regress_out"] else None,
        n_factors=task.n_factors,
        device="cpu",
    )
    model.fit(n_epochs=task.budget, seed=task.seed, verbose=False)
    seconds = clock() - start
    W = model.get_factor_loadings()
    history = model._training_log["history"]
    return Answer(model.get_factor_scores(), [W[name].T for name in task.named], -np.asarray(history), seconds)


def sparse_pls(task: Task) -> Answer:
    """Sparse PLS of all features and the covariates: directions of largest covariance whose L1 norm is limited.

    The loadings are the weights of features that give the factors.
    """
    from cca_zoo.sparse import PMDCCA

    start = clock()
    X = np.hstack(task.views)
    share = max(task.settings["l1_share"], X.shape[1] ** -0.5)  # the L1 norm of a unit vector is at least 1
    model = PMDCCA(task.n_factors, l1_bound=[share, 1.0], max_iter=task.budget, random_state=task.seed)
    W = model.fit([X, task.Y]).weights_[0]
    ends = np.cumsum([view.shape[1] for view in task.views])[:-1]
    return Answer(X @ W, np.split(W, ends), np.empty(0), clock() - start)


def zero_one(y: Array) -> tuple[Array, bool]:
    """A covariate of two values as 0 and 1 (and True), any other as it is (and False)."""
    binary = len(np.unique(y)) == 2
    return (y == y.max()).astype(np.float64) if binary else y, binary


def oriented(Z: Array, W: list[Array], slopes: list[float]) -> tuple[Array, list[Array]]:
    """Factor p and its loadings times the sign of its regression slope for covariate p; the model leaves it open."""
    signs = np.ones(Z.shape[1])
    signs[: len(slopes)] = np.where(np.asarray(slopes) < 0, -1.0, 1.0)
    return Z * signs, [w * signs for w in W]


class Peer(NamedTuple):
    """The function that fits, and the packages whose versions are recorded (the first is the peer itself)."""

    fit: Callable[[Task], Answer]
    packages: tuple[str, ...]


PEERS = {
    "mofa": Peer(mofa, ("mofapy2", "numpy")),
    "sofa": Peer(sofa, ("biosofa", "torch", "pyro-ppl")),
    "mofaflex": Peer(mofaflex, ("mofaflex", "torch", "pyro-ppl")),
    "muvi": Peer(muvi, ("muvi", "torch", "pyro-ppl")),
    "sparsepls": Peer(sparse_pls, ("cca-zoo", "scikit-learn")),
}


def version(package: str) -> str | None:
    """The version in the metadata of a package, which is not imported for this."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def have() -> dict[str, dict[str, str | None]]:
    """{peer: {package: version or None}}, Python's version first."""
    python = {"python": platform.python_version()}
    return {name: {**python, **{each: version(each) for each in peer.packages}} for name, peer in PEERS.items()}


def read(path: str) -> Task:
    """A task from its file."""
    with np.load(path, allow_pickle=False) as file:
        said = json.loads(str(file["json"]))
        views = [file[f"view_{m}"] for m in range(said.pop("n_views"))]
        return Task(views, file["Y"], **said)


def write(path: str, answer: Answer, versions: dict[str, str | None]) -> None:
    """An answer to its file."""
    seconds, cpu_seconds = (float(value) for value in answer.seconds)
    said = json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "memory": peak_memory(), "versions": versions})
    arrays: dict[str, Any] = {f"loadings_{m}": W for m, W in enumerate(answer.loadings)}
    np.savez(path, json=np.array(said), factors=answer.factors, curve=answer.curve, **arrays)


def end_after(seconds: float) -> None:
    """End this process after so many seconds of computation, where the system can count them."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGPROF, lambda *_: sys.exit(f"stopped after {seconds:g} seconds of computation"))
        signal.setitimer(signal.ITIMER_PROF, seconds)


def peak_memory() -> float | None:
    """The most that this process had, in megabytes; None where the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def end_with(parent: int) -> None:
    """End this process when the parent process has ended, as nobody waits for the answer then."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main(arguments: list[str]) -> None:
    """Run the command that the module describes."""
    if arguments == ["--have"]:
        print(json.dumps(have()))
        return
    name, path, answer = arguments
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    task = read(path)
    if task.cpu_limit is not None:
        end_after(task.cpu_limit)
    write(answer, PEERS[name].fit(task), have()[name])


if __name__ == "__main__":
    main(sys.argv[1:])
