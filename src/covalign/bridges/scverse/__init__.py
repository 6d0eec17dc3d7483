"""Alignment of single cells where scverse keeps them: results go into ``obsm``, ``varm`` and ``uns``.

``align`` maps an embedding of an AnnData or MuData, ``ifa`` fits informed factors to their tables; covariates are
columns of ``obs``. As in scanpy both work in place and return None, or with ``copy=True`` return a changed copy.
Everything they write survives ``write_h5ad`` and ``write_h5mu``. Needs the extra ``scverse``.

For ``key_added="X_aligned"``, ``obsm["X_aligned"]`` is an array with a column per covariate, so
``sc.pl.embedding(adata, "X_aligned")`` draws it, and ``uns["aligned"]`` (the name without ``X_``, as scanpy has
``X_pca`` and ``pca``) describes the fit. ``table`` gives the same numbers with their names. With ``as_frame=True``
``obsm`` gets a table: HDF5 has no columns called ``a/b``, so such a column is called ``a%2Fb``, as in a URL, and
``names`` gives the original name.

>>> import anndata, numpy as np, pandas as pd, covalign as ca
>>> s = ca.simulate.scenario("PN", n_samples=100)
>>> cells = anndata.AnnData(obs=pd.DataFrame({"age": s.Y[:, 0]}, index=[f"cell{i}" for i in range(100)]))
>>> cells.obsm["X_pca"] = s.Z
>>> ca.scverse.align(cells, "X_pca", ["age"])
>>> cells.obsm["X_aligned"].shape
(100, 1)
"""

from covalign.bridges.scverse.cell_factors import ifa
from covalign.bridges.scverse.embeddings import align, aligner, transform
from covalign.bridges.scverse.slots import loadings, names, table

__all__ = ["align", "aligner", "ifa", "loadings", "names", "table", "transform"]
