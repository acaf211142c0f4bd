"""Where the published data sets lie, and a small table in every form."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from privet.data import Category, Identifier, Number, Schema


@pytest.fixture
def data_dir() -> Path:
    """The folder of published sets, or a skip where this machine has none."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    place = Path(os.environ.get("PRIVET_DATA") or beside)
    if not (place / "adult").is_dir():
        pytest.skip("no published data sets: set PRIVET_DATA")
    return place


@pytest.fixture
def clinic() -> Schema:
    """People with an age, a ward and an outcome."""
    columns = (
        Identifier("person"),
        Number("age", 0, 100),
        Category("ward", ("north", "south, new")),
        Category("well", ("no", "yes")),
    )
    return Schema(columns, target="well", user="person")
