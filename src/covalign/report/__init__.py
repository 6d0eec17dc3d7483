"""Reports: one file to open in a browser, with a slider that moves everything."""

from covalign.report.writing import page, summary, write

__all__ = ["page", "summary", "write"]
