"""The study: every figure, table and claim of the paper, re-made by one command."""
