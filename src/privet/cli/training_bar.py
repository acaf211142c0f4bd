"""A progress bar for training: epoch, ε so far, time left; and the loss, which is for internal eyes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from privet.report.words import epoch_count, up
from privet.training.fit import Progress
from privet.training.loggers import Logbook
from privet.training.recipe import Recipe
from privet.training.run import Run

__all__ = ["shown"]


@contextmanager
def shown(recipe: Recipe, book: Logbook) -> Iterator[Callable[[Run, float], None]]:
    """On a terminal's stderr, gone when the work is done; gives a function of the run and the batch's loss, which keeps
    the logs, too."""
    console = Console(stderr=True, highlight=False, emoji=False, markup=False)
    columns = (
        TextColumn("epoch {task.fields[epoch]}"),
        BarColumn(),
        TextColumn("ε ≤ {task.fields[epsilon]}"),
        TextColumn("loss {task.fields[loss]} (internal)"),
        TimeRemainingColumn(),
    )
    whole = epoch_count(recipe.epochs)
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=recipe.steps, epoch=f"0/{whole}", epsilon="0", loss="–")

        def step(run: Run, loss: float) -> None:
            if book.due(run.steps):
                seen = {"loss": loss} if run.clipped is None else {"loss": loss, "clipped": run.clipped}
                book.internal(run.steps, seen)
            book(Progress(run.steps, run.total, run.model))
            if console.is_terminal:
                reached = book.reached(run.steps)
                epoch = f"{reached.epoch:,.1f}/{whole}"
                epsilon = up(reached.epsilon)
                bar.update(task, completed=run.steps, epoch=epoch, epsilon=epsilon, loss=f"{loss:.3f}")

        yield step
