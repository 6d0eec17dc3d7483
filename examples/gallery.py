"""Every figure covalign draws, from one run, with the code that drew it.

python examples/gallery.py --out docs/img/gallery [--tcga FOLDER] [--page docs/gallery.md]

With the folder of the breast cancer data (see covalign.datasets.breast_tcga) the figures are of these; else of data
that are simulated under the same names. The page shows the very text that was executed.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from covalign import plot

DPI, LARGEST = (160, 140, 120, 100, 80), 120_000  # as sharp as a picture of this many bytes can be

TCGA = """\
import covalign as ca

data = ca.datasets.breast_tcga(tcga)  # mRNA, miRNA and proteins of 150 breast tumours
views, tumours = dict(data.views), data.covariates.index
clinic = views["protein"][["ER-alpha", "PR", "HER2"]].join(data.covariates)  # three receptors, and the subtype
views["protein"] = views["protein"].drop(columns=["ER-alpha", "PR", "HER2"])
views["protein"] = views["protein"].drop(tumours[::4])  # pretend: no proteins for every fourth tumour,
clinic.loc[tumours[5::9], "ER-alpha"] = None  # an unknown receptor for every ninth,
clinic.loc[tumours[7::15], "subtype"] = None  # an unknown subtype for every fifteenth
"""
SIMULATED = """\
import covalign as ca
import pandas as pd

