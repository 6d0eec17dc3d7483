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

DPI, LARGEST = (160, 140, 120, 100, 80), 120_000  # as sharp as a picture of this many bytes can be

TCGA = """\
import covalign as ca

data = ca.datasets.breast_tcga(tcga)  # mRNA, miRNA and proteins of 150 breast tumours
views, tumours = dict(data.views), data.covariates.index
clinic = views["protein"][["ER-alpha", "PR", "HER2"]].join(data.covariates)  # three receptors, and the subtype
views["protein"] = views["protein"].drop(columns=["ER-alpha", "PR", "HER2"])
views["protein"] = views["protein"].drop(tumours[::4])  # as if every fourth tumour had no protein measured,
clinic.loc[tumours[5::9], "ER-alpha"] = None  # every ninth an unknown receptor,
clinic.loc[tumours[7::15], "subtype"] = None  # and every fifteenth an unknown subtype
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
FIT = """\
fa = ca.InformedFactorAnalysis(n_factors=10, drop_first=True).fit(views, clinic[["ER-alpha", "subtype"]])
fa = fa.realign(lam=0.5)
"""


class Figure(NamedTuple):
    """A picture: its file, what it shows, and the code, whose last line makes the Axes."""

    name: str
    says: str
    code: str


FIGURES = [
    Figure(
        "variance_explained",
        "What every factor explains of every view, and all of them together (shares of correlated factors overlap).",
        """\
ca.plot.variance_explained(fa.variance_explained(), totals=fa.total_variance_explained())""",
    ),
    Figure(
        "top_features",
        "The features that carry one factor, view by view, with two standard deviations.",
        """\
ca.plot.top_features(fa.loadings_frame("ER-alpha", n=8))""",
    ),
    Figure(
        "loadings",
        "The leading features of several factors: which of them share features, and with which sign.",
        """\
ca.plot.loadings(fa.loadings_frame(fa.factor_names_[:5], n=2))""",
    ),
    Figure(
        "factors_number",
        "Tumours in the plane of two factors, coloured by a number; where it is unknown, hollow.",
        """\
ca.plot.factors(fa.factors_frame(), x="ER-alpha", y="subtype_Her2", colour=clinic["ER-alpha"])""",
    ),
    Figure(
        "factors_category",
        "The same tumours, coloured by a category.",
        """\
ca.plot.factors(fa.factors_frame(), x="ER-alpha", y="subtype_Her2", colour=clinic["subtype"])""",
    ),
    Figure(
        "factor_by_category",
        "One factor by the levels of a category; those of unknown level stand apart.",
        """\
ca.plot.factor_by_category(fa.factors_frame(), factor="subtype_Her2", category=clinic["subtype"])""",
    ),
    Figure(
        "association",
        "Every factor with everything known of the tumours, whether the model was told of it or not: correlations of "
        "numbers, η² of categories, each from the tumours that have both.",
        """\
ca.plot.association(ca.metrics.association(fa.factors_frame(), clinic))""",
    ),
    Figure(
        "bound",
        "How the bound rose to its end, sweep by sweep, in the paper's inference (ours needs few sweeps).",
        """\
paper = ca.InformedFactorAnalysis.paper(n_factors=10, drop_first=True).fit(views, clinic[["ER-alpha", "subtype"]])
ca.plot.bound(paper.bound_frame())""",
    ),
    Figure(
        "missing",
        "Who has what: tumours put together by the views and covariates they have, with counts.",
        """\
ca.plot.missing(fa.missing_frame())""",
    ),
    Figure(
        "alignment",
        "How well each factor stands for its covariate, in the tumours fitted and in others.",
        """\
ca.plot.alignment(fa.summary())""",
    ),
    Figure(
        "frontier",
        "The trade-off of a representation (here 20 principal components of mRNA): alignment against coupling, held "
        "out with its standard error, and in sample.",
        """\
from sklearn.decomposition import PCA

known = clinic.dropna()
Z = PCA(20, random_state=0).fit_transform(views["mrna"].loc[known.index])
aligner = ca.LatentAligner(drop_first=True).fit(Z, known)
ca.plot.frontier(aligner.frontier())""",
    ),
    Figure(
        "matrices",
        "What each regime does to the correlations with the covariates (above) and between dimensions (below).",
        """\
named = aligner.moments_.with_names(aligner.covariate_names_)
ca.plot.matrices(ca.regimes.matrices(named, shrinkage=aligner.shrinkage_))""",
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("gallery"))
    parser.add_argument("--tcga", type=Path)
    parser.add_argument("--page", type=Path, help="where to write the page (gallery.md in --out, if not said)")
    asked = parser.parse_args()
    page = asked.page or asked.out / "gallery.md"
    for folder in (asked.out, page.parent):
        folder.mkdir(parents=True, exist_ok=True)
    opening = (TCGA if asked.tcga else SIMULATED) + FIT
    names: dict[str, Any] = {"tcga": asked.tcga}
    execute(opening, names)
    for figure in FIGURES:
        save(execute(figure.code, names), asked.out / f"{figure.name}.png")
    replace(page, written(opening, asked, page).encode())


def execute(code: str, names: dict[str, Any]) -> Any:
    """Run the lines of a code, and return the value of its last expression, if that is what it ends with."""
    *before, last = code.rstrip().split("\n")
    exec(compile("\n".join(before), "gallery", "exec"), names)
    if last.startswith("ca.plot."):
        return eval(compile(last, "gallery", "eval"), names)
    exec(compile(last, "gallery", "exec"), names)
    return None


def save(axes: Any, path: Path) -> None:
    """Write the figure."""
    figure = np.ravel(axes)[0].figure
    temporary = path.with_suffix(".tmp.png")
    for dpi in DPI:
        figure.savefig(temporary, dpi=dpi)
        Image.open(temporary).convert("RGB").save(temporary, optimize=True)
        if temporary.stat().st_size < LARGEST:
            break
    os.replace(temporary, path)
    plt.close(figure)
    print(f"{path}  {path.stat().st_size / 1000:.0f} kB")


def written(opening: str, asked: argparse.Namespace, page: Path) -> str:
    """The page."""
    pictures = Path(os.path.relpath(asked.out, page.parent)).as_posix()
    made = "--tcga FOLDER " if asked.tcga else ""
    parts = [
        "# Gallery\n",
        "Every function of `covalign.plot` takes the frame that a method returns, draws into `ax` if there is one, and "
        "returns the Axes. Nothing is computed in a figure.\n",
        f"This page and its pictures are written by `python examples/gallery.py --out docs/img/gallery {made}--page "
        "docs/gallery.md`: the code shown is the code that ran"
        + (", with `tcga` the folder of the data.\n" if asked.tcga else ", on simulated data.\n"),
        f"```python\n{opening}```\n",
    ]
    for figure in FIGURES:
        title = figure.name.replace("_", " ").capitalize()
        parts.append(f"## {title}\n\n{figure.says}\n\n![{title}]({pictures}/{figure.name}.png)\n")
        parts.append(f"```python\n{figure.code}\n```\n")
    return "\n".join(parts)


def replace(path: Path, content: bytes) -> None:
    """Write beside the final name, then rename: a reader never sees half a file."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(content)
    os.replace(temporary, path)
    print(path)


if __name__ == "__main__":
    main()
