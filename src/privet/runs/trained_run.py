"""A finished run as an object: its model, guarantee, scores and card; predictions, attacks and audits."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.core import Guarantee, InvalidInput, Score
from privet.data import is_frame, write_rows
from privet.report import INTERNAL_CARD, INTERNAL_PAGE, REPORT, TrainingCard, load, shareable
from privet.runs.attacks.attack import AttackResult, attack_run
from privet.runs.attacks.audit import AuditResult, audit_run
from privet.runs.attacks.rows import require_finished
from privet.runs.plan import RunPlan
from privet.runs.plan_file import read_plan
from privet.runs.predictions import predict_rows
from privet.training.models import Model, ModelDescription, restore

if TYPE_CHECKING:
    import polars as pl

__all__ = ["TrainedRun", "open_run", "rows_as_file"]


@contextmanager
def rows_as_file(data: Any, folder: Path, name: str, target: str | None = None) -> Iterator[str | None]:
    """Yield the path of rows, or the name of a data set; rows in memory are written to a temporary private file.

    Args:
        data: A path or the name of a data set, which is yielded as it is; rows in memory; or None, which yields None.
        folder: Directory of the temporary file.
        name: Name of the temporary file, without its suffix.
        target: Name of the target column, where the rows are a pair of a matrix and targets.
    """
    if data is None or isinstance(data, (str, Path)):
        yield None if data is None else str(data)
        return
    path = write_rows(data, folder, name, target)
    try:
        yield str(path)
    finally:
        path.unlink(missing_ok=True)


@dataclass(frozen=True)
class TrainedRun:
    """A finished run. Everything is read from its directory, so that it can be copied and opened elsewhere.

    The properties give what may be shared, except `internal_path` and the internal part of `card`. The result of
    `attack` is private.
    """

    folder: Path

    def __repr__(self) -> str:
        return f"TrainedRun({str(self.folder)!r}, {self.guarantee})"

    @cached_property
    def card(self) -> TrainingCard:
        """The card, with its internal part where that is in the directory."""
        return load(self.folder, internal=(self.folder / INTERNAL_CARD).exists())

    @cached_property
    def _restored(self) -> tuple[Model, ModelDescription]:
        return restore(self.folder)

    @property
    def model(self) -> Model:
        """The released model, ready to be called on rows."""
        return self._restored[0].eval()

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of the whole run."""
        return self.card.privacy.guarantee.value

    @property
    def scores(self) -> tuple[Score, ...]:
        """The scores that may be shared, each with its interval."""
        return tuple(score.value for score in shareable(self.card).scores)

    @property
    def report_path(self) -> Path:
        """The page that may be shared."""
        return self.folder / REPORT

    @property
    def internal_path(self) -> Path:
        """The internal report, which must not be shared."""
        return self.folder / INTERNAL_PAGE

    @cached_property
    def plan(self) -> RunPlan:
        """The plan that was charged."""
        return read_plan(self.folder, self.card)

    def predict(self, data: Any, *, probabilities: bool = False, data_dir: str | Path | None = None) -> pl.DataFrame:
        """Predict new rows. This uses no budget: it is post-processing of the released model.

        Args:
            data: A path, a Polars or pandas frame, an array of images, or a named data set, whose test part is used.
            probabilities: Whether to add a column p(class) for each class.
            data_dir: Directory of named data sets.

        Returns:
            One row for each row of the data.
        """
        model, described = self._restored
        with tempfile.TemporaryDirectory(prefix="privet-") as folder, rows_as_file(data, Path(folder), "rows") as path:
            return predict_rows(model, described, path or "", data_dir=data_dir, probabilities=probabilities)

    def attack(
        self,
        *,
        data: Any = None,
        outsiders: Any = None,
        data_dir: str | Path | None = None,
        shadows: int = 16,
        like_run: bool = False,
        budget_minutes: float | None = None,
        rates: Sequence[float] | None = None,
        resume: bool = False,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> AttackResult:
        """Attack the run's model with membership inference, and add the results to the internal report.

        Args:
            data: The rows that the run was trained on. Needed where it was trained on rows in memory.
            outsiders: Rows that the run was not trained on. By default the run's test or held-out rows.
            data_dir: Directory of named data sets.
            shadows: Number of shadow models to train, an even number; 0 skips the attacks that need them.
            like_run: Whether to train the shadow models by the run's own plan, with its noise.
            budget_minutes: Stop training shadow models after this many minutes.
            rates: False-positive rates to report; by default 0.1 % and 1 %, where there are enough non-members.
            resume: Whether to resume an interrupted attack with the shadow models that it has trained.
            on_progress: Called with the number of finished parts and their total: shadow models first, then the page.

        Returns:
            The results of the attacks; all of them are private.

        Raises:
            InvalidInput: The run has no classes, its rows are missing or not those of the run, or an argument is wrong.
        """
        target = self.card.schema and self._restored[1].table
        name = target.target if target else None
        with (
            tempfile.TemporaryDirectory(prefix="privet-") as folder,
            rows_as_file(data, Path(folder), "data", name) as members,
            rows_as_file(outsiders, Path(folder), "outsiders", name) as others,
        ):
            return attack_run(
                self.folder,
                data=members,
                outsiders=others,
                data_dir=None if data_dir is None else Path(data_dir),
                shadows=shadows,
                like_run=like_run,
                budget_minutes=budget_minutes,
                rates=rates,
                resume=resume,
                on_progress=on_progress,
            )

    def audit(
        self, *, ladder: bool = False, canaries: int | None = None, confidence: float | None = None
    ) -> AuditResult:
        """Audit the run: return empirical lower bounds on ε, to compare with its guarantee.

        Args:
            ladder: Whether to repeat the DP-SGD plan on synthetic rows, against five increasingly strong adversaries.
            canaries: Number of canaries where the plan is repeated.
            confidence: Confidence of each lower bound; by default all tests of a report share an error of 5 %.

        Returns:
            The lower bounds, each with its confidence.

        Raises:
            InvalidInput: The run is unfinished, has no stored plan, or its plan cannot be repeated.
        """
        self.__dict__.pop("card", None)  # the audit may rewrite it
        return audit_run(self.folder, ladder=ladder, canaries=canaries, confidence=confidence)


def open_run(folder: str | Path) -> TrainedRun:
    """Open a finished run.

    Args:
        folder: Directory that `privet.train` or `privet train` wrote.

    Returns:
        The run.

    Raises:
        InvalidInput: There is no finished run, or its card claims a smaller ε than its events cost.
    """
    path = Path(folder)
    if is_frame(folder) or not path.is_dir():
        raise InvalidInput("run", f"is {str(folder)!r}, which is no folder", "name a folder that `privet train` wrote")
    require_finished(path)
    run = TrainedRun(path)
    if run.card is None:
        raise InvalidInput("run", "has no card")
    return run
