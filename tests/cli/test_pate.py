"""`privet pate`: teachers, noisy votes, a student; what is released is what was paid for, also after a stop."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.accounting import epsilon
from privet.core.errors import InvalidInput
from privet.core.event import Composed, DiscreteGaussian, Repeated
from privet.core.release import Release
from privet.core.unit import Whose
from privet.data import Schema, read
from privet.ledger import Ledger, State
from privet.report import Internal, load
from privet.runs import TrainRequest
from privet.runs.pate.vote_file import VoteFile
from privet.runs.payment import public_rows_digest
from tests.cli.conftest import Run
from tests.cli.test_train import done, refused
from tests.cli.training import SCHEMA

pytest.importorskip("torch")
pytest.importorskip("polars")

ASK = "pate patients.csv --public public/patients.csv --schema schema.toml --teachers 40 --epsilon 4 --delta 1e-3"
LABELS = f"{ASK} --student supervised"
QUICK = ASK.replace("--epsilon 4", "--questions 30 --noise 20")
"""Without a search for the noise."""


def test_private_rows_become_a_student_that_may_be_shared(clinic: Run) -> None:
    """Fails when the price on the card is not that of what was drawn or is above what was asked for, when a vote
    reaches a file that may be shared, or when the student in the folder is another one than was scored."""
    shown = done(clinic(f"{LABELS} --test test/patients.csv --out run"))
    assert "ε ≤ 4.000 at δ = 0.001 for one example, added or removed" in shown.out
    names = {path.name for path in Path("run").iterdir()}
    pages = {"card.json", "report.html", "internal.json", "internal.html"}
    assert names == pages | {"answers.csv", "model.json", "model.safetensors", "plan.json"}
    card, whole = load(Path("run")), load(Path("run"), internal=True)
    assert card.method.value == "PATE"
    assert card.teachers is not None
    assert card.teachers.value == 40
    guarantee = card.privacy.guarantee.value
    assert replace(guarantee, assumptions=()) == replace(
        epsilon(card.privacy.event.value, 1e-3, unit=guarantee.unit), assumptions=()
    )
    assert any("Ada Lovelace vouched" in each for each in guarantee.assumptions)
    assert 3.9 < guarantee.epsilon.upper <= 4.0
    answers = Path("run/answers.csv").read_text().splitlines()
    event = card.privacy.event.value
    assert isinstance(event, Repeated)
    assert event.count == len(answers) - 1 == len(set(answers)) - 1
    assert isinstance(event.event, Repeated)
    assert event.event.count == 2  # two counts move by one each
    assert isinstance(event.event.event, DiscreteGaussian)
    assert event.event.event.bound == 1
    assert card.consensus is None
    assert card.findings == ()
    assert isinstance(whole.consensus, Internal)
    assert sum(whole.consensus.value.questions) == event.count
    (finding,) = whole.findings
    assert isinstance(finding, Internal)
    assert finding.value.epsilon <= guarantee.epsilon.upper
    for name in ("card.json", "report.html"):
        text = Path("run", name).read_text()
        assert "How far the teachers agree" not in text
        assert "cost these data" not in text
    predicted = done(clinic("predict run test/patients.csv")).out.splitlines()[1:]
    true = [line.rsplit(",", 1)[1] for line in Path("test/patients.csv").read_text().splitlines()[1:]]
    right = np.mean([one == other for one, other in zip(predicted, true, strict=True)])
    assert card.scores[0].value.value == pytest.approx(right)


def test_a_student_of_a_table_weighs_noisy_counts(clinic: Run) -> None:
    """Fails when counts are released at another price than labels, or without noise on each, or when a data-dependent
    price, which does not hold for counts, is stated; or when the stored student says something else than was scored."""
    done(clinic(f"{ASK} --test test/patients.csv --out run"))
    test = read(Path("test/patients.csv"), Schema.from_toml(Path("schema.toml").read_text()))
    assert {each.value.rows for each in load(Path("run")).scores} == {public_rows_digest(test, ("no", "yes"))}
    card, whole = load(Path("run")), load(Path("run"), internal=True)
    head, *lines = Path("run/answers.csv").read_text().splitlines()
    assert head == "row,answer,no,yes"
    event = card.privacy.event.value
    assert isinstance(event, Repeated)
    assert event.count == len(lines)
    assert isinstance(event.event, Repeated)
    assert isinstance(event.event.event, DiscreteGaussian)
    sums = [sum(map(int, line.split(",")[2:])) for line in lines]
    spread = 2**0.5 * event.event.event.sigma
    # Were there no noise, every sum would be 40; its deviation is within a third of what is drawn but for one in 10⁶.
    assert 2 / 3 * spread < np.std(sums) < 4 / 3 * spread
    assert whole.findings == ()
    assert whole.consensus is not None
    assert set(whole.consensus.value.costs) == {None}
    predicted = done(clinic("predict run test/patients.csv")).out.splitlines()[1:]
    true = [line.rsplit(",", 1)[1] for line in Path("test/patients.csv").read_text().splitlines()[1:]]
    right = np.mean([one == other for one, other in zip(predicted, true, strict=True)])
    assert card.scores[0].value.value == pytest.approx(right)


def test_the_ledger_has_the_charge_and_scores_and_limits_are_in_it(clinic: Run) -> None:
    """Fails when a score on private rows or the sanitised price is released without being charged, or the charge is
    not what the card says."""
    done(clinic("ledger create clinic --epsilon 5 --delta 2e-3"))
    done(clinic(f"{ASK} --questions 30 --sanitise --budget clinic --out run"))
    card = load(Path("run"))
    with Ledger("privet-ledger.db") as ledger:
        (entry,) = ledger.show("clinic").entries
        assert entry.state is State.COMMITTED
        assert entry.event == card.privacy.event.value
    assert isinstance(entry.event, Composed)
    assert [line.what for line in card.bill.value] == [
        "the teachers' answers",
        "what they cost these data, sanitised",
        "the student's score on held-out rows",
    ]
    assert card.privacy.guarantee.value.epsilon.upper <= 4.0
    (score,), (limit,) = card.scores, card.findings
    assert isinstance(score, Release)
    assert isinstance(limit, Release)
    assert limit.value.failure == 1e-3
    assert score.value.on == "held-out private rows"
    assert {draw.event for draw in limit.draws} == {card.bill.value[1].event}


def test_one_row_changes_one_teacher_on_every_question(clinic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a row that comes or goes changes the vote of more than one teacher on any question, or anything that
    is shown, charged or asked: then the price, which is for one vote, would be wrong. The whole command runs on both
    data sets; only noise differs from a real run, in that its seed is one and the same."""
    from privet.pate import Votes
    from privet.runs import RunCallbacks, TrainRequest
    from privet.runs.directory import RunDirectory
    from privet.runs.pate import teachers as voting
    from privet.runs.pipeline import TrainingRun

    del clinic
    seen: list[tuple[Any, ...]] = []
    usual = voting.teacher_votes

    def watched(*arguments: Any) -> Any:
        votes = usual(*arguments)
        seen.append((votes, arguments[3]))
        return votes

    monkeypatch.setattr(voting, "teacher_votes", watched)
    lines = Path("patients.csv").read_text().splitlines()
    shown: list[Any] = []
    for changed in (lines, [*lines[:200], *lines[201:]], [*lines, "zz,18,south,yes"]):
        Path("patients.csv").write_text("\n".join(changed) + "\n")
        directory = RunDirectory(Path(f"run{len(shown)}"))
        directory.folder.mkdir()
        told: list[str] = []
        plans: list[Any] = []
        given = {"data": "patients.csv", "public": "public/patients.csv", "schema": "schema.toml", "score_share": 0.0}
        request = TrainRequest.of(given | {"method": "pate", "teachers": 40, "seed": 3})

        def add(planned: Any, plans: list[Any] = plans) -> None:
            plans.append((planned.plan, planned.guarantee))

        TrainingRun(request, directory, "privet", False, RunCallbacks(told.append, add)).execute()
        shown.append((told, plans))
    assert shown[0] == shown[1] == shown[2]
    first, *others = seen
    for votes, asked in others:
        assert bool((asked == first[1]).all())
        moved = (votes != first[0]).any(axis=0)
        assert moved.sum() <= 1
        counts = [Votes.cast(each, labels=2).counts for each in (first[0], votes)]
        assert np.abs(counts[0] - counts[1]).sum(axis=1).max() <= 2
    assert any((votes != first[0]).any() for votes, _ in others)


