"""Record and replay of whole pipelines: estimators, shuffled reports, and commands with every file that may be shared.

Replays are exact, so that none of these tests has false alarms. A command draws from one generator, for which the
replay's stands; its clocks stand still, and names that the operating system draws (of a release, of a ledger's entry)
are counted, as neither comes from rows.
"""

from __future__ import annotations

import importlib
import io
import json
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from privet.audit import Replay, replay
from privet.cli import main
from privet.core.random import Rng
from privet.local import GeneralizedRandomizedResponse
from privet.local.shuffling import Batch, MixKey, MixPlan, Stop, canonical_report, seal, shuffled_release
from privet.sklearn import PrivateClassifier, PrivateRegressor, private_scorer
from tests.cli.training import SCHEMA, patients
from tests.query.tables import NASTY
from tests.query.tables import SCHEMA as CLINIC

_CLOCKS = ("runs.card_builder", "training.loggers.logbook", "ledger.budget_state", "query.answer_store")
_SEEDED = ("runs.pipeline", "sklearn.fitting")
"""What makes a generator from a seed that was given."""
_INTERNAL = {"internal.html", "internal.json"}
"""What the owner of the rows keeps."""
_DRAWN = re.compile(rb'"id": ?"[0-9a-f]{32}"')
"""How a card names a draw; a draw that a replay gives again keeps its name, others get a new one."""


