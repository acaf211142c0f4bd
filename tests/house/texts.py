"""Text files must mean the same on every machine: no path of one of them, no address of a package registry."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_ONE_MACHINE = re.compile(
    r"(?<![\w.~-])/(?:home|root|Users|work|tmp|opt|mnt|private|var/folders)/[\w.]"  # a directory of somebody's disk
    r"|\b[A-Za-z]:\\Users\\"
    r"|\bpypi\.org/simple|\bfiles\.pythonhosted\.org|\bdownload\.pytorch\.org|\bconda\.anaconda\.org"
    r"|--(?:extra-)?index-url|--find-link[s]|\bfile:///"
)


def portable(root: Path, files: Iterable[Path]) -> list[str]:
    """Complaints about lines that name a place on one machine or a registry; files that are not text are passed by."""
    complaints = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if found := _ONE_MACHINE.search(line):
                complaints.append(f"{path.relative_to(root).as_posix()}:{number}: names `{found.group()}`")
    return complaints