def test_nothing_is_drawn_again_after_a_stop(clinic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when answers, the sanitised price or the score are drawn a second time by a run that goes on: all that was
    kept must be there again, as it was. The run is stopped right after each of them was kept."""
    from privet.runs.directory import RunDirectory

    done(clinic("ledger create clinic --epsilon 50 --delta 2e-3"))
    store = RunDirectory.store_release
    words = f"{QUICK} --sanitise --budget clinic --out run"
    for after in ("answers", "limit", "pate-score"):

        def stop(place: Any, name: str, release: Any, after: str = after) -> None:
            store(place, name, release)
            if name == after:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(RunDirectory, "store_release", stop)
            assert clinic(words if after == "answers" else "pate --resume --out run").code == 130
        kept = {path.stem: json.loads(path.read_text())["value"] for path in Path("run/.privet/kept").glob("*.json")}
        assert after in kept
        if after == "answers":
            first = kept["answers"]
        assert kept["answers"] == first
    done(clinic("pate --resume --out run"))
    card = load(Path("run"))
    names = ("no", "yes")
    told = [f"{row},{names[label]}" for row, label in zip(first["rows"], first["labels"], strict=True)]
    assert Path("run/answers.csv").read_text().splitlines()[1:] == told
    assert card.findings[0].value.epsilon == kept["limit"]["epsilon"]
    assert card.scores[0].value.to_json() == kept["pate-score"]


def test_rows_that_are_held_out_are_not_taught(clinic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a teacher sees a row that the student's score is computed on."""
    from privet.data import hold_out, read
    from privet.runs.pate import teachers as voting

    seen: list[Any] = []
    usual = voting.teacher_votes

    def watched(*arguments: Any) -> Any:
        seen.append(arguments[1])
        return usual(*arguments)

    monkeypatch.setattr(voting, "teacher_votes", watched)
    done(clinic(f"{QUICK} --out run"))
    whole = read("patients.csv", Schema.from_toml(SCHEMA))
    taught, held = hold_out(whole, 0.1, key="privet train")
    assert len(seen[0]) == len(taught) < len(whole)
    assert len(held) > 20
    assert load(Path("run")).scores[0].value.on == "held-out private rows"


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_run_that_was_stopped_goes_on_with_the_same_answers(
    clinic: Run, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Fails when a stop after the answers were drawn lets them be drawn again under one charge, or when a stop before
    anything was drawn keeps the charge."""
    from privet.runs.pate import student, teachers

    done(clinic("ledger create clinic --epsilon 5 --delta 2e-3"))

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if where == "before":
            patch.setattr(teachers, "teacher_votes", stop)
        else:
            patch.setattr(student, "train_student", stop)
        found = clinic(f"{LABELS} --budget clinic --out run --test test/patients.csv")
    assert found.code == 130
    with Ledger("privet-ledger.db") as ledger:
        (entry,) = ledger.show("clinic").entries
        assert entry.state is (State.ABORTED if where == "before" else State.DRAWING)
    if where == "before":
        assert not Path("run").exists()
        return
    kept = json.loads(Path("run/.privet/kept/answers.json").read_text())["value"]
    assert "is not what the run was begun with" in refused(clinic("pate --resume --out run --epsilon 2"))
    lines = Path("patients.csv").read_text()
    Path("patients.csv").write_text(lines + "zz,18,south,yes\n")
    assert "the data changed" in refused(clinic("pate --resume --out run"))
    Path("patients.csv").write_text(lines)
    done(clinic("pate --resume --out run"))
    names = ("no", "yes")
    expected = [f"{row},{names[label]}" for row, label in zip(kept["rows"], kept["labels"], strict=True)]
    assert Path("run/answers.csv").read_text().splitlines()[1:] == expected
    with Ledger("privet-ledger.db") as ledger:
        (entry,) = ledger.show("clinic").entries
        assert entry.state is State.COMMITTED
    assert not Path("run/.privet").exists()


def test_a_public_file_gives_the_schema_for_nothing(clinic: Run) -> None:
    """Fails when bounds or values come from the private file: here it holds an age and a ward that the public file does
    not have, and the schema on the card must not know of them."""
    Path("patients.csv").write_text(Path("patients.csv").read_text() + "p900,1000,attic,yes\n" * 9)
    words = "pate patients.csv --public public/patients.csv --target readmitted --teachers 40 --epsilon 4"
    done(clinic(f"{words} --user patient --test test/patients.csv --out run"))
    assert "independent of each other" in load(Path("run")).scores[0].value.covers
    card = load(Path("run"))
    assert card.schema is not None
    assert "attic" not in card.schema.value
    assert "1000" not in card.schema.value
    assert card.privacy.guarantee.value.unit.whose is Whose.USER
    assert card.privacy.guarantee.value.delta == 1e-6
    assert any("read from the public rows" in each for each in card.privacy.conditions.value)


def test_all_rows_of_a_user_have_one_teacher(clinic: Run) -> None:
    """Fails when rows of a table with users are divided one by one: a person who goes would change several teachers."""
    lines = Path("patients.csv").read_text().splitlines()
    Path("user.toml").write_text(SCHEMA.replace("rows = 600\n", 'user = "patient"\nmost_rows_per_user = 3\n'))
    gone = lines[1].split(",")[0]
    cast = []
    for kept in (lines, [line for line in lines if not line.startswith(f"{gone},")]):
        Path("some.csv").write_text("\n".join(kept) + "\n")
        done(clinic("pate vote some.csv --public public/patients.csv --schema user.toml --teachers 20 --out v.votes"))
        cast.append(VoteFile.read(Path("v.votes")).cast)
        Path("v.votes").unlink()
    assert len(lines) - len(kept) > 1
    assert (cast[0] != cast[1]).any(axis=0).sum() <= 1


def test_what_another_run_left_behind_is_nobodys_answer(clinic: Run) -> None:
    """Fails when answers in a folder whose run was ended half-way become those of a new run, under its smaller ε."""
    from privet.runs.pate import student

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(student, "train_student", stop)
        assert clinic(f"{QUICK} --noise 0.5 --out run").code == 130
    old = Path("run/.privet/kept/answers.json").read_text()
    Path("run/.privet/run.json").rename("run.json")
    assert "no run that was stopped" in refused(clinic("pate --resume --out run"))
    assert Path("run/.privet/kept/answers.json").read_text() == old  # its owner may put the rest back
    Path("elsewhere").mkdir()
    Path("elsewhere/precious").write_text("x")
    Path("linked").mkdir()
    Path("linked/.privet").symlink_to(Path("elsewhere").absolute())
    assert "leads elsewhere" in refused(clinic(f"{QUICK} --out linked"))
    assert Path("elsewhere/precious").exists()
    done(clinic(f"{QUICK} --test test/patients.csv --out run"))
    draws = {draw["id"] for draw in json.loads(old)["draws"]}
    assert draws
    assert not any(each in Path("run/card.json").read_text() for each in draws)
    answers = [int(line.split(",")[2]) for line in Path("run/answers.csv").read_text().splitlines()[1:]]
    assert answers != [each[0] for each in json.loads(old)["value"]["counts"]]


def test_a_run_goes_on_about_the_same_public_rows(clinic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when other rows can be put in the place of those that were asked about, after the charge."""
    from privet.runs.pate import student

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(student, "train_student", stop)
        assert clinic(f"{QUICK} --out run").code == 130
    public = Path("public/patients.csv")
    public.write_text(public.read_text() + "x,50,south,no\n")
    assert "is not what the run was begun with" in refused(clinic("pate --resume --out run"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("pate patients.csv --target readmitted", "public is missing"),
        ("pate patients.csv --public patients.csv --schema schema.toml", "public is the file that is learned from"),
        (f"{ASK} --test patients.csv", "test is the file that is learned from"),
        ("pate nowhere.csv --public public/patients.csv --schema schema.toml", "nor one of digits"),
        (f"{ASK} --teachers 601", "teachers is 601, and there are 600 rows"),
        (f"{ASK} --teachers 1", "a vote of one hides nothing"),
        (f"{ASK} --questions 9999", "questions is 9999, and there are"),
        (f"{ASK} --questions 100 --noise 1", "epsilon is 4, and the questions with this noise cost"),
        (f"{ASK} --student weighed --threshold 30", "threshold is given, and the student is weighed"),
        (f"{ASK} --noise 0.1", "does not pay for one question"),
        (f"{ASK} --threshold 41", "threshold is 41, and there are 40 teachers"),
        (f"{ASK} --answers 9", "answers is given without --threshold"),
        (f"{ASK} --teacher tree", "teacher is 'tree'"),
        (f"{ASK} --delta 1", "delta is 1"),
        (f"{ASK} --budget nobody", "there is no ledger"),
        ("pate patients.csv --public public/patients.csv --target age --schema schema.toml", "vote for classes"),
        ("pate patients.csv --public public/patients.csv --target nowhere", "which is not in the public file"),
        ("pate digits --public public/patients.csv", "public is given, and digits has its own"),
        (f"{ASK} --beside nowhere", "nowhere"),
        ("pate --resume", "out is missing"),
        ("pate run --epsilon 1", "data is missing"),
        ("pate aggregate --public public/patients.csv", "votes are missing"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(clinic: Run, words: str, said: str) -> None:
    """Fails when what cannot be done ends otherwise than with exit code 2 and a line that names it, or leaves a folder
    behind."""
    before = {path.name for path in Path().iterdir()}
    assert said in refused(clinic(words))
    assert {path.name for path in Path().iterdir()} - before <= {"privet-ledger.db"}


def test_an_empty_table_is_charged_as_any_other(clinic: Run) -> None:
    """Fails when what depends on rows raises, or shows in the plan, the event or the files: nobody, or one class."""
    words = QUICK.replace("patients.csv --public", "none.csv --public")
    schema = SCHEMA.replace("rows = 600\n", "")
    Path("schema.toml").write_text(schema)
    header, *lines = Path("patients.csv").read_text().splitlines()
    found = []
    for rows in ([], [line for line in lines if line.endswith("no")][:50]):
        Path("none.csv").write_text("\n".join([header, *rows]) + "\n")
        shown = done(clinic(f"{words} --test test/patients.csv --out run"))
        plan = shown.out.partition("accuracy")[0]
        names = sorted(path.name for path in Path("run").iterdir())
        found.append((plan, load(Path("run")).privacy.event.value, names))
        shutil.rmtree("run")
    assert found[0] == found[1]


def test_runs_with_other_teachers_stand_beside_each_other(clinic: Run) -> None:
    """Fails when accuracy against the number of teachers is not drawn from the runs that are named, or a run that was
    paid for elsewhere is counted in this bill."""
    done(clinic(f"{QUICK} --test test/patients.csv --out small"))
    more = QUICK.replace("--teachers 40", "--teachers 80")
    done(clinic(f"{more} --test test/patients.csv --beside small --out large"))
    card = load(Path("large"))
    assert {each.value.teachers for each in card.stored} == {40}
    assert "against the number of teachers" in Path("large/report.html").read_text()
    assert "against the number of teachers" not in Path("small/report.html").read_text()
    event = card.privacy.event.value
    assert isinstance(event, Repeated)
    assert event.count == 30
    assert max(each.value.epsilon for each in card.compared) < inf


def test_pate_request_comes_back_from_the_run_directory() -> None:
    """Fails when a request that is stored with an interrupted run comes back as another one, or when one that an
    earlier version stored ends otherwise than with a line that says what to do."""
    given = {"data": "x.csv", "public": "y.csv", "teacher": "forest", "student": "supervised", "classes": ["a", "b"]}
    request = TrainRequest.of(given | {"method": "pate", "beside": ["one"]})
    assert TrainRequest.from_json(request.to_json()) == request
    assert request.hold_out == 0.1
    silos = replace(request, data="", votes=("1", "2"))
    assert TrainRequest.from_json(silos.to_json()) == silos
    older = json.dumps({"data": "x.csv", "votes": [], "public": "y.csv", "teachers": 40, "teacher": "ridge"})
    with pytest.raises(InvalidInput, match="earlier version of Privet began; resume it with that version"):
        TrainRequest.from_json(older)


def test_pate_by_the_train_command_is_the_same_run(clinic: Run) -> None:
    """Fails when `privet train --method pate` plans, releases or resumes otherwise than `privet pate`."""
    from privet.runs.pate import student

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    data = "patients.csv --public public/patients.csv --schema schema.toml --delta 1e-3 --epsilon 4 --seed 3"
    done(clinic(f"pate {data} --out one"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(student, "train_student", stop)
        assert clinic(f"train {data} --method pate --out two").code == 130
    done(clinic("train --resume --out two"))
    for name in ("answers.csv", "plan.json", "model.safetensors"):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()
    assert "is given, and dp-sgd asks nothing about public rows" in refused(clinic(f"train {data} --out three"))
    assert "names methods that read other rows" in refused(clinic(f"train {data} --method pate --compare output"))
    assert "whose model is not fitted on the private rows" in refused(clinic("audit one"))
