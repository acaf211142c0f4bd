"""Small tables with everything that can be wrong in a cell, and a schema for them."""

from __future__ import annotations

import polars as pl

from privet.data import Category, Identifier, Number, Schema
from tests.data.sources import sourced

AGE, BMI = Number("age", 0, 100), Number("bmi", 10, 60)
WARD, SICK, TOWN = Category("ward", ("north", "south")), Category("sick", ("0", "1")), Category("town", ())
SCHEMA = sourced(Schema((AGE, BMI, WARD, SICK, TOWN, Identifier("id"))))
BY_USER = Schema(SCHEMA.columns, user="id", most_rows_per_user=2)

NASTY = [
    {"age": "41", "bmi": "22.5", "ward": "north", "sick": "1", "town": "Bath", "id": "a"},
    {"age": "", "bmi": "nan", "ward": "", "sick": "?", "town": "", "id": "b"},
    {"age": "1e308", "bmi": "-inf", "ward": "west", "sick": "2", "town": "York", "id": "c"},
    {"age": " 17 ", "bmi": "inf", "ward": " south ", "sick": "0", "town": " Bath ", "id": "a"},
    {"age": "-5", "bmi": "x", "ward": "South", "sick": "01", "town": "?", "id": "a"},
    {"age": "100", "bmi": "60", "ward": "south", "sick": "1", "town": "York", "id": ""},
    {"age": "99.999", "bmi": "10", "ward": "NA", "sick": "1", "town": "NA", "id": "d"},
]
QUESTIONS = (
    "count",
    "count where sick = 1",
    "count by ward",
    "count by ward, sick where age > 20",
    "sum(age) by ward",
    "mean(age)",
    "mean(bmi) by ward where sick = 1 or not (age < 30)",
    "variance(age) by sick",
    "covariance(age, bmi)",
    "histogram(age, 4) by ward",
    "histogram(ward) where bmi is not missing",
    "median(age) by ward",
    "quantile(bmi, 0.9)",
    "min(age)",
    "max(bmi) where ward in (north, south)",
    "top(ward, 1)",
)


def frame(rows: list[dict[str, str]]) -> pl.DataFrame:
    """The rows as a file of texts would give them."""
    return pl.DataFrame(rows, schema=dict.fromkeys(NASTY[0], pl.String))


def clinic(rows: int) -> pl.DataFrame:
    """A larger table, made by arithmetic, with numbers stored as numbers."""
    return pl.DataFrame(
        {
            "age": [(37 * i) % 101 for i in range(rows)],
            "bmi": [10 + (i * i % 997) / 20 for i in range(rows)],
            "ward": [("north", "south", "west")[i * i % 3] for i in range(rows)],
            "sick": [int(i % 5 == 0) for i in range(rows)],
            "town": [("Bath", "York", "Ely")[i % 3] for i in range(rows)],
            "id": [f"p{i // 4}" for i in range(rows)],
        }
    )
