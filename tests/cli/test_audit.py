"""`privet audit` and `privet train --audit`: evidence beside the guarantee, and 1 where it lies above."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.audit.canary_observations import plan_guesses
from privet.audit.error_shares import confidence_per_test
from privet.cli import main
from privet.core.guarantee import Evidence
from privet.core.release import Release
from privet.core.unit import Whose
from privet.mechanisms import LaplaceMechanism
from privet.report import Canaries, load, write_run
from privet.report.words import down
from privet.runs.attacks import epsilon_ladder as climbing
from privet.runs.canaries import CanaryPlan, evidence_of
from privet.training import step
from privet.training.noise import fill
from tests.cli.conftest import Run
from tests.cli.test_train import done, refused
from tests.cli.training import SCHEMA, patients

pytest.importorskip("torch")
pytest.importorskip("polars")

PLAN = "train patients.csv --schema schema.toml --score-share 0 --batch-size 100 --epochs 5 --epsilon 1 --delta 1e-6"
WORDS = f"{PLAN} --audit --canaries 200 --out run"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and a run with canaries; made once."""
    place = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patients(place)
        assert main(WORDS.split()) == 0
    return place


@pytest.fixture
def audited(privet: Run, made: Path) -> Run:
    """`privet`, in a copy of that folder."""
    shutil.copytree(made, Path(), dirs_exist_ok=True)
    return privet


@pytest.mark.parametrize("word", ["gaussian", "laplace --scale 2", "discrete-laplace", "randomized-response"])
def test_a_right_mechanism_is_not_refuted(privet: Run, word: str) -> None:
    """Fails when a mechanism is drawn from otherwise than it is priced. Each has a chance of 5 % at most to be refuted
    by mistake; as thresholds are chosen on other draws it is far less."""
    found = done(privet(f"audit {word} --trials 6000 --confidence 0.999"))
    assert "agrees" in found.out
    assert "claimed: ε ≤ " in found.out


