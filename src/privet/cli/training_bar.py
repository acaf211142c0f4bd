"""A progress bar for training: epoch, ε so far, time left; and the loss, which is private."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from privet.report import epoch_count, up
from privet.runs.methods import StepProgress

__all__ = ["bar"]


@contextmanager
def bar() -> Iterator[Callable[[StepProgress], None]]:
    """Give a function that draws each step on a terminal's stderr; the bar is gone when the work is done."""
    console = Console(stderr=True, highlight=False, emoji=False, markup=False)
    columns = (
        TextColumn("epoch {task.fields[epoch]}"),
        BarColumn(),
        TextColumn("ε ≤ {task.fields[epsilon]}"),
        TextColumn("loss {task.fields[loss]} (internal)"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        tasks: list[TaskID] = []

        def show(step: StepProgress) -> None:
            if not console.is_terminal:
                return
            epochs = epoch_count(step.epoch * step.total / step.step)
            if not tasks:
                tasks.append(progress.add_task("", total=step.total, epoch=f"0/{epochs}", epsilon="0", loss="–"))
            epoch, epsilon, loss = f"{step.epoch:,.1f}/{epochs}", up(step.epsilon()), f"{step.loss:.3f}"
            progress.update(tasks[0], completed=step.step, epoch=epoch, epsilon=epsilon, loss=loss)

        yield show
