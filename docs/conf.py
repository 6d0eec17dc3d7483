"""Settings of the documentation: Markdown becomes HTML pages that load nothing from other sites.

``make docs`` treats every warning as an error: a broken link, an unknown name, an equation that cannot be shown.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import covalign  # noqa: E402  src is found by the lines above

project = "covalign"
author = "The covalign developers"
copyright = author
release = version = covalign.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "mathml", "plain_docstrings", "figure_sizes", "nothing_remote"]
exclude_patterns = ["_build", "_ext", "study/**"]  # pages include the tables of the study
highlight_language = "none"  # blocks without a language are commands or formulas
smartquotes = False  # quoted text is often code
nitpicky = True
# Types of other packages are shown without links, so that building needs no network.
nitpick_ignore_regex = [("py:.*", r"(?!covalign\.).*")]
# Signatures contain these classes, which are not public.
nitpick_ignore = [
    ("py:class", "covalign._core.linalg.Whitening"),
    ("py:class", "covalign.moments.incomplete.IncompleteMoments"),
    ("py:class", "covalign.stream.levels.Levels"),
    ("py:class", "covalign.stream.source.Source"),
    ("py:class", "covalign.show.report.inline.Inline"),
]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Views", "Rows")}  # the names in the code
autoclass_content = "class"
add_module_names = False

html_theme = "furo"
html_title = "covalign"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["covalign.css"]
html_theme_options = {"navigation_with_keys": True}
