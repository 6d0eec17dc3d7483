"""Reports: one file to open in a browser, with a slider that moves everything.

>>> import covalign as ca
>>> ca.report.write(model, "report.html")  # doctest: +SKIP
"""

from covalign.show.report.document import page, summary, write

__all__ = ["page", "summary", "write"]
