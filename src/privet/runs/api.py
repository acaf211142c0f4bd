"""`privet.train`: the commands `privet train` and `privet pate` as one call."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.core import InvalidInput
from privet.data import Schema
from privet.runs.callbacks import RunCallbacks
from privet.runs.directory import default_directory
from privet.runs.files import call_of, files_of
from privet.runs.outputs import write_outputs
from privet.runs.pipeline import TrainingRun
from privet.runs.request import TrainRequest
from privet.runs.start import hold_directory
from privet.runs.trained_run import TrainedRun

if TYPE_CHECKING:
    from privet.ledger import Budget

__all__ = ["train"]


def train(
    data: Any = "digits",
    *,
    target: str | None = None,
    schema: str | Path | Schema | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    method: str = "dp-sgd",
    budget: Budget | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    test: Any = None,
    public: Any = None,
    compare: Sequence[str] = (),
    tune: float | None = None,
    model: str = "auto",
    features: str = "auto",
    audit: bool = False,
    options: Mapping[str, Any] | None = None,
    callbacks: RunCallbacks | None = None,
) -> TrainedRun:
    """Train a private model, and write a folder with the model, its plan, its card and a report.

    Args:
        data: A path (CSV, Parquet, .npz), a Polars or pandas frame, a pair of arrays (x, y), or a named data set:
            digits, mnist, fashion-mnist, adult. Rows in memory are stored in the run's hidden directory until it ends.
            None where the rows are elsewhere, and the option `votes` names their teachers' vote files.
        target: The column to predict.
        schema: Public schema of a table: a TOML file or a `privet.data.Schema`. Without one, a tenth of ε learns it.
        epsilon: ε of the run, with everything that it needs; methods to compare add theirs.
        delta: δ of the run; by default below 1/(10 n) for a public number n of rows, and otherwise 1e-6.
        method: Name of the method, one of `privet.runs.METHODS`.
        budget: The budget to charge: `privet.Ledger("clinic.db").budget("clinic")`.
        out: Run directory; by default the first free one below `runs`.
        resume: Whether to resume the run that was interrupted in `out`, by its own plan and under its charge.
        test: Public rows to evaluate on, at no cost. Without some, a part of the rows is held out.
        public: For PATE: unlabeled public rows, on which the teachers vote.
        compare: Further methods, each charged in addition; "none" is for the internal report.
        tune: Average number of runs, of which the best is selected privately.
        model: "auto", "linear", "residual", "convolutions", or "module.py:factory".
        features: Features of images that a model uses: "auto", "scattering" or "pixels".
        audit: Insert synthetic canaries, and report the lower bound on ε that they prove.
        options: Further options by the names of the command's: rows, user, rows_per_user, classes, clip, batch_size,
            epochs, learning_rate, hold_out, score_share, schema_share, canaries, log, seed, …; and those of the
            method alone: for PATE teachers, questions, noise, votes, ….
        callbacks: Functions that are called with the plan, messages and progress.

    Returns:
        The finished run.

    Guarantee: `run.guarantee`, for the unit that it states: one row, or one user where the schema names one. All that
    is released is charged before anything is drawn. Assumptions are listed in the guarantee.

    Raises:
        InvalidInput: An argument is wrong, or rows cannot be read; nothing was charged, or it says what was.
        BudgetExceeded: The budget refuses the run; nothing was charged.
    """
    callbacks = callbacks or RunCallbacks()
    given = {
        "target": target,
        "epsilon": epsilon,
        "delta": delta,
        "method": method,
        "compare": tuple(compare),
        "tune": tune,
        "model": model,
        "features": features,
        "audit": audit,
        "budget": None if budget is None else budget.name,
        **(options or {}),
    }
    if budget is not None:
        given["ledger"] = _location(budget)
    folder = default_directory(data if isinstance(data, str) else "run", None if out is None else Path(out))
    if resume and out is None:
        raise InvalidInput("out", "is missing", "name the folder of the run that was interrupted")
    request = TrainRequest.of(given | ({"data": ""} if data is None else {}))
    rows = {"data": data, "test": test, "public": public}
    with warnings.catch_warnings():
        # The report tells of a large δ, in words.
        warnings.filterwarnings("ignore", message="delta is", category=UserWarning)
        with hold_directory(folder, resume=resume) as directory:
            if resume:
                interrupted = directory.read_interrupted()
                request, command = interrupted.request, interrupted.command
            else:
                request = replace(request, **files_of(directory, rows, schema, request.target))
                command = call_of(request, directory)
            result = TrainingRun(request, directory, command, resume, callbacks).execute()
            write_outputs(directory, result, callbacks.on_page)
    return TrainedRun(folder)


def _location(budget: Budget) -> str:
    location = budget.location
    if location is None:
        raise InvalidInput("budget", "was not read from a ledger", 'give privet.Ledger("FILE").budget("NAME")')
    return location
