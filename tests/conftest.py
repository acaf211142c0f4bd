"""What every test shares: examples that are the same on every run and on every machine."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import settings

# A red build must be red again when it is looked at, and a slow machine is no fault of the code: the examples follow
# from the test's own source, and none is timed.
settings.register_profile("house", derandomize=True, deadline=None, database=None, print_blob=True)
settings.load_profile("house")

# Whoever starts the tests in the background of a shell hands an ignored Ctrl-C down, also to the programs under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TOGETHER = (
    "tests/attacks/",
    "tests/cli/test_attack.py",
    "tests/cli/test_audit.py",
    "tests/cli/test_card.py",
    "tests/local/test_browser.py",
    "tests/report/test_training_browser.py",
    "tests/training/test_distributed.py",
    "tests/training/test_killed.py",
)
"""Places whose tests run in one process, one after the other: they share something that takes long to make."""


def group_of(nodeid: str) -> str:
    """Tests of one group run in one process. (The marks of pytest-xdist 3.8 have no effect with pytest 9.2.)

    The cases of one test are a group, since they often share what was computed once, and fewer groups are less work.
    """
    if nodeid.startswith("tests/ledger/") and ("postgres" in nodeid or "server" in nodeid):
        return "postgres"
    return next((place for place in TOGETHER if nodeid.startswith(place)), nodeid.partition("[")[0])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What was imported and collected stays to the end: nearly a million objects, through which each full collection of
    garbage would go again, half a second every time. (Hugging Face's Trainer asks for one whenever it ends.)
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests to processes by groups."""
    found: Any = import_module("xdist.scheduler").LoadScopeScheduling(config, log)
    found._split_scope = group_of
    return found