class _Stopped(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> _Stopped:
        return cls(2030, 1, 1, tzinfo=tz or UTC)


@contextmanager
def drawing(rng: Rng) -> Iterator[pytest.MonkeyPatch]:
    """Whatever makes a generator gets this one, and nothing tells the hour."""
    numbers = count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privet.core.release.secrets", SimpleNamespace(token_hex=secrets.token_hex))
        patch.setattr(secrets, "token_hex", lambda size=32: f"{next(numbers):0{2 * size}x}")
        for name in _CLOCKS:
            patch.setattr(importlib.import_module(f"privet.{name}"), "datetime", _Stopped)
        for name in _SEEDED:
            patch.setattr(importlib.import_module(f"privet.{name}"), "SeededRng", lambda _: rng)
        patch.setattr("privet.core.random.default_rng", lambda: rng)
        yield patch


def commanded(
    folder: Path, write: Callable[[Any], None], *lines: str, shared: Callable[[], list[Path]]
) -> Callable[[Any, Rng], dict[str, bytes]]:
    """A pipeline that writes its data, runs commands in a folder of its own, and returns the files that are `shared`.

    What the commands print is compared by the replay itself.
    """

    def pipeline(data: Any, rng: Rng) -> dict[str, bytes]:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with drawing(rng) as patch:
            patch.chdir(folder)
            patch.setenv("COLUMNS", "120")
            write(data)
            for line in lines:
                assert main(shlex.split(line)) == 0, line
            return {str(path): _read(path) for path in shared()}

    return pipeline


def _read(path: Path) -> bytes:
    """What is in a file; on a card, each draw's id as its place among those that are there."""
    text = path.read_bytes()
    if path.name != "card.json":
        return text
    found = {name: number for number, name in enumerate(dict.fromkeys(_DRAWN.findall(text)))}
    return _DRAWN.sub(lambda name: b'"id":%d' % found[name[0]], text)


def of_run() -> list[Path]:
    """All files of a run, in whatever folder, but for those that are its owner's."""
    files = sorted(path for path in Path("run").rglob("*") if path.is_file())
    assert {path.name for path in files} > _INTERNAL
    return [path for path in files if path.name not in _INTERNAL]


def moved(found: Replay, mechanism: str) -> float:
    return max(each.measured for each in found.moved if each.mechanism == mechanism)


# --- Commands --------------------------------------------------------------------------------------------------------

_BUDGET = "ledger create clinic --epsilon 9 --delta 0.01"
_TRAIN = "train patients.csv --epsilon 4 --log csv --budget clinic --seed 1 --out run"
_WHOLE_RUN = {"card.json", "report.html", "model.json", "model.safetensors", "plan.json"}


def clinic(extra: str) -> None:
    patients(Path(), 300, extra=extra)
    Path("norows.toml").write_text(SCHEMA.replace("rows = 600\n", ""))


@pytest.mark.parametrize(
    ("words", "extra", "mechanism", "least"),
    [
        ("--schema schema.toml --epochs 2", "z,1e300,never,yes\n", "step", 0.4),
        ("--schema norows.toml --method output", "z,20,north,no\n", "DiscreteLaplaceMechanism", 1.0),
    ],
    ids=["a row to learn from", "a row held out, and counted"],
)
def test_train(tmp_path: Path, words: str, extra: str, mechanism: str, least: float) -> None:
    """Fails when anything of a run that may be shared (card, page, model, log, ledger's head, what is printed) depends
    on one more row by another way than a mechanism: the number of rows, an unpaid score, a loss."""
    folder = tmp_path / "it"
    found = replay(commanded(folder, clinic, _BUDGET, f"{_TRAIN} {words}", shared=of_run), "", extra)
    found.check()
    assert {path.name for path in (folder / "run").iterdir()} == _WHOLE_RUN | _INTERNAL | {"log.csv"}
    assert moved(found, mechanism) >= least


_ASK = "--public public/patients.csv --schema user.toml"
_CENTRE = f"{_ASK} --questions 20 --noise 4 --delta 1e-3 --seed 1 --test public/patients.csv --out run"


def silos(rows: str) -> None:
    """Three of them; the first has these rows beside a few others."""
    patients(Path("public"), 60)
    head, *lines = Path("public/patients.csv").read_text().splitlines()
    Path("user.toml").write_text(SCHEMA.replace("rows = 600\n", 'user = "patient"\nmost_rows_per_user = 3\n'))
    for place in range(3):
        own = "\n".join([head, *lines[6 * place : 6 * place + 6]])
        Path(f"{place}.csv").write_text(f"{own}\n{'' if place else rows}")


def test_silos_and_their_centre(tmp_path: Path) -> None:
    """Fails when a person of a silo moves more than one teacher, or anything but votes: how many silos or rows there
    are, how sure teachers were, what the student says."""
    votes = [f"pate vote {place}.csv {_ASK} --teachers {1 if place else 2} --out {place}.votes" for place in range(3)]
    centre = f"pate aggregate 0.votes 1.votes 2.votes {_CENTRE}"
    somebody = "z,19,north,no\nz,18,south,no\nz,20,north,no\n"
    found = replay(commanded(tmp_path / "it", silos, *votes, centre, shared=of_run), "", somebody)
    found.check()
    assert {path.name for path in (tmp_path / "it" / "run").iterdir()} == _WHOLE_RUN | _INTERNAL | {"answers.csv"}
    assert moved(found, "Plan") > 0


def asked_table(rows: list[dict[str, str]]) -> None:
    lines = [",".join(row.values()) for row in ({name: name for name in NASTY[0]}, *rows)]
    Path("clinic.csv").write_text("\n".join(lines) + "\n")
    Path("clinic.schema.toml").write_text(CLINIC.to_toml())


def test_query(tmp_path: Path) -> None:
    """Fails when a page, JSON, stored answers that are given again, or the ledger's head follow from rows."""
    ask = "query clinic.csv 'mean(age) by ward' 'count by town' --epsilon 1 --delta 1e-6 --budget clinic"
    pipeline = commanded(
        tmp_path / "it",
        asked_table,
        _BUDGET,
        f"{ask} --plot page.html --json",
        f"{ask} 'median(age)'",
        shared=lambda: [Path("page.html")],
    )
    found = replay(pipeline, NASTY[1:], [*NASTY[1:], NASTY[0]])
    found.check()
    assert found.calls == 3  # what was answered before is free
    assert moved(found, "LaplaceMechanism") > 0


def test_a_page_that_tells_how_many_rows_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a command's file is not compared: the true number of rows stands on a page, and nowhere else."""
    from privet import report

    usual = report.answers_page

    def counted(*given: Any) -> str:
        return f"{usual(*given)}<!-- {len(Path('clinic.csv').read_text().splitlines())} -->"

    ask = "query clinic.csv count --epsilon 1 --plot page.html"
    pipeline = commanded(tmp_path / "it", asked_table, ask, shared=lambda: [Path("page.html")])
    replay(pipeline, NASTY, NASTY[:-1]).check()
    monkeypatch.setattr(report, "answers_page", counted)
    assert replay(pipeline, NASTY, NASTY[:-1]).differences == ("the result['page.html'] differs",)


_SURVEY = """privet = 1
title = "Commuting"
epsilon = 2.0
budget = "{}"
[[question]]
name = "fare"
text = "Did you pay?"
kind = "yes-no"
[[question]]
name = "minutes"
text = "How long was it?"
kind = "number"
low = 0
high = 120
"""


@pytest.mark.parametrize("budget", ["split", "sample"])
def test_survey(tmp_path: Path, budget: str) -> None:
    """Fails when a report, the collection or the estimate shows one person's answers, or which of the questions was
    drawn depends on them."""

    def told(people: list[str]) -> None:
        Path("commute.toml").write_text(_SURVEY.format(budget))
        for answers in people:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sys, "stdin", io.StringIO(answers))
                assert main(["survey", "answer", "commute.toml", "--out", "own.jsonl"]) == 0

    pipeline = commanded(
        tmp_path / "it",
        told,
        "survey collect commute.toml own.jsonl",
        "survey estimate commute.toml reports.jsonl --json --plot page.html",
        shared=lambda: [Path("reports.jsonl"), Path("page.html")],
    )
    people = ["no\n30\n", "yes\n45.5\n", "no\n0\n"]
    found = replay(pipeline, people, [people[0], "no\n119\n", people[2]])
    found.check()
    assert found.calls == 3 * (2 if budget == "split" else 1)
    assert {each.measured for each in found.moved if each.norm == "rows"} >= {1.0}


