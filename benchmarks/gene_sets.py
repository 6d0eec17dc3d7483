"""Gene sets of factors, by covalign, decoupler and gseapy: which set leads where the answer is known; false findings.

    python benchmarks/gene_sets.py

It needs scanpy (whose blood cells are the data), decoupler and gseapy. docs/findings.md has the table.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

import covalign as ca
from covalign.closed_form.set_tests import mean_correlations, mean_test

MARKERS = {  # textbook markers of blood cells
    "T": "CD3D CD3E CD3G CD2 CD7 CD27 LCK IL32 IL7R LTB LAT CD247 ITM2A GIMAP7 GIMAP5",
    "NK": "NKG7 GNLY GZMA GZMB GZMH GZMM PRF1 SPON2 FGFBP2 CST7 CTSW KLRF1 KLRD1 CLIC3 XCL2",
    "B": "CD79A CD79B MS4A1 CD19 CD22 BANK1 VPREB3 TCL1A FCRLA CD37 HVCN1 BLNK LINC00926",
    "monocyte": "LYZ S100A8 S100A9 S100A12 FCN1 CD14 LST1 AIF1 FCGR3A MS4A7 CFD SERPINA1 TYROBP FCER1G",
}
FAMILIES = {
    "HLA class II": r"HLA-D|CD74",
    "ribosome": r"RP[LS]\d",
    "proteasome": "PSM[AB]",
    "respiration": "NDUF|COX|ATP5",
}
EXPECTED = {
    "type_T": "T",
    "type_NK": "NK",
    "type_monocyte": "monocyte",
    "type_dendritic": "HLA class II",
}


def main(repetitions: int = 60) -> None:
    warnings.simplefilter("ignore")
    cells, sets = blood_cells()
    print({name: len(genes) for name, genes in sets.items()})
    loadings, ours = of_factors(cells, sets)
    print(known_answers(loadings, ours, sets).to_string(index=False))
    print(false_findings(cells.to_df(), sets, repetitions).to_string())


def blood_cells() -> tuple:
    import scanpy as sc

    cells = sc.datasets.pbmc68k_reduced()
    labels = cells.obs["bulk_labels"].astype(str)
    lineages = {"Mono": "monocyte", "Dendritic": "dendritic", "CD19": "B", "CD56": "NK", "CD34": "progenitor"}
    cells.obs["type"] = [next((new for old, new in lineages.items() if old in label), "T") for label in labels]
    have = cells.var_names
    sets = {name: [gene for gene in genes.split() if gene in have] for name, genes in MARKERS.items()}
    sets |= {name: [*have[have.str.match(pattern)]] for name, pattern in FAMILIES.items()}
    return cells, {name: genes for name, genes in sets.items() if len(genes) >= 5}


def of_factors(cells, sets) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Loadings of the factors of types and cycle on all genes, and our tests of them."""
    X = cells.to_df()
    fa = ca.InformedFactorAnalysis(12).fit(X, cells.obs[["type", "S_score", "G2M_score"]])
    return pd.DataFrame(fa.loadings_["X"], X.columns, fa.factor_names_), fa.enrichment(sets)


def by_decoupler(values: pd.DataFrame, sets) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores and p (columns of values x sets) of its univariate linear model."""
    import decoupler as dc

    net = pd.DataFrame(
        [(name, gene, 1.0) for name, genes in sets.items() for gene in genes], columns=["source", "target", "weight"]
    )
    return dc.mt.ulm(values.T, net, tmin=5)


def by_gseapy(values: pd.Series, sets) -> pd.DataFrame:
    """NES and p of a preranked analysis with 1,000 permutations of genes, by set."""
    import gseapy

    found = gseapy.prerank(values, dict(sets), min_size=5, permutation_num=1000, seed=0, threads=1, outdir=None)
    return found.res2d.set_index("Term")[["NES", "NOM p-val"]].astype(float)


def known_answers(loadings, ours, sets) -> pd.DataFrame:
    """The rank of the set that a factor should show, and how many sets are below .05, by each package."""
    scores, p_linear = by_decoupler(loadings, sets)
    rows = []
    for factor, right in EXPECTED.items():
        mine = ours[ours["factor"] == factor].set_index("set")
        gsea = by_gseapy(loadings[factor], sets)
        statistics = {"covalign": mine["statistic"], "decoupler": scores.loc[factor], "gseapy": gsea["NES"]}
        p = {"covalign": mine["p"], "decoupler": p_linear.loc[factor], "gseapy": gsea["NOM p-val"]}
        row = {"factor": factor, "sets": len(mine)}
        for name, values in statistics.items():
            row |= {
                f"{name}: rank": int(values.rank(ascending=False)[right]),
                f"{name}: p < .05": int((p[name] < 0.05).sum()),
            }
        rows.append(row)
    return pd.DataFrame(rows)


def false_findings(X: pd.DataFrame, sets, repetitions: int) -> pd.DataFrame:
    """Share of p below .05 for every set, where loadings are correlations of genes with numbers drawn at random."""
    rng = np.random.default_rng(0)
    Z = ((X - X.mean()) / X.std()).to_numpy()
    y = rng.standard_normal((len(X), repetitions))
    values = pd.DataFrame(Z.T @ (y - y.mean(axis=0)) / len(X), X.columns, [f"r{i}" for i in range(repetitions)])
    members = [X.columns.get_indexer(genes) for genes in sets.values()]
    rho, _ = mean_correlations(lambda: [Z], members)
    p = {"covalign": mean_test(values.to_numpy(), members, rho, len(X) - 2)[1].T}
    p["decoupler"] = by_decoupler(values, sets)[1][list(sets)].to_numpy()
    p["gseapy"] = np.array([by_gseapy(values[name], sets).loc[list(sets), "NOM p-val"] for name in values])
    found = pd.DataFrame({name: (one < 0.05).mean(axis=0) for name, one in p.items()}, [*sets])
    return found.assign(correlation=rho).round(2)


if __name__ == "__main__":
    main()
