"""What every test shares: examples that are the same on every run and on every machine."""

from __future__ import annotations

from hypothesis import settings

# A red build must be red again when it is looked at, and a slow machine is no fault of the code: the examples follow
# from the test's own source, and none is timed.
settings.register_profile("house", derandomize=True, deadline=None, database=None, print_blob=True)
settings.load_profile("house")
