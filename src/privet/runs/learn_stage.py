"""What is released before a plan is complete: a schema, or the number of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from privet.core import InvalidInput, Release, write_atomically
from privet.core.random import Rng, default_rng
from privet.data import Table
from privet.mechanisms import Count
from privet.runs.directory import RunDirectory
from privet.runs.inputs import TrainingInputs
from privet.runs.payment import Payment
from privet.runs.plan import RunPlan
from privet.runs.request import TrainRequest

__all__ = ["SOURCE", "count_rows", "learn_schema"]

SOURCE = "training data"
"""What DP-SGD calls its rows; all else that is released is of the same ones."""


def learn_schema(
    request: TrainRequest,
    inputs: TrainingInputs,
    plan: RunPlan,
    directory: RunDirectory,
    payment: Payment,
    rng: Rng | None,
    tell: Callable[[str], None],
) -> Release[str] | None:
    """Release the schema as TOML, if the plan has a stage that learns it.

    Args:
        request: The request of the run.
        inputs: The data of the run.
        plan: The plan of the run.
        directory: Run directory, in which the release is stored.
        payment: Charge of the run.
        rng: Source of randomness; None uses the operating system's.
        tell: Called with progress messages, which may be shown to anyone.

    Returns:
        The schema, or None where the plan does not learn one.

    Guarantee: that of `plan.learning`. A run that is resumed reads what was released, and draws nothing.
    """
    if plan.learning is None or inputs.source is None:
        return None
    stored = directory.stored_release("schema")
    if stored is not None:
        return stored
    tell("Checking the file …")
    for _ in inputs.source.batches(list(inputs.source.header[:1])):
        pass  # what is damaged shows before anything is drawn
    tell("Learning the schema …")
    payment.draw(first=True)
    learned = plan.learning.release(inputs.source, rng=rng or default_rng(), name=SOURCE)
    text = learned.map(lambda schema: replace(schema, rows=request.rows or schema.rows).to_toml())
    directory.store_release("schema", text)
    # It is paid for, also if the run comes to nothing.
    write_atomically(directory.folder / "schema.toml", text.value, "out")
    return text


def count_rows(
    inputs: TrainingInputs, plan: RunPlan, directory: RunDirectory, payment: Payment, rng: Rng | None
) -> Release[int]:
    """Release the number of rows.

    Args:
        inputs: The data of the run.
        plan: The plan of the run.
        directory: Run directory, in which the release is stored.
        payment: Charge of the run.
        rng: Source of randomness; None uses the operating system's.

    Raises:
        InvalidInput: The plan does not count rows.

    Guarantee: that of `plan.counting`. A run that is resumed reads what was released, and draws nothing.
    """
    stored = directory.stored_release("rows")
    if stored is not None:
        return stored
    if plan.counting is None or inputs.train is None:
        raise InvalidInput("rows", "are not counted")
    data = inputs.train
    users = data.users if isinstance(data, Table) else None
    count = Count(plan.unit, plan.rows_per_user)(np.ones(len(data), dtype=np.bool_), users)
    payment.draw(first=True)
    released = plan.counting.release(count, rng=rng or default_rng(), source=SOURCE).map(int)
    directory.store_release("rows", released)
    return released
