"""`privet account`: the described run is the one that is priced, and what is printed is what was proven."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from privet.accounting import Accountant, epsilon
from privet.core.event import (
    Event,
    Gaussian,
    IndependentBatches,
    Poisson,
    Repeated,
    Sampled,
    Sampling,
    ShuffledEpoch,
    WithoutReplacement,
    WithReplacement,
)
from privet.core.guarantee import Guarantee
from privet.core.unit import Neighbours, Unit, Whose
from tests.cli.conftest import Run

MNIST = "--noise-multiplier 1.1 --batch-size 256 --population 60000 --epochs 60 --delta 1e-5"


def event_in(document: Any) -> Event:
    """The event of a JSON answer, as the documentation says to read it."""
    event: Event = Event.from_json(json.dumps({"privet": document["privet"], "record": document["event"]}))
    return event


def test_the_usual_run(privet: Run) -> None:
    """Fails when a broken step is dropped (14,062), or the printed ε is not the proven one, rounded up."""
    run = Repeated(Sampled(Gaussian(1.1), by=Poisson(256 / 60000)), 14063)
    done = privet("account", MNIST)
    assert done.code == 0
    assert done.err == ""
    assert done.out.startswith("ε ≤ 2.382 at δ = 1e-05 for one example, added or removed\n")
    assert "60 epochs of 234.375 steps are 14,062.5 steps, priced as 14,063." in done.out
    assert 2.381 < epsilon(run, 1e-5).epsilon.upper <= 2.382
    assert event_in(privet("account", MNIST, "--json").json) == run


def test_every_accountant_is_shown_and_the_tightest_comes_first(privet: Run) -> None:
    """Fails when an accountant is left out, the order is not by ε, or one without a theorem prints a number."""
    done = privet("account", MNIST)
    names = [word for word in re.findall(r"^(\w+) ", done.out, re.MULTILINE) if word in {a.value for a in Accountant}]
    assert names[:6] == ["pld", "renyi", "advanced", "basic", "zcdp", "gdp"]
    assert re.search(r"^zcdp +zero-concentrated DP +no theorem *$", done.out, re.MULTILINE)
    assert "zcdp and gdp: no theorem for Gaussian sampled by Poisson for add/remove neighbors." in done.out


def test_the_json_answer(privet: Run) -> None:
    """Fails when a field that programs read is renamed, or when anything else is printed beside the JSON."""
    done = privet("account", MNIST, "--json")
    assert (done.code, done.err) == (0, "")
    answer = done.json
    assert set(answer) == {
        "privet",
        "command",
        "guarantee",
        "ladder",
        "meaning",
        "event",
        "conditions",
        "notes",
        "warnings",
    }
    interval = answer["guarantee"]["epsilon"]
    assert 2.37 < interval["lower"] <= interval["upper"] < 2.39
    assert answer["guarantee"]["delta"] == 1e-5
    assert answer["guarantee"]["unit"]["neighbours"] == "add/remove"
    assert answer["guarantee"]["accountant"] == "pld"
    assert answer["guarantee"]["assumptions"] == ["continuous (floating-point) noise"]
    record = json.dumps({"privet": answer["privet"], "record": answer["guarantee"]})
    assert Guarantee.from_json(record) == epsilon(event_in(answer), 1e-5)
    rungs = {rung["accountant"]: rung for rung in answer["ladder"]}
    assert set(rungs) == {accountant.value for accountant in Accountant}
    assert rungs["zcdp"]["guarantee"] is None
    assert "zcdp" in rungs["zcdp"]["refusal"]
    assert [attack["false_positive_rate"] for attack in answer["meaning"]["attacks"]] == [0.001, 0.01, 0.1]
    assert len(answer["meaning"]["sentences"]) == 6


def test_no_noise_is_an_answer(privet: Run) -> None:
    """Fails when a run without noise is an error, or is given a finite ε, or the reason is missing."""
    words = "--noise-multiplier 0 --sample-rate 0.1 --steps 10 --delta 1e-5"
    done = privet("account", words)
    assert done.code == 0
    assert done.out.startswith("ε = ∞ at δ = 1e-05: no guarantee")
    assert "Gaussian without noise" in done.out
    answer = privet("account", words, "--json").json
    assert answer["guarantee"]["epsilon"]["upper"] == "infinity"
    assert answer["warnings"] == ["no guarantee: Gaussian without noise"]


ONE_PASS = "--batch-size 30 --population 100"
SCHEMES: dict[str, tuple[str, Sampling | None, int]] = {
    "poisson": (f"{ONE_PASS} --epochs 2", Poisson(0.3), 7),
    "without-replacement": (f"{ONE_PASS} --epochs 2", WithoutReplacement(30, 100), 7),
    "with-replacement": (f"{ONE_PASS} --epochs 3", WithReplacement(30, 100), 10),
    "shuffled": (f"{ONE_PASS} --epochs 2.5", ShuffledEpoch(4), 3),
    "independent-batches": (f"{ONE_PASS} --steps 5", IndependentBatches(4), 2),
    "none": ("--steps 4", None, 4),
}


@pytest.mark.parametrize("word", SCHEMES)
def test_each_way_of_sampling_gives_its_own_event(privet: Run, word: str) -> None:
    """Fails when a word is priced as another scheme, or when a begun step or epoch is not counted."""
    options, by, count = SCHEMES[word]
    words = f"--noise-multiplier 4 --delta 1e-5 --sampling {word} {options} --neighbours zero-out --json"
    done = privet("account", words)
    assert done.code == 0, done.err
    leaf = Gaussian(4.0)
    assert event_in(done.json) == Repeated(Sampled(leaf, by=by) if by else leaf, count)


@pytest.mark.parametrize(
    ("words", "note"),
    [
        ("--sampling none --epochs 1", "1 epoch of 1 step is 1 step."),
        ("--sampling shuffled --sample-rate 0.1 --steps 1", "1 step begins 1 epoch, which is priced whole."),
        ("--sampling shuffled --sample-rate 0.1 --steps 11", "11 steps begin 2 epochs, which are priced whole."),
        ("--sampling shuffled --sample-rate 0.1 --epochs 1.5", "1.5 epochs are priced as 2 whole ones."),
    ],
)
def test_one_is_not_many(privet: Run, words: str, note: str) -> None:
    """Fails when one thing is counted in the plural."""
    done = privet("account --noise-multiplier 4 --delta 1e-5 --neighbours zero-out --json", words)
    assert done.json["notes"] == [note]


def test_a_group_without_a_finite_bound(privet: Run) -> None:
    """Fails when a bound that the method cannot find is said not to exist, or the accountants that find one are hidden.

    Thirty records under group privacy leave the loss distribution nothing; Rényi has a bound, if a useless one.
    """
    words = "--noise-multiplier 0.3 --delta 1e-5 --sample-rate 0.5 --steps 30 --records 30"
    done = privet("account", words, "--accountant pld")
    unit = "one user with at most 30 records, added or removed"
    assert done.code == 0
    assert done.out.startswith(f"no finite ε was found at δ = 1e-05 for {unit}\n")
    assert "ε = ∞" not in done.out
    assert "no guarantee" not in done.out
    assert re.search(r"^renyi .* 1\.\d+e\+05 *$", done.out, re.MULTILINE)


def test_a_group_without_noise_has_no_guarantee(privet: Run) -> None:
    """Fails when no noise at all is told as a bound that was merely not found."""
    done = privet("account --noise-multiplier 0 --delta 1e-5 --sample-rate 0.5 --steps 3 --records 3")
    assert done.out.startswith("ε = ∞ at δ = 1e-05: no guarantee for one user with at most 3 records, added")
    assert "By every accountant" not in done.out


@pytest.mark.parametrize(
    ("unit", "whose"),
    [("", "a random record"), ("--whose user", "a random user's data"), ("--records 2", "a random record")],
)
def test_the_warning_names_what_delta_would_publish(privet: Run, unit: str, whose: str) -> None:
    """Fails when users are priced and a single record is warned about."""
    words = "account --noise-multiplier 4 --sample-rate 0.1 --population 1000 --steps 9 --delta 0.01"
    assert f"publishing {whose} outright would be allowed" in privet(words, unit).out


def test_a_rate_that_is_a_round_decimal_gives_a_round_number_of_steps(privet: Run) -> None:
    """Fails when steps are worked out in floating point, where 21 / 0.7 is above 30, and would be priced as 31."""
    done = privet("account", "--noise-multiplier 4 --sample-rate 0.7 --epochs 21 --delta 1e-5 --json")
    assert math.ceil(21 / 0.7) == 31
    assert event_in(done.json) == Repeated(Sampled(Gaussian(4.0), by=Poisson(0.7)), 30)


def test_the_unit_is_the_one_that_was_named(privet: Run) -> None:
    """Fails when --neighbours, --whose or --records do not reach the accountant."""
    words = "--noise-multiplier 4 --sampling none --steps 1 --delta 1e-5 --json"
    one = privet("account", words).json["guarantee"]
    many = privet("account", words, "--neighbours", "replace", "--records", "3").json["guarantee"]
    unit = Unit(Whose.USER, Neighbours.REPLACE, records=3)
    assert many["unit"] == {"is": "Unit"} | json.loads(unit.to_json())["record"]
    assert many["epsilon"]["upper"] == epsilon(Repeated(Gaussian(4.0), 1), 1e-5, unit=unit).epsilon.upper
    assert many["epsilon"]["lower"] > one["epsilon"]["upper"]
    whose = privet("account", words, "--whose", "client").json["guarantee"]["unit"]["whose"]
    assert whose == "client"


@pytest.mark.parametrize("word", SCHEMES)
def test_the_conditions_fit_the_unit(privet: Run, word: str) -> None:
    """Fails when a user's rows may be drawn or clipped one by one although the user is priced as one record, or when
    the clip that group privacy prices (of each record) is said to be that of all a user's records together."""
    run = f"--noise-multiplier 4 --delta 1e-5 --sampling {word} {SCHEMES[word][0]} --neighbours zero-out --json"
    for who in ("user", "client"):
        alone = privet("account", run, "--whose", who).json["conditions"]
        assert re.search(rf"{who}.*all their rows", alone[0])
        assert "own coin" not in alone[0]
        assert any(f"each {who}'s contribution, of all their rows together, is clipped" in text for text in alone)
    several = privet("account", run, "--records", "3").json["conditions"]
    assert "record" in several[0]
    assert "Each user owns at most 3 records in the whole data set." in several
    assert any("each record's contribution is clipped" in text for text in several)
    assert not any("user's contribution" in text for text in several)


