"""The syllabus: everything that the package offers, each with a snippet that shows it and what must come out.

`docs/syllabus.toml` is the source. The tests run it row by row; `python -m tools.syllabus` writes the page
`docs/syllabus.md` from it, and a test compares the two.
"""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass, fields
from enum import Enum
from itertools import groupby
from pathlib import Path

from tools.snippets import SnippetError, matches, run_console, run_python

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "syllabus.toml"
PAGE = ROOT / "docs" / "syllabus.md"


class Kind(Enum):
    """What sort of thing a row shows; the page keeps this order, under these headings."""

    RECORD = "record"
    EVENT = "event"
    SAMPLING = "sampling"
    ACCOUNTANT = "accountant"
    CONVERSION = "conversion"
    CALIBRATION = "calibration"
    MEANING = "meaning"
    RANDOMNESS = "randomness"
    MECHANISM = "mechanism"
    METHOD = "method"
    LEDGER = "ledger"
    ATTACK = "attack"
    COMMAND = "command"
    EXAMPLE = "example"

    @property
    def heading(self) -> str:
        one = {Kind.CALIBRATION, Kind.MEANING, Kind.RANDOMNESS, Kind.LEDGER, Kind.SAMPLING}
        return self.value.capitalize() + ("" if self in one else "s")


@dataclass(frozen=True)
class Row:
    """One thing that the package offers."""

    name: str
    kind: Kind
    about: str
    """One plain sentence."""
    show: str
    """Python text; or, where it begins with `$ `, commands as one would type them."""
    reference: str = ""
    """The paper, with the theorem where there is one."""
    expect: str = ""
    """All that must be printed, where `...` stands for any text."""
    pattern: str = ""
    """Or a regular expression that must be found in what is printed."""
    exit: int = 0
    """The exit code that commands must end with."""

    def __post_init__(self) -> None:
        if not (self.name and self.show.strip() and re.fullmatch(r"[^\n]+\.", self.about.strip())):
            raise ValueError(f"row {self.name!r}: wants a name, something to show, and one sentence in `about`")
        if bool(self.expect.strip()) == bool(self.pattern):
            raise ValueError(f"row {self.name!r}: wants either `expect` or `pattern`, so that it can fail")

    @property
    def is_command(self) -> bool:
        return self.show.startswith("$ ")


def load(text: str) -> list[Row]:
    """The rows of a syllabus, checked: no unknown keys, and no two rows of one kind with one name."""
    rows = []
    for entry in tomllib.loads(text)["row"]:
        if unknown := sorted(set(entry) - {field.name for field in fields(Row)}):
            raise ValueError(f"row {entry.get('name')!r}: unknown keys {unknown}")
        rows.append(Row(**entry | {"kind": Kind(entry["kind"])}))
    keys = [(row.kind, row.name) for row in rows]
    if twice := sorted({f"{kind.value} {name}" for kind, name in keys if keys.count((kind, name)) > 1}):
        raise ValueError(f"rows that occur twice: {twice}")
    return rows


def run(row: Row, directory: Path) -> str:
    """Do what a row shows, in a namespace and a directory of its own, and check what comes out."""
    if row.is_command:
        printed = run_console(row.show, directory, row.exit)
    else:
        printed = run_python(row.show, {"__name__": "__main__"}, directory, f"<{row.kind.value} {row.name}>")
    if row.pattern:
        came_out = re.search(row.pattern, printed, re.MULTILINE) is not None
    else:
        came_out = matches(row.expect, printed)
    if not came_out:
        raise SnippetError(f"{row.name}: must print\n{row.expect or row.pattern}\nand printed\n{printed}")
    return printed


def render(rows: list[Row]) -> str:
    """The page: a table of contents by kind, then each row with its snippet and what comes out."""
    # Rows keep their order in the file within their kind.
    order = list(Kind)
    kinds = [
        (kind, list(group))
        for kind, group in groupby(sorted(rows, key=lambda row: order.index(row.kind)), key=lambda row: row.kind)
    ]
    parts = [
        "<!-- Written by `make syllabus` from docs/syllabus.toml; edit that file. -->",
        "# Syllabus",
        "Everything that Privet offers, each with a snippet that shows it. The tests run every row.",
        "\n".join(["| kind | rows |", "|---|---|", *(_contents(kind, group) for kind, group in kinds)]),
    ]
    for kind, group in kinds:
        parts.append(f"## {kind.heading}")
        parts += [_section(row) for row in group]
    return "\n\n".join(parts) + "\n"


def _contents(kind: Kind, rows: list[Row]) -> str:
    return f"| [{kind.heading}](#{kind.heading.lower()}) | {', '.join(row.name for row in rows)} |"


def _section(row: Row) -> str:
    language = "console" if row.is_command else "python"
    about = row.about.strip() + (f" ({row.reference})" if row.reference else "")
    result = f"prints\n\n```text\n{row.expect.strip()}\n```" if row.expect else f"prints a match of `{row.pattern}`"
    # The rows are run by their own test, one by one, so the test of all pages leaves them out.
    shown = f"```{language} not-run: tests/test_syllabus.py runs it\n{row.show.strip()}\n```"
    return f"### {row.name}\n\n{about}\n\n{shown}\n\n{result}"


def main() -> int:
    """Write the page."""
    PAGE.write_text(render(load(SOURCE.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
