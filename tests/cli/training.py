"""A small table of patients, and its schema, for the tests of `privet train`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.data.sources import vouched

__all__ = ["SCHEMA", "patients"]

SCHEMA = vouched("""\
privet = 1
target = "readmitted"
rows = 600

[[column]]
name = "patient"
kind = "identifier"

[[column]]
name = "age"
kind = "number"
low = 18
high = 100

[[column]]
name = "ward"
kind = "category"
values = ["north", "south"]

[[column]]
name = "readmitted"
kind = "category"
values = ["no", "yes"]
""")


def patients(folder: Path, rows: int = 600, *, extra: str = "") -> Path:
    """`patients.csv` and `schema.toml`, in a folder; old people are readmitted."""
    drawn = np.random.default_rng(7)
    ages, wards = drawn.integers(18, 95, rows), drawn.choice(["north", "south"], rows)
    again = drawn.random(rows) < 1 / (1 + np.exp(-(ages - 55) / 8))
    lines = [
        f"p{place // 2},{age},{ward},{'yes' if yes else 'no'}"
        for place, (age, ward, yes) in enumerate(zip(ages, wards, again, strict=True))
    ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "patients.csv"
    path.write_text("patient,age,ward,readmitted\n" + "\n".join(lines) + ("\n" if lines else "") + extra)
    (folder / "schema.toml").write_text(SCHEMA)
    return path
