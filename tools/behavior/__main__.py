"""`python -m tools.behavior`: run the recorded commands again, and say what differs."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.behavior.commands import COMMANDS, FAILURES, write_files
from tools.behavior.record import Record, record_command

RECORD = Path(__file__).with_name("recorded.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Record or compare. Return 1 if something differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.behavior", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the record in place of comparing with it")
    parser.add_argument("--record", type=Path, default=RECORD, help="the record (default: the one beside this file)")
    parser.add_argument("--exact", action="store_true", help="also digests of models, which differ between processors")
    options = parser.parse_args(arguments)
    found = record_all(exact=options.exact)
    if options.write:
        options.record.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    differences = list(compare(json.loads(options.record.read_text(encoding="utf-8")), found))
    for line in differences:
        sys.stdout.write(f"{line}\n")
    return 1 if differences else 0


def record_all(*, exact: bool) -> dict[str, Record]:
    """Run all commands in a fresh directory."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="behavior-") as directory:
        os.chdir(directory)
        try:
            write_files(Path(directory))
            records = {}
            for name, line in (COMMANDS | FAILURES).items():
                sys.stderr.write(f"{name}\n")
                records[name] = record_command(line, exact=exact)
        finally:
            os.chdir(before)
    return json.loads(json.dumps(records))  # type: ignore[no-any-return]


def compare(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield one line for each difference."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from compare(before.get(key), after.get(key), f"{path}/{key}")
    elif isinstance(before, list) and isinstance(after, list) and all(isinstance(x, str) for x in before + after):
        yield from (f"{path}: no longer {each}" for each in before if each not in after)
        yield from (f"{path}: new: {each}" for each in after if each not in before)
    elif before != after:
        yield f"{path}: {before!r} → {after!r}"


if __name__ == "__main__":
    sys.exit(main())
