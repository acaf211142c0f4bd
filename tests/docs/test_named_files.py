"""Source files that pages name exist, so that a page does not describe a file that was moved."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "privet"
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
HISTORY = {"renamed.md"}
"""Pages about names that are gone."""


def missing_files(text: str) -> list[str]:
    """Return the files in backticks, from the root, from `src` or from a room, that do not exist."""
    starts = "|".join(["src", "tests", "tools", "benchmarks", "privet", *ROOMS])
    named = re.findall(rf"`((?:{starts})/[\w./-]+\.(?:py|toml|json|yml))`", text)
    places = (ROOT, ROOT / "src", PACKAGE)
    return [name for name in named if not any((place / name).exists() for place in places)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_names_files_that_exist(page: Path) -> None:
    """Fails when a file was moved or removed and a page still names it."""
    if page.name not in HISTORY:
        assert missing_files(page.read_text(encoding="utf-8")) == []


def test_missing_file_on_a_page_is_seen() -> None:
    """Fails when the check above has gone blind."""
    text = "`core/event.py` `core/gone.py` `privet/core/unit.py` `src/privet/gone.py` `tests/<room>/x.py` core/no.py"
    assert missing_files(text) == ["core/gone.py", "src/privet/gone.py"]
