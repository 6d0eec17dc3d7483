"""Reports: one file to open in a browser, with a slider that moves everything."""