def test_a_broken_mechanism_ends_with_one(privet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when noise that was halved goes unnoticed, or the exit code and the page do not say so."""
    usual = LaplaceMechanism.release

    def halved(self: LaplaceMechanism, query: Any, *, rng: Any) -> Any:
        return usual(LaplaceMechanism(self.scale / 2, self.of), query, rng=rng)

    monkeypatch.setattr(LaplaceMechanism, "release", halved)
    found = privet("audit laplace --scale 1 --trials 20000 --report page.html")
    assert (found.code, found.err) == (1, "")
    assert "REFUTED" in found.out
    assert '<p class="alarm"><strong>Refuted:' in Path("page.html").read_text()


def test_a_run_with_canaries_has_evidence(audited: Run) -> None:
    """Fails when --audit changes the price, leaves canaries in the model, loses coins, or `privet audit` counts
    otherwise than the card."""
    card = load(Path("run"))
    done(audited(f"{PLAN} --out plain"))
    assert load(Path("plain")).privacy.event == card.privacy.event
    assert load(Path("plain")).evidence == ()
    assert json.loads(Path("plain/model.json").read_text()) == json.loads(Path("run/model.json").read_text())
    assert Path("plain/model.safetensors").stat().st_size == Path("run/model.safetensors").stat().st_size
    (canaries,) = card.canaries
    assert isinstance(canaries, Release)
    assert len(canaries.value.scores) == 200
    assert 60 < sum(canaries.value.inside) < 140  # fails once in 10⁸ times
    inside = np.array(canaries.value.inside)
    scores = np.array(canaries.value.scores)
    # The clip along its own axis, as often as it was drawn: about q·T steps; out ones are noise around 0.
    plan = {choice.name: choice.value for choice in card.choices.value}
    drawn = float(plan["sampling"].split()[-1]) * int(plan["steps"].replace(",", ""))
    noise = float(plan["noise multiplier"]) * np.sqrt(int(plan["steps"].replace(",", "")) / inside.sum())
    assert abs(scores[inside].mean() - drawn) < 6 * noise
    assert abs(scores[~inside].mean()) < 6 * noise
    guarantee = card.privacy.guarantee.value
    first = card.evidence[0].value
    assert first == evidence_of(
        canaries.value, delta=guarantee.delta, unit=guarantee.unit, confidence=confidence_per_test()
    )
    assert {each.value.confidence for each in card.evidence} == {0.9875}  # with the ladder and attacks, 95 % together
    steps, rate = int(plan["steps"].replace(",", "")), float(plan["sampling"].split()[-1])
    noise = float(plan["noise multiplier"])
    wanted = plan_guesses(200, steps, noise, rate, delta=guarantee.delta, confidence=confidence_per_test())
    assert canaries.value.guesses == wanted  # by the plan, and not by what the coins turned out to be
    assert not first.refutes(guarantee)
    assert "gradient canaries" in Path("run/report.html").read_text()
    found = done(audited("audit run --report page.html"))
    assert "by the canaries that were in it" in found.out
    assert "canaries-0" in Path("page.html").read_text()


def test_evidence_above_the_guarantee_is_red(audited: Run) -> None:
    """Fails when canaries that tell everything leave a run as it was: the exit code must be 1."""
    card = load(Path("run"), internal=True)
    (canaries,) = card.canaries
    assert isinstance(canaries, Release)

    def told(held: Canaries) -> Canaries:
        return replace(held, scores=tuple(float(coin) for coin in held.inside), guesses=200)

    write_run(Path("run"), replace(card, canaries=(canaries.map(told),)))
    found = audited("audit run --confidence 0.9")
    assert found.code == 1
    assert "REFUTED" in found.out


def test_missing_noise_is_an_alarm_and_no_proof(privet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when noise that is missing leaves a run green because what finds it rests on assumptions, when that is
    called a proof, when another confidence seems to move what is not counted again, or when four guesses, which can
    prove nothing at 98.75 %, are said to agree and no more. By chance the bound stays below ε less than once in 10⁶
    times."""
    patients(Path())
    monkeypatch.setattr("privet.runs.canaries.plan_guesses", lambda *given, **named: 4)
    monkeypatch.setattr(step, "fill", lambda numbers, std, rng: fill(numbers, std / 4, rng))
    trained = done(privet(WORDS))
    found = done(privet("audit run --confidence 0.9 --report page.html"))
    by_steps = load(Path("run")).evidence[1].value
    told = f"step by step: ε is at least {down(by_steps.epsilon)} if its assumptions hold, against 1.000 claimed."
    for text in (trained.out, found.out, done(privet("report show run")).out):
        assert told in " ".join(text.split())
        assert "or noise is missing: look closer. It proves nothing by itself." in " ".join(text.split())
        assert "REFUTED" not in text
    assert "step by step: as the run recorded it, with 98.75 % confidence" in found.out
    for page in ("run/report.html", "page.html"):
        assert '<header class="doubted">' in Path(page).read_text()
    assert "as the run recorded it" in Path("page.html").read_text()
    plain = done(privet("audit run")).out
    assert "as the run recorded it" not in plain
    told = "even if every guess were right, nothing could be proven with 4 guesses at δ = 1e-06"
    for text in (trained.out, plain, Path("run/report.html").read_text()):
        assert told in text
    assert told not in found.out  # at 90 % they can


def test_a_stopped_run_keeps_its_coins(privet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a run that goes on draws other coins than its first half had, or loses what canaries have summed up:
    canaries that were in would then have moved half as far. By chance it fails less than once in 10⁶ times."""
    patients(Path())
    steps: list[int] = []
    usual = CanaryPlan.step_of

    def stopping(self: CanaryPlan, *given: Any) -> Any:
        take_step = usual(self, *given)

        def counted(batch: Any) -> Any:
            steps.append(1)
            if len(steps) == 80:  # a few of the calls are pieces of a step
                raise KeyboardInterrupt
            return take_step(batch)

        return counted

    monkeypatch.setattr(CanaryPlan, "step_of", stopping)
    long = WORDS.replace("--epochs 5 --epsilon 1", "--epochs 20 --epsilon 30")
    assert privet(long).code == 130
    for words in ("audit run", "audit run --ladder", "attack run"):
        assert "is unfinished; go on with: privet train --resume --out run" in refused(privet(words))
    secret = Path("run/.privet/canaries.json")
    assert secret.stat().st_mode & 0o077 == 0
    done(privet("train --resume --out run"))
    (canaries,) = load(Path("run")).canaries
    inside, scores = np.array(canaries.value.inside), np.array(canaries.value.scores)
    assert 15 < scores[inside].mean() - scores[~inside].mean() < 25
    assert not Path("run/.privet").exists()


def test_users_have_canaries_of_their_own(audited: Run) -> None:
    """Fails when all canaries are one user's, when they change what a run with users costs, or when the ladder, which
    is about single rows, is set beside a promise to users."""
    described = SCHEMA.replace("rows = 600\n", 'rows = 600\nuser = "patient"\nmost_rows_per_user = 2\n')
    Path("users.toml").write_text(described, encoding="utf-8")
    words = PLAN.replace("schema.toml", "users.toml").replace("--epsilon 1 ", "--epsilon 50 ")
    done(audited(f"{words} --audit --canaries 200 --out users"))
    done(audited(f"{words} --out plain"))
    with_them, without = load(Path("users"), internal=True), load(Path("plain"))
    assert with_them.privacy.event.value == without.privacy.event.value
    assert with_them.privacy.guarantee.value.unit.whose is Whose.USER
    (canaries,) = with_them.canaries
    inside, scores = np.array(canaries.value.inside), np.array(canaries.value.scores)
    # Each takes part in five steps, on average; noise moves the difference of the means by less than 0.5.
    assert 2 < scores[inside].mean() - scores[~inside].mean() < 8
    assert {each.value.unit.whose for each in with_them.evidence} == {Whose.USER}
    told = "protects all rows of a user"
    assert told in refused(audited("audit users --ladder"))
    assert told in refused(audited("audit plain"))
    assert "canaries of its own" in refused(audited("audit users --canaries 300"))


def test_ladder_tries_the_stored_plan_of_a_private_count(audited: Run) -> None:
    """Fails when the rows of the file are counted for a plan that had a noisy count alone."""
    Path("uncounted.toml").write_text(SCHEMA.replace("rows = 600\n", ""), encoding="utf-8")
    done(audited(f"{PLAN.replace('schema.toml', 'uncounted.toml')} --out uncounted"))
    card = load(Path("uncounted"))
    assert card.rows is not None
    plan = json.loads(Path("uncounted/plan.json").read_text(encoding="utf-8"))
    (completed,) = plan["completed"]
    assert completed["settings"]["plan"]["population"] == card.rows.value
    shown = done(audited("audit uncounted --ladder --canaries 200"))
    assert "on embedded digits" in shown.out


def test_a_run_without_canaries_is_tried_again(audited: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when evidence of another run is taken for evidence of this one, or is not put on its page as what it is."""
    card = load(Path("run"), internal=True)
    write_run(Path("run"), replace(card, canaries=(), evidence=()))
    shown = done(audited("audit run --canaries 400"))
    assert "audits the code that made the run, and not the run" in shown.out
    names = ("API", "black box", "white box", "gradient canary", "chosen data set")
    evidence = [each.value for each in load(Path("run")).evidence]
    assert tuple(each.attack for each in evidence) == names
    assert all(climbing.ELSEWHERE in each.assumptions for each in evidence)
    assert {each.confidence for each in evidence} == {confidence_per_test(5)}
    strong = replace(evidence[0], epsilon=99.0)
    assert not strong.refutes(load(Path("run")).privacy.guarantee.value)
    found = climbing.LadderResult(
        load(Path("run")).privacy.event.value,
        load(Path("run")).privacy.guarantee.value,
        (Evidence(99.0, 0.1, 0.99, "API", 100),),
        ("all",),
    )
    monkeypatch.setattr("privet.runs.attacks.audit.climb_ladder", lambda *given, **named: found)
    assert audited("audit run --ladder").code == 1


def test_bad_input_is_one_line(privet: Run) -> None:
    """Fails when a mistake ends in anything but one line that says what to do."""
    Path("empty").mkdir()
    for words, told in {
        "audit nowhere": "neither the folder of a run nor a mechanism",
        "audit empty": "cannot be read",
        "audit empty --scale 1": "is for mechanisms",
        "audit laplace --sigma 1": "laplace has none",
        "audit gaussian --scale 1": "gaussian has none",
        "audit laplace --scale 1 --epsilon 1": "say the same thing twice",
        "audit laplace --scale -1": "--scale",
        "audit gaussian --delta 0": "needs δ > 0",
        "audit laplace --trials 5": "--trials is 5",
        "audit laplace --confidence 1": "--confidence is 1",
        "audit laplace --report page.txt": "end the name in .html",
        "audit laplace --categories 3": "laplace has none",
        "train digits --audit --method output --out run": "canaries are for one run of dp-sgd",
        "train digits --audit --canaries 0 --out run": "--canaries is 0",
        "train digits --canaries 200 --out run": "--canaries is given without --audit",
        "audit laplace --ladder": "--ladder is for runs",
        "audit laplace --canaries 500": "--canaries is for runs",
        "audit empty --delta 1e-5": "--delta is for mechanisms",
        "audit empty --categories 3": "--categories is for mechanisms",
    }.items():
        assert told in refused(privet(words)), words