# --- Shuffled reports ------------------------------------------------------------------------------------------------

_KEYS = tuple(MixKey.new() for _ in range(3))
_STOPS = tuple(Stop(f"http://127.0.0.1:{8101 + place}", key.public) for place, key in enumerate(_KEYS))
_MIX = MixPlan("replayed", 1.0, 1e-6, 20, _STOPS[:2], _STOPS[2], categories=4, payload=64)


def mixed(answers: Any, rng: Rng, sent: Callable[[int], bool] = lambda _: True) -> Any:
    """Every stop's work in one process: randomise, seal, peel and mix twice, collect, estimate."""
    response = GeneralizedRandomizedResponse(4, 1.0)
    reports = [int(each) for each in response.randomize(answers, rng)]
    lines = [canonical_report(_MIX, json.dumps({"answer": report}).encode()) for report in reports]
    layers = [
        seal(line, [stop.key for stop in _STOPS], _MIX.payload, _MIX.name)
        for line, answer in zip(lines, answers, strict=True)
        if sent(int(answer))
    ]
    counts = []
    for key in _KEYS:
        batch = Batch(_MIX, key)
        batch.add_all(b"".join(layers))
        counts.append(batch.counts)
        layers = batch.close(rng)
    release = shuffled_release(_MIX, layers, randomness=rng.kind)
    estimate = release.map(lambda all_: response.estimate(response.aggregate([json.loads(e)["answer"] for e in all_])))
    return counts, layers, release, estimate


def test_shuffled_reports() -> None:
    """Fails when a stop, the batch or the estimate sees an answer; shown with people who send only what they like to
    say, so that the size of the crowd tells of them."""
    answers = np.arange(40) % 4
    other = answers.copy()
    other[5] = 3
    found = replay(mixed, answers, other)
    found.check()
    assert moved(found, "GeneralizedRandomizedResponse") == 1
    assert found.draws > 0  # the orders
    shy = replay(lambda given, rng: mixed(given, rng, lambda answer: answer != 3), answers, other)
    assert "the result[0][0].accepted differs" in shy.differences


# --- Estimators ------------------------------------------------------------------------------------------------------

_QUICK: dict[str, Any] = {
    "bounds": (0, 10),
    "source": "domain limit",
    "rows": 80,
    "bins": 4,
    "epochs": 2,
    "random_state": 1,
}
_ESTIMATORS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "classifier": (
        lambda: PrivateClassifier(classes=["no", "yes"], **_QUICK),
        lambda x: np.where(x[:, 0] > 5, "yes", "no"),
        {},
    ),
    "regressor": (
        lambda: PrivateRegressor(target_bounds=(0, 20), **_QUICK),
        lambda x: x.sum(1),
        {"target_bounds": (0, 20)},
    ),
}


@pytest.mark.parametrize("name", sorted(_ESTIMATORS))
def test_estimators(name: str) -> None:
    """Fails when a fitted estimator keeps anything of a row beside its release (a count, a mean, a class that it saw),
    or a private score is told by another way than its mechanism."""
    make, targets, bounds = _ESTIMATORS[name]
    x = np.random.default_rng(5).uniform(0, 10, (80, 2))
    y = targets(x)
    more = np.vstack([x, [[1e300, np.nan]]]), np.append(y, y[:1])
    new = np.linspace(0, 10, 10).reshape(5, 2)

    def pipeline(data: Any, rng: Rng) -> Any:
        with drawing(rng):
            fitted = make().fit(*data)
            score = private_scorer(1.0, source="domain limit", **bounds).release(fitted, *data, rng=rng)
            return fitted, fitted.predict(new), score

    found = replay(pipeline, (x, y), more)
    found.check()
    assert moved(found, "step") > 0
    assert moved(found, "DiscreteLaplaceMechanism" if name == "classifier" else "LaplaceMechanism") > 0