sizes = {"mrna": 60, "mirna": 40, "protein": 30}
data = ca.simulate.scenario("PN", n_samples=150, n_features=sizes, n_covariates=4, random_state=1)
tumours = pd.Index([f"tumour {i}" for i in range(150)])
views = {name: pd.DataFrame(X, index=tumours).add_prefix(f"{name} ") for name, X in data.X.items()}
clinic = pd.DataFrame(data.Y[:, :3], index=tumours, columns=["ER-alpha", "PR", "HER2"])
clinic["subtype"] = pd.cut(data.Y[:, 3], 3, labels=["Basal", "Her2", "LumA"], ordered=False)
views["protein"] = views["protein"].drop(tumours[::4])  # not measured
clinic.loc[tumours[5::9], "ER-alpha"] = None  # unknown
clinic.loc[tumours[7::15], "subtype"] = None
"""
TCGA_DATA = """\
`tcga` is the path of `breast.TCGA.rda`, a data set of the R package mixOmics. Get it from the folder `data` of [its
repository](https://github.com/mixOmicsTeam/mixOmics), or write it in R with `library(mixOmics)`, `data(breast.TCGA)`
and `save(breast.TCGA, file = "breast.TCGA.rda")`; `pip install '.[rdata]'` reads it. A folder with `mrna.csv.gz`,
`mirna.csv.gz`, `protein.csv.gz` and `subtype.csv` works, too. Without `--tcga` the script simulates tumours with the
same names, and all figures are of these.
"""
FIT = """\
fa = ca.InformedFactorAnalysis(n_factors=10).fit(views, clinic[["ER-alpha", "subtype"]])
fa = fa.realign(lam=0.5)
placed = fa.set_output(transform="pandas").transform(views)  # tumours where features alone place them, as new ones
"""


class Figure(NamedTuple):
    """The name of a figure, what it shows, and its code, whose last line returns the Axes."""

    name: str
    says: str
    code: str


FIGURES = [
    Figure(
        "variance_explained",
        "The variance of each view that every factor explains, and all factors together. Correlated factors overlap.",
        """\
ca.plot.variance_explained(fa.variance_explained(), totals=fa.total_variance_explained())""",
    ),
    Figure(
        "top_features",
        "The features with the largest loadings on one factor, for each view, with two standard deviations.",
        """\
ca.plot.top_features(fa.loadings_frame("ER-alpha", n=8))""",
    ),
    Figure(
        "loadings",
        "The top features of several factors. It shows which factors share features, and with which sign.",
        """\
ca.plot.loadings(fa.loadings_frame(fa.factor_names_[:5], n=2))""",
    ),
    Figure(
        "enrichment",
        "Gene sets whose loadings on a factor differ from those of other genes. Here the sets are genes that rise or "
        "fall with a receptor which the model does not know.",
        """\
genes = views["mrna"].corrwith(clinic["PR"]).sort_values().index
sets = {"fall with PR": genes[:15], "rise with PR": genes[-15:], "in between": genes[22:37]}
ca.plot.enrichment(fa.enrichment(sets, "mrna"))""",
    ),
    Figure(
        "factors_number",
        "Tumours by two factors, coloured by a number. Hollow points have an unknown value.",
        """\
ca.plot.factors(placed, x="ER-alpha", y="subtype_Her2", colour=clinic["ER-alpha"])""",
    ),
    Figure(
        "factors_category",
        "The same tumours, coloured by a category.",
        """\
ca.plot.factors(placed, x="ER-alpha", y="subtype_Her2", colour=clinic["subtype"])""",
    ),
    Figure(
        "factor_by_category",
        "One factor by the levels of a category. Tumours of unknown level are separate.",
        """\
ca.plot.factor_by_category(placed, factor="subtype_Her2", category=clinic["subtype"])""",
    ),
    Figure(
        "association",
        "Associations of every factor with all known variables, also those that the model did not use: correlations "
        "with numbers, η² of categories. Each uses the tumours that have both values.",
        """\
ca.plot.association(ca.metrics.association(placed, clinic))""",
    ),
    Figure(
        "bound",
        "The bound after each sweep, with the inference of the paper (ours needs few sweeps).",
        """\
known = clinic[["ER-alpha", "subtype"]]
paper = ca.InformedFactorAnalysis.paper(10, posterior="mean_field").fit(views, known)
ca.plot.bound(paper.bound_frame())""",
    ),
    Figure(
        "missing",
        "Observed and missing data: groups of tumours with the same views and covariates, with counts.",
        """\
ca.plot.missing(fa.missing_frame())""",
    ),
    Figure(
        "alignment",
        "The alignment of each factor with its covariate, in fitted and in held-out tumours.",
        """\
ca.plot.alignment(fa.summary())""",
    ),
    Figure(
        "frontier",
        "The trade-off of a representation (here 20 principal components of mRNA): alignment and coupling, held out "
        "with standard error, and in sample.",
        """\
from sklearn.decomposition import PCA

known = clinic.dropna()
Z = PCA(20, random_state=0).fit_transform(views["mrna"].loc[known.index])
aligner = ca.LatentAligner().fit(Z, known)
ca.plot.frontier(aligner.frontier())""",
    ),
    Figure(
        "matrices",
        "The correlations of dimensions with covariates (above) and with each other (below), in each regime.",
        """\
named = aligner.moments_.with_names(aligner.covariate_names_)
ca.plot.matrices(ca.regimes.matrices(named, shrinkage=aligner.shrinkage_))""",
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("gallery"))
    parser.add_argument("--tcga", type=Path)
    parser.add_argument("--page", type=Path, help="where to write the page (default: gallery.md in --out)")
    asked = parser.parse_args()
    page = asked.page or asked.out / "gallery.md"
    for folder in (asked.out, page.parent):
        folder.mkdir(parents=True, exist_ok=True)
    opening = (TCGA if asked.tcga else SIMULATED) + FIT
    names: dict[str, Any] = {"tcga": asked.tcga}
    execute(opening, names)
    for figure in FIGURES:
        save(execute(figure.code, names), asked.out / f"{figure.name}.png")
    page.write_text(written(opening, asked, page), encoding="utf-8")
    print(page)


def execute(code: str, names: dict[str, Any]) -> Any:
    """Run the code; if its last line is a plot, return the Axes."""
    *before, last = code.rstrip().split("\n")
    exec(compile("\n".join(before), "gallery", "exec"), names)
    if last.startswith("ca.plot."):
        return eval(compile(last, "gallery", "eval"), names)
    exec(compile(last, "gallery", "exec"), names)
    return None


def save(axes: Any, path: Path) -> None:
    """Write the figure."""
    figure = np.ravel(axes)[0].figure
    for dpi in DPI:
        figure.savefig(path, dpi=dpi)
        Image.open(path).convert("RGB").save(path, optimize=True, dpi=(dpi, dpi))  # the page shows inches
        if path.stat().st_size < LARGEST:
            break
    plt.close(figure)
    print(f"{path}  {path.stat().st_size / 1000:.0f} kB")


def written(opening: str, asked: argparse.Namespace, page: Path) -> str:
    """The page."""
    pictures = Path(os.path.relpath(asked.out, page.parent)).as_posix()
    made = "--tcga FOLDER " if asked.tcga else ""
    parts = [
        "# Gallery\n",
        "Every function of `covalign.plot` takes the frame that a method returns, draws it into `ax` (or a new figure) "
        "and returns the Axes. A plot function computes nothing.\n",
        f"`python examples/gallery.py --out docs/img/gallery {made}--page docs/gallery.md` runs the code shown here "
        "and writes this page and its figures. " + (TCGA_DATA if asked.tcga else "The data are simulated.\n"),
        f"```python\n{opening}```\n",
    ]
    for figure in FIGURES:
        title = figure.name.replace("_", " ").capitalize()
        parts.append(f"## {title}\n\n{figure.says}\n\n![{title}]({pictures}/{figure.name}.png)\n")
        parts.append(f"```python\n{figure.code}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    plt.style.use(plot.STYLE)
    main()