def test_three_names_are_listed_as_one_says_them(privet: Run) -> None:
    """Fails when several accountants without a theorem are strung together with "and"s."""
    done = privet(
        "account --noise-multiplier 4 --batch-size 30 --population 1000 --steps 9 --delta 1e-5 --neighbours",
        "replace --sampling with-replacement",
    )
    assert "renyi, zcdp and gdp: no theorem for" in done.out


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_no_name_of_an_accountant_is_broken(privet: Run, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Fails when a narrow terminal breaks a word or a number of the table."""
    words = "account --noise-multiplier 1.1 --sample-rate 0.01 --steps 1000 --delta 1e-5"
    numbers = set(re.findall(r"[\d,]+\.\d{3}\b", privet(words).out))
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = privet(words).out
    assert len(numbers) >= 5
    assert numbers <= set(re.findall(r"[\d,]+\.\d{3}\b", shown))
    assert {word.value for word in Accountant} <= set(re.findall(r"\w+", shown))
    table = shown[shown.index("By every accountant") : shown.index("zcdp and gdp: ")]
    assert max(map(len, table.splitlines())) <= columns


def test_what_real_valued_noise_means_is_said(privet: Run) -> None:
    """Fails when an assumption is named that nobody explains."""
    out = privet("account", MNIST).out
    assert "assuming continuous (floating-point) noise. The privacy cost is computed for exact real" in out


def test_one_accountant_may_be_asked_for(privet: Run) -> None:
    """Fails when --accountant is ignored, or hides the others."""
    answer = privet("account", MNIST, "--accountant", "renyi", "--json").json
    assert answer["guarantee"]["accountant"] == "renyi"
    assert answer["guarantee"]["epsilon"]["upper"] == answer["ladder"][1]["guarantee"]["epsilon"]["upper"]
    assert answer["ladder"][0]["accountant"] == "pld"


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        ("--noise-multiplier 0.4 --batch-size 500 --population 1000 --steps 9 --delta 1e-5", "ε is above 10"),
        ("--noise-multiplier 4 --batch-size 5 --population 1000 --steps 9 --delta 1e-3", "at least 1/n = 0.001"),
        ("--noise-multiplier 4 --sample-rate 0.1 --population 1000 --steps 9 --delta 0.01", "at least 1/n = 0.001"),
        ("--noise-multiplier 4 --sample-rate 0.1 --steps 9 --delta 0", "allow a δ such as 1e-5"),
        ("--noise-multiplier 4 --sample-rate 0.1 --steps 9 --delta 0.01", "δ = 0.01 is large"),
    ],
)
def test_what_is_weak_is_said(privet: Run, words: str, warning: str) -> None:
    """Fails when a large ε or a δ of the order of 1/n passes without a word."""
    done = privet("account", words)
    assert done.code == 0
    assert warning in done.out
    assert any(warning in text for text in privet("account", words, "--json").json["warnings"])


def test_a_strong_run_has_no_warning(privet: Run) -> None:
    """Fails when every run is warned about, so that nobody reads it."""
    done = privet("account", MNIST)
    assert "Warnings" not in done.out
