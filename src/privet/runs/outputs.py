"""Write what a run leaves: the model, the plan, the card and the pages."""

from __future__ import annotations

from collections.abc import Callable

from privet.core import write_atomically
from privet.report import TrainingCard, write_run
from privet.runs.card_builder import build_card
from privet.runs.directory import RunDirectory
from privet.runs.methods.registry import METHODS
from privet.runs.pipeline import RunResult
from privet.runs.plan_file import write_plan
from privet.training.models import store

__all__ = ["write_outputs"]


def write_outputs(directory: RunDirectory, result: RunResult, on_page: Callable[[int, int], None]) -> TrainingCard:
    """Write the files of a finished run, and then remove what it could have been resumed from.

    Args:
        directory: The run's directory.
        result: What it came to.
        on_page: Called with how much of the pages is drawn.

    Returns:
        The card.
    """
    card = build_card(result)
    store(directory.folder, result.model, result.described)
    write_plan(directory.folder, result.plan)
    for name, text in METHODS[result.request.method].files(result).items():
        write_atomically(directory.folder / name, text, "out")
    write_run(directory.folder, card, progress=on_page)
    directory.clear()
    return card
