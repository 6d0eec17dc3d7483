"""The report as one HTML file that needs no other file."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import covalign
from covalign._core.checks import check_flag, check_text
from covalign._core.files import output_path, target_exists, write_text
from covalign._core.json_values import json_value
from covalign._core.messages import counted, kind_of, message
from covalign._core.paths import exists
from covalign.aligner.latent import LatentAligner
from covalign.closed_form.regimes import SCALED
from covalign.factor import InformedFactorAnalysis
from covalign.show.report import conclusion
from covalign.show.report import factor_facts as factors
from covalign.show.report import facts as known
from covalign.show.report.plain_copy import concluded, static

SCRIPTS = ("arithmetic", "drawing", "state", "frontier", "covariates", "words")  # in the order of their use
FACTOR_SCRIPTS = ("factors", "samples", "bound")
LAST_SCRIPT = "controls"


def write(
    model: Any,
    path: Any,
    *,
    title: str = "covalign report",
    command: str = "",
    gene_sets: Any = None,
    overwrite: bool = False,
) -> Path:
    """Write the report of a fitted ``LatentAligner`` or ``InformedFactorAnalysis`` to ``path`` (.html); returns it.

    The page is one file, needs no network, and computes every number from P x P matrices as the slider moves. With
    250 covariates and more it has no slider: it shows the numbers of the model and its frontier. An
    aligner has its held-out numbers already; a factor model is fitted again without each of its ``folds``.
    ``command`` is a command line that fits the same model, without its regime: the page shows it for every setting.
    With ``gene_sets`` (a dict, or the path of a GMT file; see ``enrichment``) the page of a factor model shows which
    sets have large loadings on each factor.

    >>> import covalign as ca, tempfile, pathlib
    >>> from covalign import report
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> report.write(ca.LatentAligner().fit(s.Z, s.Y), file).name
    'report.html'
    """
    title, command = _texts(title, command)
    target = output_path(path)
    if not check_flag("overwrite", overwrite) and exists(target):
        raise target_exists(target)
    text = page({**summary(model, gene_sets), "command": command}, title)
    write_text(target, text)
    return target


def summary(model: Any, gene_sets: Any = None) -> dict[str, Any]:
    """The facts of a report, as plain numbers and text. ``conclusion`` has what the report says first.

    >>> import covalign as ca
    >>> from covalign import report
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> facts = report.summary(ca.LatentAligner().fit(s.Z, s.Y))
    >>> facts["covariates"]
    ['y0', 'y1', 'y2', 'y3', 'y4']
    >>> facts["conclusion"]["headline"]
    'All 5 covariates are captured on new rows'
    """
    if isinstance(model, InformedFactorAnalysis):
        facts = factors.of_model(model, gene_sets)
    elif not isinstance(model, LatentAligner):
        problem = "a report needs a fitted LatentAligner or InformedFactorAnalysis"
        raise ValueError(message(problem, got=kind_of(model), remedy="pass one of these"))
    elif gene_sets is not None:
        problem = "gene_sets needs a fitted InformedFactorAnalysis, which has loadings"
        raise ValueError(message(problem, got="a LatentAligner", remedy="leave gene_sets out"))
    else:
        facts = known.of_aligner(model)
    return {**facts, "conclusion": conclusion.of(facts)}


def page(facts: dict[str, Any], title: str) -> str:
    """The whole page. All names are escaped: as text in HTML, as JSON in the script.

    >>> import covalign as ca
    >>> from covalign import report
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> "<title>Mice" in report.page(report.summary(ca.LatentAligner().fit(s.Z, s.Y)), "Mice")
    True
    """
    if not isinstance(facts, Mapping) or "covariates" not in facts:
        problem, remedy = "facts needs what report.summary(model) returns", "pass that dict"
        raise ValueError(message(problem, got=kind_of(facts), remedy=remedy))
    title, _ = _texts(title, "")
    is_model = "factors" in facts
    names = [*SCRIPTS, *(FACTOR_SCRIPTS if is_model else ()), LAST_SCRIPT]
    parts = {
        "title": html.escape(title),
        "subtitle": html.escape(_subtitle(facts)),
        "css": _terse("page.css"),
        "conclusion": concluded(facts),
        "factors": _file("factors.html") if is_model else "",
        "bound": _file("bound.html") if is_model else "",
        "scripts": "\n".join(_terse(f"{name}.js") for name in names) if known.has_slider(facts) else "",
        "facts": as_json({"command": "", **facts}) if known.has_slider(facts) else "{}",
        "static": static(facts),
        "footer": html.escape(
            f"covalign {covalign.__version__}. Alignment is corr(dimension, its covariate); coupling is the "
            "sum of squared correlations between dimensions."
        ),
    }
    # Split once, so that an @ in a part is not taken for a placeholder.
    pieces = _file("page.html").split("@")
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def _texts(title: Any, command: Any) -> tuple[str, str]:
    """The heading and the command, as text that a file can hold."""
    heading = check_text("title", title, "it is the heading of the report")
    return heading, check_text("command", command, "it is the command line that fits the model")


def _subtitle(facts: dict[str, Any]) -> str:
    p = len(facts["covariates"])
    named = counted(p, "covariate")
    in_groups = "" if facts["groups"] is None else f" in {facts['groups']:,} groups"
    if "factors" in facts:
        views = facts["factors"]["views"]
        listed = ", ".join(f"{view['name']} ({view['features']:,})" for view in views)
        factors = f"{facts['dimensions']} factors, {p} of them informed by {named}"
        return f"{facts['rows']:,} samples{in_groups}; {listed}; {factors}"
    size = f"{facts['rows']:,} rows{in_groups}, {facts['dimensions']:,} dimensions"
    return f"{size}, {named}; shrinkage {facts['shrinkage']:.3g}{SCALED[facts['scale']]}"


def as_json(facts: dict[str, Any]) -> str:
    """JSON for a script element: no NaN or infinity, no character that could end the element."""
    text = json.dumps(json_value(facts), ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _file(name: str) -> str:
    return resources.files("covalign.show.report").joinpath("page", name).read_text(encoding="utf-8")


def _terse(name: str) -> str:
    """A script or style without comments and indents; a style also without spaces around braces."""
    lines = (re.sub(r"(^|  )//.*|/\*.*\*/", "", line.strip()) for line in _file(name).splitlines())
    text = "\n".join(line.rstrip() for line in lines if line.strip())
    return re.sub(r"\s*([{};])\s*", r"\1", text) if name.endswith(".css") else text
