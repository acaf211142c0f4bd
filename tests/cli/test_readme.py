"""What the README says beside its snippets: the table of what is proven, the links, the picture."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from privet.accounting.table import TABLE
from privet.core.event import EVENTS, IndependentBatches, Poisson, ShuffledEpoch, WithoutReplacement, WithReplacement
from privet.core.unit import Neighbours

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COLUMNS = {
    "every row": None,
    "Poisson": Poisson,
    "fixed size, without replacement": WithoutReplacement,
    "with replacement": WithReplacement,
    "shuffled epochs": ShuffledEpoch,
    "independent batches": IndependentBatches,
}
ALL = set(Neighbours)
SHORT = {"all": ALL, "all but L2 ball": ALL - {Neighbours.L2_BALL}, "": set[Neighbours]()}


def cells(text: str) -> dict[tuple[str, str], set[Neighbours]]:
    """The table of the README: (event, column) → neighbours."""
    rows = [
        line.strip("|").split("|") for line in text.splitlines() if line.startswith("| event |") or "| `" in line[:3]
    ]
    head = [name.strip() for name in rows[0][1:]]
    assert head == list(COLUMNS)
    found = {}
    for row in rows[1:]:
        for event in re.findall(r"`(\w+)`", row[0]):
            for column, cell in zip(head, (cell.strip() for cell in row[1:]), strict=True):
                words = SHORT[cell] if cell in SHORT else {Neighbours(word.strip()) for word in cell.split(",")}
                found[event, column] = set(words)
    return found


def test_the_table_of_what_is_proven_is_the_accountants_own() -> None:
    """Fails when the README promises a price that no theorem covers, or leaves one out."""
    shown = cells(README[README.index("## What is proven") : README.index("## Where it stands")])
    proven = {
        (event.__name__, column): {
            n for row in TABLE if event in row.leaves and row.sampling is by for n in row.neighbours
        }
        for event in {leaf for row in TABLE for leaf in row.leaves}
        for column, by in COLUMNS.items()
    }
    assert shown == proven
    assert {event for event, _ in shown} <= set(EVENTS)


@pytest.mark.parametrize("page", ["README.md", "docs/reference/command-line.md"])
def test_links_lead_somewhere(page: str) -> None:
    """Fails when a page links to a file that is not there."""
    path = ROOT / page
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if "://" not in link and not (path.parent / link).exists()] == []


def test_the_picture_is_small() -> None:
    """Fails when the README's picture has grown beyond what a clone should carry (300 kB)."""
    picture = ROOT / "docs" / "images" / "account.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 300_000
