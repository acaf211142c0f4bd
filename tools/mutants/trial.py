"""Plant one mutant in a copy of the tree, run its tests there, and take the mutant out again."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import count
from pathlib import Path

from tools.mutants.declarations import Mutant

__all__ = ["Outcome", "Trial", "copy_tree", "run_tests", "try_mutant"]

_COMPILED = "src/privet/training/native/*.so"
_TESTS_FAILED = 1
_FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) \S+?::", re.MULTILINE)
"""What pytest says of a test or its fixture. With -x a file that cannot be imported gives the same exit code."""
_AGES = count(1)


class Outcome(Enum):
    """How a mutant fared."""

    CAUGHT = "caught"
    TIMEOUT = "timeout"
    SURVIVED = "survived"
    BROKEN = "broken"
    """pytest collected no test, could not run them, or not within the time limit: an error of the declaration."""

    @property
    def is_caught(self) -> bool:
        """Whether a test noticed the mistake. A test that hangs is noticed, too."""
        return self in (Outcome.CAUGHT, Outcome.TIMEOUT)


@dataclass(frozen=True)
class Trial:
    """One mutant, how it fared, how long the tests ran, and the end of what they printed."""

    mutant: Mutant
    outcome: Outcome
    seconds: float
    output: str


def copy_tree(source: Path, target: Path) -> None:
    """Copy the files that git tracks or would track, as they are in the working tree, and the compiled loops."""
    listing = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=source, capture_output=True, text=True, check=True).stdout.split("\0")
    names += [path.relative_to(source).as_posix() for path in source.glob(_COMPILED)]
    for name in filter(None, names):
        if (source / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target / name)


def try_mutant(mutant: Mutant, tree: Path, limit: float) -> Trial:
    """Plant a mutant in a copy of the tree and run its tests until the first fails."""
    started = time.monotonic()
    with _planted(mutant, tree):
        code, output = run_tests(mutant.tests, tree, limit, stop=True)
    if code is None:
        # Only a test that ends without the mistake was stopped by it.
        alone, _ = run_tests(mutant.tests, tree, limit, stop=True)
        outcome = Outcome.TIMEOUT if alone == 0 else Outcome.BROKEN
    elif code == _TESTS_FAILED and _FAILED_TEST.search(output):
        outcome = Outcome.CAUGHT
    else:
        outcome = Outcome.BROKEN if code else Outcome.SURVIVED
    return Trial(mutant, outcome, time.monotonic() - started, output)


@contextmanager
def _planted(mutant: Mutant, tree: Path) -> Iterator[None]:
    path = tree / mutant.file
    text, status = path.read_text(encoding="utf-8"), path.stat()
    path.write_text(mutant.apply(text), encoding="utf-8")
    # Python finds bytecode stale by the size of its source and the time in whole seconds: no two mutants share one.
    age = status.st_mtime - 10 * next(_AGES)
    os.utime(path, (age, age))
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def run_tests(tests: Sequence[str], tree: Path, limit: float | None, stop: bool) -> tuple[int | None, str]:
    """Run pytest on some tests of a copy of the tree.

    Returns:
        pytest's exit code, None if the time limit ended it, and what it printed.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(["-x"] if stop else []), *tests]
    environment = os.environ | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # so that the programs that tests start end with them
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return None, output
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return process.returncode, output
