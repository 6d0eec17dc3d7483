"""Tables as people keep them: read, matched by row name, coded as numbers."""
