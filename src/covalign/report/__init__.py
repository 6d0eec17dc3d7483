"""Reports: one file to open in a browser, with a slider that moves everything."""

from covalign.report.writing import page, write

__all__ = ["page", "write"]
