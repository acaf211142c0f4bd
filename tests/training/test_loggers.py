"""Logs of a run: only what is public or released, unless internal values were asked for; and no step twice."""

from __future__ import annotations

import csv
import json
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from privet.accounting import epsilon
from privet.core.errors import InvalidInput
from privet.core.event import Repeated
from privet.ledger import Ledger
from privet.training import DPSGD, BatchSampling, Progress
from privet.training.loggers import CsvLog, Log, Logbook, LogEntry, MlflowLog, TensorBoardLog
from tests.training.test_fit import DATA, ROWS, fitted, network

# MLflow uses what the newest SQLAlchemy deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

STEPS, EVERY = 8, 2
PLAN = DPSGD(noise_multiplier=1.0, delta=1e-3, batch_size=10, steps=STEPS, population=ROWS)
SECRET = 0.123456789
"""Stands for a loss on private rows: no file but an internal one may hold it."""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def written(book: Logbook, first: int = 1, last: int = STEPS) -> None:
    """What a loop of one's own does, with a loss on private rows after each step."""
    model = network()
    for step in range(first, last + 1):
        book(Progress(step, STEPS, model))
        book.internal(step, {"loss": SECRET, "clipped": 0.5})
    book.close()


class Forgetful:
    """A log of one's own."""

    def begin(self, scores: tuple[str, ...]) -> None: ...

    def write(self, reached: LogEntry) -> None: ...

    def write_internal(self, step: int, values: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...


def test_fit_writes_what_is_public(tmp_path: Path) -> None:
    """Fails when a line is missing or wrong, a score is taken in training mode or leaves the model in eval mode, or ε
    so far is not what those steps cost."""
    model, seen = network(), []

    def score(given: nn.Module) -> float:
        seen.append((given.training, torch.is_grad_enabled()))
        return 0.5

    log = CsvLog(tmp_path / "log.csv")
    release = fitted(model, plan=PLAN, callbacks=[Logbook(PLAN, [log], every=3, scores={"test accuracy": score})])
    log.close()
    found = rows(tmp_path / "log.csv")
    assert [int(row["step"]) for row in found] == [3, 6, 8]
    assert [float(row["epoch"]) for row in found] == [0.75, 1.5, 2.0]
    assert [row["test accuracy"] for row in found] == ["0.5"] * 3
    assert seen == [(False, False)] * 3
    assert isinstance(release.event, Repeated)
    for row in found:
        own = epsilon(Repeated(release.event.event, int(row["step"])), 1e-3, unit=release.unit)
        assert float(row["epsilon"]) == own.epsilon.upper
    assert float(found[-1]["epsilon"]) == release.guarantee.epsilon.upper
    assert set(found[0]) == {"step", "total", "epoch", "epsilon", "delta", "time", "test accuracy"}
    assert all(row["time"].endswith("+00:00") and "." not in row["time"] for row in found)


def test_scores_leave_the_modes_as_they_were() -> None:
    """Fails when the steps after a score are made in eval mode, or layers that were frozen are not any more."""
    model = network().train()
    list(model.children())[2].eval()
    before = [module.training for module in model.modules()]
    seen: list[bool] = []

    def score(given: nn.Module) -> float:
        seen.append(given.training)
        return 1.0

    book = Logbook(PLAN, [Forgetful()], scores={"modes": score})
    book(Progress(STEPS, STEPS, model))
    assert seen == [False]
    assert [module.training for module in model.modules()] == before
    assert {True, False} == set(before)


def test_spent_is_never_understated() -> None:
    """Fails when ε between the counts that are priced is that of the count before, or falls as steps go on."""
    plan = replace(PLAN, steps=1000)
    book, event = Logbook(plan), plan.event()
    assert isinstance(event, Repeated)
    told = [book.reached(step).epsilon for step in range(1, 1001)]
    assert told == sorted(told)
    for step in (1, 41, 42, 43, 500, 999, 1000):
        own = epsilon(Repeated(event.event, step), 1e-3, unit=plan.unit()).epsilon
        ahead = epsilon(Repeated(event.event, min(step + 42, 1000)), 1e-3, unit=plan.unit()).epsilon
        assert own.lower <= told[step - 1] <= ahead.upper
    assert Logbook(replace(plan, noise_multiplier=0.0)).reached(1).epsilon == inf


@pytest.mark.parametrize(
    ("plan", "rows", "epochs"),
    [
        (replace(PLAN, steps=None, epochs=2.0), 0, [4, 8]),
        (replace(PLAN, sample_rate=0.3, steps=8), 0, [4, 7, 8]),
        (replace(PLAN, steps=None, epochs=3.0, batches=BatchSampling.SHUFFLED, population=None), ROWS, [4, 8, 12]),
        (replace(PLAN, batches=BatchSampling.FIXED_SIZE, population=None), ROWS, [4, 8]),
        (replace(PLAN, batch_size=ROWS, steps=2), 0, [1, 2]),
    ],
)
def test_a_line_an_epoch(plan: DPSGD, rows: int, epochs: list[int]) -> None:
    """Fails when an epoch is missed or told twice, or the last step has no line."""
    book = Logbook(plan, rows=rows)
    assert [step for step in range(1, book.reached(1).total + 1) if book.due(step)] == epochs


def text_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


Made = Callable[..., Log]


def csv_log(place: Path, **given: bool) -> Log:
    return CsvLog(place / "log.csv", **given)


def board_log(place: Path, **given: bool) -> Log:
    if find_spec("tensorboard") is None:
        pytest.skip("tensorboard is not installed")
    return TensorBoardLog(place / "board", **given)


def mlflow_log(place: Path, **given: bool) -> Log:
    if find_spec("mlflow") is None:
        pytest.skip("mlflow is not installed")
    return MlflowLog("trials", "first", uri=f"sqlite:///{place}/mlflow.db", **given)


def points(place: Path) -> Iterator[tuple[str, int, float]]:
    """Every (name, step, value) that any of the three kinds of log holds, in the order in which they were written."""
    for path in sorted(place.glob("*.csv")):
        for row in rows(path):
            if "name" in row:
                yield f"INTERNAL/{row['name']}", int(row["step"]), float(row["value"])
            else:
                yield from ((name, int(row["step"]), float(row[name])) for name in ("epsilon", "epoch"))
    boards = [folder for folder in (place / "board", place / "board" / "internal") if folder.exists()]
    if boards:
        from tensorboard.backend.event_processing.event_accumulator import (  # type: ignore[import-untyped]
            EventAccumulator,
        )

        for folder in boards:
            board = EventAccumulator(str(folder)).Reload()
            for tag in board.Tags()["scalars"]:
                yield from ((tag, each.step, each.value) for each in board.Scalars(tag))
    if (place / "mlflow.db").exists():
        client, run = tracked(place)
        for name in run.data.metrics:
            history = client.get_metric_history(run.info.run_id, name)
            yield from ((name, each.step, each.value) for each in history)


def tracked(place: Path) -> tuple[Any, Any]:
    from mlflow.tracking import MlflowClient  # type: ignore[import-not-found,unused-ignore]

    client = MlflowClient(tracking_uri=f"sqlite:///{place}/mlflow.db")
    (run,) = client.search_runs([client.get_experiment_by_name("trials").experiment_id])
    return client, run


LOGS = [csv_log, board_log, mlflow_log]


@pytest.mark.parametrize("made", LOGS)
def test_nothing_unpaid_by_default(made: Made, tmp_path: Path) -> None:
    """Fails when a loss on private rows reaches any file, or any curve, of a log that was not made for it."""
    written(Logbook(PLAN, [made(tmp_path)], every=EVERY))
    found = list(points(tmp_path))
    assert {name for name, _, _ in found} == {"epsilon", "epoch"}
    assert [step for name, step, _ in found if name == "epoch"] == [2, 4, 6, 8]
    assert [value for name, _, value in found if name == "epoch"] == [0.5, 1.0, 1.5, 2.0]
    assert str(SECRET).encode() not in text_of(tmp_path)


@pytest.mark.parametrize("made", LOGS)
def test_internal_values_are_apart_and_marked(made: Made, tmp_path: Path) -> None:
    """Fails when an internal value is lost, gets into the shareable part, is unmarked, or others can read its file."""
    written(Logbook(PLAN, [made(tmp_path, internal=True)], every=EVERY))
    found = list(points(tmp_path))
    assert [step for name, step, _ in found if name == "INTERNAL/loss"] == list(range(1, STEPS + 1))
    assert {round(value, 6) for name, _, value in found if name == "INTERNAL/loss"} == {round(SECRET, 6)}
    if made is csv_log:
        internal = tmp_path / "internal-log.csv"
        assert internal.read_text().startswith("# INTERNAL: computed from private rows, and not paid for; do not share")
        assert stat.S_IMODE(internal.stat().st_mode) == 0o600
        assert str(SECRET) not in (tmp_path / "log.csv").read_text()
    elif made is board_log:
        folder = tmp_path / "board" / "internal"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
        shared = b"".join(path.read_bytes() for path in (tmp_path / "board").iterdir() if path.is_file())
        assert b"INTERNAL" not in shared
        assert b"do not share" in text_of(folder)
    else:
        assert "do not share" in tracked(tmp_path)[1].data.tags["privet.internal"]


@pytest.mark.parametrize("made", LOGS)
def test_a_resumed_run_appends_and_repeats_nothing(made: Made, tmp_path: Path) -> None:
    """Fails when a log is overwritten without being asked, or a step is in it twice or lost after a resumption."""
    written(Logbook(PLAN, [made(tmp_path, internal=True)], every=1), last=4)
    with pytest.raises(InvalidInput, match="already"):
        made(tmp_path)
    written(Logbook(PLAN, [made(tmp_path, internal=True, resume=True)], every=1), first=3)
    for name in ("epsilon", "INTERNAL/loss"):
        assert [step for own, step, _ in points(tmp_path) if own == name] == list(range(1, STEPS + 1))


@pytest.mark.parametrize("made", LOGS)
def test_a_run_that_was_refused_keeps_no_name(made: Made, tmp_path: Path) -> None:
    """Fails when a log that was opened, and never written to, keeps the next run from its place."""
    Logbook(PLAN, [made(tmp_path, internal=True)]).close()
    written(Logbook(PLAN, [made(tmp_path, internal=True)], every=1))
    assert [step for name, step, _ in points(tmp_path) if name == "INTERNAL/loss"] == list(range(1, STEPS + 1))


@pytest.mark.parametrize("made", [csv_log, board_log])
def test_a_line_that_was_cut_off(made: Made, tmp_path: Path) -> None:
    """Fails when half a line, as a killed run leaves it, stays in the log or keeps it from being gone on with."""
    written(Logbook(PLAN, [made(tmp_path)], every=1), last=4)
    (path,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    path.write_bytes(path.read_bytes()[:-3])
    written(Logbook(PLAN, [made(tmp_path, resume=True)], every=1), first=4)
    assert sorted(step for name, step, _ in points(tmp_path) if name == "epsilon") == list(range(1, STEPS + 1))
    if made is csv_log:
        assert {line.count(",") for line in path.read_text().splitlines()} == {5}


def test_a_log_through_checkpoint_and_resumption(tmp_path: Path) -> None:
    """Fails when the steps of a run's second life, which go on after those that its first one began, are not in the
    log exactly once."""

    def life(last: int | None, resume: bool) -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        place = tmp_path / "run.ckpt"
        run = PLAN.attach(model, optimizer, DATA, resume=place if resume else None)
        with CsvLog(tmp_path / "log.csv", resume=resume) as log:
            book = Logbook(PLAN, [log], every=1)
            if not resume:
                run.save(place)
            for inputs, target in run.batches():
                if run.step(nn.functional.cross_entropy(model(inputs), target, reduction="none")):
                    book(Progress(run.steps, run.total, model))
                    if run.steps == last:
                        break
        run.close()

    life(3, resume=False)
    life(None, resume=True)
    assert [int(row["step"]) for row in rows(tmp_path / "log.csv")] == list(range(1, STEPS + 1))


def test_bad_logs_are_refused_before_anything_is_paid(tmp_path: Path) -> None:
    """Fails when a log that cannot be written, or other columns than before, come to light after a charge."""
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.create("clinic", epsilon=30.0, delta=1e-2)
    theirs = tmp_path / "theirs.csv"
    theirs.write_text("a,b\n1,2\n")
    link = tmp_path / "link.csv"
    link.symlink_to(theirs)
    for path, resume, words in (
        (tmp_path / "no" / "log.csv", False, "cannot be written: no such file"),
        (tmp_path, False, "cannot be written: is a directory"),
        (theirs, False, "holds something already"),
        (theirs, True, "no log with the same columns"),
        (link, True, "cannot be written"),
    ):
        with pytest.raises(InvalidInput, match=words):
            fitted(
                network(),
                charge=ledger.budget("clinic"),
                callbacks=[Logbook(PLAN, [CsvLog(path, resume=resume)])],
            )
    assert theirs.read_text() == "a,b\n1,2\n"
    assert ledger.budget("clinic").active == 0
    written(Logbook(PLAN, [CsvLog(tmp_path / "log.csv")]))
    with pytest.raises(InvalidInput, match="same columns"):
        Logbook(PLAN, [CsvLog(tmp_path / "log.csv", resume=True)], scores={"accuracy": lambda model: 1.0})


@pytest.mark.parametrize("name", ["", "=HYPERLINK(1)", "a\nb", "epsilon", "ε", "x" * 101])
def test_names_that_no_log_can_have(name: str) -> None:
    """Fails when a score could break a line, be a formula in a spreadsheet, or stand in a column of another."""
    with pytest.raises(InvalidInput, match="scores has the name"):
        Logbook(PLAN, scores={name: lambda model: 1.0})


def test_absent_packages_are_one_line(tmp_path: Path) -> None:
    """Fails when a log whose package is not installed ends in another error than the one that says what to install."""
    code = """
import sys
for name in ("tensorboard", "mlflow"):
    sys.modules[name] = None
from privet.core.errors import MissingExtra
from privet.training.loggers import MlflowLog, TensorBoardLog
for made in (lambda: TensorBoardLog(sys.argv[1]), lambda: MlflowLog("trials", "first")):
    try:
        made()
    except MissingExtra as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "board")], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        f"{name} is not installed; run: pip install 'privet[{name}]'" for name in ("tensorboard", "mlflow")
    ]
    assert list(tmp_path.iterdir()) == []


def test_what_a_log_is_told_holds_no_rows() -> None:
    """Fails when a field is added to what every log is told without somebody deciding that it is public."""
    assert list(LogEntry.__dataclass_fields__) == ["step", "total", "epoch", "epsilon", "delta", "time", "scores"]
    reached = Logbook(PLAN).reached(4)
    assert json.dumps([reached.step, reached.total, reached.epoch, reached.delta]) == "[4, 8, 1.0, 0.001]"
