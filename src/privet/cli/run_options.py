"""Options that all commands share that train a model: `privet train` and `privet pate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from privet.cli.options import option

__all__ = [
    "DATA",
    "PRIVACY",
    "RUN",
    "Cache",
    "DataDir",
    "Delta",
    "Download",
    "HoldOut",
    "Out",
    "Public",
    "Resume",
    "Rows",
    "Schema",
    "ScoreShare",
    "Seed",
    "Target",
    "Test",
]

DATA, PRIVACY, RUN, _SCORES = "The data", "Privacy", "The run", "Scores and evidence"
_DELTA = "The δ; by default 1/(10 n), rounded down to one digit, for a public n, and else 1e-6."
_SCHEMA = "What is public of the table (TOML); see: privet schema draft."
_HOLD_OUT = "The part of the rows to score on, without --test; by default 0.2, and 0.1 for pate."
_PUBLIC = "For pate: public rows of the same form, about which teachers are asked."

Target = Annotated[str | None, option(DATA, "The column to predict.", metavar="COLUMN")]
Schema = Annotated[Path | None, option(DATA, _SCHEMA)]
Public = Annotated[str | None, option(DATA, _PUBLIC, metavar="FILE")]
Test = Annotated[Path | None, option(DATA, "A public test file of the same form: scores on it are free.")]
DataDir = Annotated[Path | None, option(DATA, "Where named sets lie.", env="PRIVET_DATA")]
Download = Annotated[bool, option(DATA, "Fetch a named set, and check it.", "--download")]
Rows = Annotated[int | None, option(DATA, "About how many rows there are, if that is public.", whole=True)]
Delta = Annotated[float | None, option(PRIVACY, _DELTA)]
HoldOut = Annotated[float | None, option(_SCORES, _HOLD_OUT)]
ScoreShare = Annotated[float, option(_SCORES, "The part of ε that a score on private rows costs; 0: none.")]
Out = Annotated[Path | None, option(RUN, "The run's folder; runs/NAME, if left out.")]
Resume = Annotated[bool, option(RUN, "Go on with the run in --out, after a stop.", "--resume")]
Cache = Annotated[Path | None, option(RUN, "Keep features of pictures here; they are as private as these.")]
Seed = Annotated[int | None, option(RUN, "For tests alone: seeded noise protects nobody.", whole=True)]
