"""Mutation testing: plant one known mistake at a time in a copy of the tree, and check that a test notices it.

`tools/mutants/planted/<room>.toml` declares the mistakes; `python -m tools.mutants` (or `make mutants`) plants them.
"""
