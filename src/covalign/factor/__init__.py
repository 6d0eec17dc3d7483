"""Informed factor analysis."""
