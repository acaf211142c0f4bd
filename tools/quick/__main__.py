"""`python -m tools.quick`: lint, types and tests of what has changed, in under 90 seconds."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tools.quick.selection import ROOT, changed_files, select_tests

_SECONDS = 85.0
_NO_TESTS = 5
"""Pytest's exit code where nothing was collected."""


def main() -> int:
    """Run the checks. Return 0 if nothing is wrong."""
    start, files = time.monotonic(), changed_files()
    sources = [str(path) for path in files if path.suffix == ".py"]
    programs = Path(sys.executable).parent
    if not files:
        sys.stdout.write("nothing has changed\n")
        return 0
    if sources:
        for words in (["ruff", "format", "--check"], ["ruff", "check"], ["mypy", "--strict"]):
            sys.stdout.write(f"== {' '.join(words)}: {len(sources)} files\n")
            sys.stdout.flush()
            command = [str(programs / words[0]), *words[1:], *sources]
            if code := subprocess.run(command, cwd=ROOT, check=False).returncode:
                return code
    tests = [str(path) for path in select_tests(files)]
    left = max(_SECONDS - (time.monotonic() - start), 10.0)
    sys.stdout.write(f"== pytest: {len(tests)} files, nearest first, for {left:.0f} s\n")
    sys.stdout.flush()
    environment = os.environ | {"QUICK_SECONDS": str(left), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tools.quick.deadline", *tests]
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    return 0 if code in (0, _NO_TESTS) else code


if __name__ == "__main__":
    sys.exit(main())
