"""Variational inference: states, updates, the bound, the rotation step. Pure functions of arrays."""
