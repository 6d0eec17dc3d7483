"""Reports: one file to open in a browser, with a slider that moves everything.

>>> import covalign as ca
>>> ca.report.write(model, "report.html")  # doctest: +SKIP
>>> ca.report.show(model)  # in a notebook  # doctest: +SKIP
"""

from covalign.show.report.document import page, summary, write
from covalign.show.report.inline import show

__all__ = ["page", "show", "summary", "write"]
