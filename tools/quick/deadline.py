"""A pytest plugin that ends a session when its time is up: `-p tools.quick.deadline`, with QUICK_SECONDS set."""

from __future__ import annotations

import os
import time

import pytest

_END = time.monotonic() + float(os.environ.get("QUICK_SECONDS", "inf"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """End before the next test once the time is up. A failure ends the session earlier, as `-x` is given."""
    if time.monotonic() > _END:
        pytest.exit(f"the time of `make quick` is up before {item.nodeid}; `make test` runs the rest", returncode=0)
