"""The commands that are recorded, and the files that they read: small, made up, and the same every time."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from privet.core.random import SeededRng
from privet.data import BoundsSource, Schema, SourceKind, with_sources
from privet.local.questionnaire import read_questionnaire
from privet.local.reports import report_on

__all__ = ["COMMANDS", "FAILURES", "write_files"]

_SCHEMA = """\
privet = 1
target = "well"
rows = 600

[[column]]
name = "age"
kind = "number"
low = 0
high = 100

[[column]]
name = "ward"
kind = "category"
values = ["north", "south", "west"]

[[column]]
name = "well"
kind = "category"
values = ["no", "yes"]
"""
_SURVEY = """\
privet = 1
title = "Commuting"
epsilon = 2.0
budget = "split"

[[question]]
name = "transport"
text = "How do you come to work?"
kind = "choice"
options = ["on foot", "bus", "car"]

[[question]]
name = "minutes"
text = "How many minutes does it take?"
kind = "number"
low = 0
high = 120
"""
_RUN = "--seed 3"
_TABLE = f"train clinic.csv --schema clinic.schema.toml --budget clinic {_RUN}"
_ACCOUNT = "--sample-rate 0.01 --steps 1000 --delta 1e-5 --json"

COMMANDS: dict[str, str] = {
    "ledger create": "ledger create clinic --epsilon 60 --delta 1e-2",
    "train dp-sgd": f"{_TABLE} --epsilon 2 --epochs 3 --out runs/sgd",
    "train output": f"{_TABLE} --epsilon 2 --method output --out runs/output",
    "train objective": f"{_TABLE} --epsilon 2 --method objective --test test.csv --out runs/objective",
    "train input": f"train clinic.csv --schema clinic.schema.toml {_RUN} --epsilon 4 --method input --out runs/input",
    "train schema learned": "train clinic.csv --target well --budget clinic --epsilon 8 --epochs 2 "
    f"{_RUN} --out runs/learned",
    "train compare": f"{_TABLE} --epsilon 2 --epochs 2 --compare none,objective --yes --out runs/compare",
    "train tune": f"{_TABLE} --epsilon 4 --epochs 2 --tune 2 --out runs/tune",
    "train audit": f"{_TABLE} --epsilon 4 --epochs 3 --audit --canaries 200 --out runs/audit",
    "pate run": f"pate run clinic.csv --public public.csv --schema clinic.schema.toml --teachers 30 --epsilon 4 "
    f"--budget clinic {_RUN} --out runs/pate",
    "pate vote": "pate vote clinic.csv --public public.csv --schema clinic.schema.toml --teachers 10 --out a.votes",
    "pate vote other": "pate vote test.csv --public public.csv --schema clinic.schema.toml --teachers 10 --out b.votes",
    "pate aggregate": f"pate aggregate a.votes b.votes --public public.csv --schema clinic.schema.toml --epsilon 8 "
    f"{_RUN} --out runs/silos",
    "query": "query clinic.csv count 'mean(age) by ward' --epsilon 1 --budget clinic --json",
    "survey design": "survey design commute.toml",
    "survey estimate": "survey estimate commute.toml reports.jsonl --json",
    "attack": "attack runs/sgd --shadows 4",
    "audit run": "audit runs/audit",
    "audit mechanism": "audit laplace --scale 1 --trials 2000",
    "link": "link clinic.csv --with people.csv --on age,ward --json",
    "account": f"account --noise-multiplier 1.1 {_ACCOUNT}",
    "calibrate": f"calibrate --epsilon 3 {_ACCOUNT}",
    "predict": "predict runs/sgd test.csv --out predicted.csv",
    "report compare": "report compare runs/sgd runs/objective",
    "ledger show": "ledger show clinic --json",
}
"""By name, in the order in which they run."""

FAILURES: dict[str, str] = {
    "train on a missing file": "train nowhere.csv --target well",
    "train beyond the budget": f"{_TABLE} --epsilon 5000 --out runs/beyond",
    "train with an unknown method": f"{_TABLE} --epsilon 1 --method magic",
    "query of an unknown column": "query clinic.csv 'mean(height)' --epsilon 1 --budget clinic",
    "attack on no run": "attack nowhere",
}


def write_files(folder: Path) -> None:
    """Write the tables, the schema and the questionnaire that the commands read."""
    draw = random.Random(17)  # noqa: S311
    for name, count in (("clinic", 600), ("test", 200), ("public", 200)):
        rows = [_row(draw) for _ in range(count)]
        _write_table(folder / f"{name}.csv", ("age", "ward", "well"), rows)
    people = [(f"p{place}", draw.randrange(100), draw.choice(("north", "south", "west"))) for place in range(50)]
    _write_table(folder / "people.csv", ("name", "age", "ward"), people)
    source = BoundsSource(SourceKind.CODEBOOK, by="Ada Lovelace", on=date(2026, 1, 2))
    text = with_sources(_SCHEMA, {name: source for name, _ in Schema.from_toml(_SCHEMA).sources()})
    (folder / "clinic.schema.toml").write_text(text, encoding="utf-8")
    (folder / "commute.toml").write_text(_SURVEY, encoding="utf-8")
    survey, rng = read_questionnaire(folder / "commute.toml"), SeededRng(5)
    reports = [report_on(survey, {"transport": place % 3, "minutes": float(place % 120)}, rng) for place in range(300)]
    (folder / "reports.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in reports), encoding="utf-8")


def _row(draw: random.Random) -> tuple[int, str, str]:
    age, ward = draw.randrange(100), draw.choice(("north", "south", "west"))
    return age, ward, "yes" if draw.random() < (0.85 if age > 50 else 0.15) else "no"


def _write_table(path: Path, header: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
