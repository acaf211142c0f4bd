"""Runnable examples, for instance `python -m examples.differencing`."""
