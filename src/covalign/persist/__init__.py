"""Fitted models as files: arrays and JSON in one archive, no code."""
