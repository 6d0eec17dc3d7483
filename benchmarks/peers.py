"""Seconds a peer takes for a fit at the paper's setting, printed last; run by an interpreter that has it."""

from __future__ import annotations

import sys
import time

import numpy as np


def mofapy2(X: np.ndarray, Y: np.ndarray) -> float:
    from mofapy2.run.entry_point import entry_point

    def run() -> float:
        start = time.perf_counter()
        model = entry_point()
        model.set_data_options(scale_views=False)
        model.set_data_matrix([[X]])
        model.set_model_options(factors=10, spikeslab_weights=True, ard_weights=True, ard_factors=True)
        model.set_train_options(iter=2000, convergence_mode="medium", seed=0, quiet=True)
        model.build()
        model.run()
        return time.perf_counter() - start

    return sorted(run() for _ in range(3))[1]


def biosofa(X: np.ndarray, Y: np.ndarray) -> float:
    import anndata as ad
    import mudata as md
    import sofa

    def adata(values: np.ndarray, likelihood: str) -> ad.AnnData:
        view = ad.AnnData(values.astype(np.float32))
        view.uns.update(llh=likelihood, scaling_factor=0.1)
        view.obsm["mask"] = np.ones(len(values), dtype=bool)
        return view

    features = md.MuData({"X": adata(X, "gaussian")})
    guides = md.MuData({f"y{p}": adata(Y[:, [p]], "gaussian") for p in range(Y.shape[1])})
    design = np.zeros((Y.shape[1], 10), dtype=np.float32)
    design[np.arange(Y.shape[1]), np.arange(Y.shape[1])] = 1
    import torch

    start = time.perf_counter()
    settings = {"Ymdata": guides, "design": torch.from_numpy(design), "seed": 0, "verbose": False}
    model = sofa.SOFA(Xmdata=features, num_factors=10, **settings)
    # Newer anndata keeps a mask as (n, 1), which biosofa does not expect.
    model.Xmask, model.Ymask = ([mask.flatten() for mask in masks] for masks in (model.Xmask, model.Ymask))
    model.fit(n_steps=2000, lr=0.01, predict=False)
    return time.perf_counter() - start


if __name__ == "__main__":
    with np.load(sys.argv[2]) as data:
        print({"mofapy2": mofapy2, "biosofa": biosofa}[sys.argv[1]](data["X"], data["Y"]))
