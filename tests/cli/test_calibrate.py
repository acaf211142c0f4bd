"""`privet calibrate`: the printed number itself fits, and a little less of it would not."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pytest

from privet.accounting import epsilon, truth_probability
from privet.core.event import Event, Gaussian, Laplace, Poisson, RandomizedResponse, Repeated, Sampled, ShuffledEpoch
from privet.core.unit import Neighbours, Unit
from tests.cli.conftest import Run
from tests.cli.test_account import event_in

RUN = "--epsilon 3 --delta 1e-5 --batch-size 256 --population 60000"
Build = Callable[[float], Event]


def upper(event: Event, delta: float, unit: Unit | None = None) -> float:
    return epsilon(event, delta, unit=unit).epsilon.upper


CASES: dict[str, tuple[str, str, Build, float, float]] = {
    # words, what is found, the event it belongs to, δ, and a factor that must be too much
    "noise of a run": (
        f"{RUN} --epochs 10",
        "noise_multiplier",
        lambda noise: Repeated(Sampled(Gaussian(noise), by=Poisson(256 / 60000)), 2344),
        1e-5,
        1 - 1.2e-3,
    ),
    "rate of a run": (
        "--epsilon 3 --delta 1e-5 --noise-multiplier 1.1 --steps 1000",
        "sample_rate",
        lambda rate: Repeated(Sampled(Gaussian(1.1), by=Poisson(rate)), 1000),
        1e-5,
        1 + 1.2e-3,
    ),
    "Gaussian answers": (
        "--epsilon 1 --delta 1e-6 --mechanism gaussian --answers 10",
        "noise_multiplier",
        lambda noise: Repeated(Gaussian(noise), 10),
        1e-6,
        1 - 1.2e-3,
    ),
    "Laplace answers": (
        "--epsilon 1 --mechanism laplace --answers 10",
        "scale",
        lambda scale: Repeated(Laplace(scale), 10),
        0.0,
        1 - 1.2e-3,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_printed_number_fits_and_little_less_does_not(privet: Run, case: str) -> None:
    """Fails when rounding crosses the target, or when much more noise than needed is asked for."""
    words, name, build, delta, too_much = CASES[case]
    answer = privet("calibrate", words, "--json").json
    value = answer["value"]
    assert answer["found"] == name
    assert event_in(answer) == build(value)
    assert upper(build(value), delta) == answer["guarantee"]["epsilon"]["upper"] <= answer["target"]["epsilon"]
    assert upper(build(value * too_much), delta) > answer["target"]["epsilon"]
    shown = privet("calibrate", words)
    assert f": {value:.10g}\n" in shown.out
    assert f"the target is ε = {answer['target']['epsilon']:g}" in shown.out


def test_the_most_steps(privet: Run) -> None:
    """Fails when one more step would still fit, or the number printed exceeds the target."""
    step = Sampled(Gaussian(1.1), by=Poisson(256 / 60000))
    answer = privet("calibrate", RUN, "--noise-multiplier", "1.1", "--json").json
    assert answer["found"] == "steps"
    assert upper(Repeated(step, answer["value"]), 1e-5) <= 3 < upper(Repeated(step, answer["value"] + 1), 1e-5)
    assert "That is 91.1" in answer["notes"][-1]


def test_epochs_are_found_where_a_pass_is_priced_as_one(privet: Run) -> None:
    """Fails when shuffled epochs are found as steps."""
    words = f"{RUN} --noise-multiplier 8 --sampling shuffled --neighbours zero-out --json"
    answer = privet("calibrate", words).json
    unit = Unit(neighbours=Neighbours.ZERO_OUT)
    one = Sampled(Gaussian(8.0), by=ShuffledEpoch(235))
    assert answer["found"] == "epochs"
    found = answer["value"]
    assert upper(Repeated(one, found), 1e-5, unit) <= 3 < upper(Repeated(one, found + 1), 1e-5, unit)


def test_a_survey(privet: Run) -> None:
    """Fails when randomised response is priced for neighbours that it has no theorem for, or rounded upwards."""
    words = "--epsilon 1 --mechanism randomized-response --categories 4 --answers 3"
    answer = privet("calibrate", words, "--json").json
    unit = Unit(neighbours=Neighbours.REPLACE)
    assert answer["guarantee"]["unit"]["neighbours"] == "replace"
    assert 0.333 < answer["value"] <= 1 / 3
    assert upper(Repeated(RandomizedResponse(answer["value"], 4), 3), 0.0, unit) <= 1


def test_round_answers_stay_round(privet: Run) -> None:
    """Fails when a tolerance of the search shows: ten counts at ε = 1 need Laplace noise of scale 10, not 10.001."""
    assert privet("calibrate", "--epsilon 1 --mechanism laplace --answers 10 --json").json["value"] == 10
    assert privet("calibrate", "--epsilon 1 --mechanism laplace --json").json["value"] == 1


@pytest.mark.parametrize(
    ("unit", "word"),
    [("", "rows"), ("--whose user", "users"), ("--whose client", "clients"), ("--records 2", "records")],
)
def test_the_note_counts_what_is_drawn(privet: Run, unit: str, word: str) -> None:
    """Fails when a rate for users is told in rows: whoever draws so many rows samples another unit than was priced."""
    words = "--epsilon 3 --delta 1e-5 --population 60000 --noise-multiplier 1.1 --steps 100 --find rate --json"
    (note,) = privet("calibrate", words, unit).json["notes"]
    assert note.endswith(f" of 60,000 {word} in a batch, on average.")


def test_what_is_weak_is_said(privet: Run) -> None:
    """Fails when a δ that no data set can bear passes without a word, or when a good one is warned about."""
    words = "--epsilon 1 --mechanism gaussian --delta"
    assert "Warnings\n· δ = 0.01 is large" in privet("calibrate", words, "0.01").out
    assert "δ = 0.01 is large" in privet("calibrate", words, "0.01 --json").json["warnings"][0]
    assert privet("calibrate", words, "1e-5 --json").json["warnings"] == []
    assert "at least 1/n" in privet("calibrate", RUN, "--delta 1e-4 --epochs 1").out


def test_no_answer_is_kept_for_sure(privet: Run) -> None:
    """Fails when a probability is rounded up to 1, which would be no randomised response at all."""
    (note,) = privet("calibrate --epsilon 40 --mechanism randomized-response --json").json["notes"]
    assert "with a probability of 0.9999999999999999957, else" in note
    (note,) = privet("calibrate --epsilon 100 --mechanism randomized-response --categories 3 --json").json["notes"]
    assert "with a probability of 1 − 7.441e-44, else" in note


@pytest.mark.parametrize("categories", [2, 3, 10, 1000])
@pytest.mark.parametrize("each", [1e-6, 0.1, 1.0, 7.3, 13.9, 20.0, 36.5, 57.0])
def test_what_is_kept_is_on_the_safe_side(each: float, categories: int) -> None:
    """Fails when the printed probability allows more than ε, or is far below what ε allows."""
    shown = truth_probability(each, categories)
    share = 1 - Fraction(shown.removeprefix("1 − ")) if "−" in shown else Fraction(shown)
    odds = (
        Decimal((share * (categories - 1) / (1 - share)).numerator)
        / (share * (categories - 1) / (1 - share)).denominator
    )
    assert share < 1
    assert each * 0.9 - 3e-6 * categories < float(odds.ln()) <= each


@pytest.mark.parametrize(
    ("words", "value", "end"),
    [
        ("--epsilon 1e300 --delta 1e-5 --sample-rate 0.01 --steps 100", 1e-4, "less noise"),
        ("--epsilon 1e300 --mechanism laplace", 1e-4, "less noise"),
        ("--epsilon 1e300 --mechanism randomized-response", 1e4, "a larger ε"),
        ("--epsilon 3 --delta 1e-5 --noise-multiplier 1e6 --sampling none", 10**7, "more"),
    ],
)
def test_the_end_of_the_search_is_said(privet: Run, words: str, value: float, end: str) -> None:
    """Fails when the edge of what is searched is given as the answer, as if nothing lay beyond it."""
    answer = privet("calibrate", words, "--json").json
    assert answer["value"] == value
    assert f"The search ends there; {end} may fit." in answer["notes"]
    usual = privet("calibrate --epsilon 1 --mechanism laplace --json").json
    assert usual["notes"] == []


BAD = {
    "cannot be reached with any noise that is tried here; allow a larger ε, or fewer --answers": (
        "--epsilon 1 --mechanism laplace --answers 1000000000000"
    ),
    "tried here; allow a larger ε or δ, or fewer --answers": (
        "--epsilon 1e-6 --delta 1e-9 --mechanism gaussian --answers 1000000000000"
    ),
    "no theorem is known to us; it can be priced with --neighbours replace": (
        "--epsilon 1 --mechanism randomized-response --neighbours add/remove"
    ),
    "nothing is left to find": f"{RUN} --noise-multiplier 1.1 --steps 10",
    "missing: --steps (or --epochs); see": RUN,
    "--noise-multiplier is given, and it is what shall be found": f"{RUN} --noise-multiplier 1 --steps 1 --find noise",
    "--sample-rate is given": "--epsilon 1 --delta 1e-5 --sample-rate 0.1 --find rate --noise-multiplier 1 --steps 1",
    "with --epochs it would depend on the rate": "--epsilon 1 --delta 1e-5 --noise-multiplier 1 --epochs 1",
    "--steps has no place with --mechanism laplace": "--epsilon 1 --mechanism laplace --steps 3",
    "--find has no place with --mechanism": "--epsilon 1 --mechanism laplace --find rate",
    "a rate is found for poisson alone": (
        "--epsilon 1 --delta 1e-5 --find rate --sampling shuffled --noise-multiplier 1 --steps 1"
    ),
    "--categories is 1, which is below 2": "--epsilon 1 --mechanism randomized-response --categories 1",
    "--answers is 0": "--epsilon 1 --mechanism laplace --answers 0",
    "exceeded by a single one of the steps": f"{RUN} --noise-multiplier 0.01",
    "--epsilon is 0.0, which is not positive": "--epsilon 0 --mechanism laplace",
    "missing: --delta (Gaussian noise needs δ > 0); see": "--epsilon 1 --mechanism gaussian",
    "missing: --delta (Gaussian noise": "--epsilon 1 --sample-rate 0.1 --steps 10",
    "--delta is 0, and Gaussian noise needs δ > 0": "--epsilon 1 --delta 0 --sample-rate 0.1 --steps 10",
    "--categories has no place with --mechanism laplace": "--epsilon 1 --mechanism laplace --categories 3",
    "--sampling has no place with --mechanism laplace": "--epsilon 1 --mechanism laplace --sampling none",
    "--answers has no place in a run": f"{RUN} --epochs 10 --answers 3",
    "--categories has no place in a run": f"{RUN} --epochs 10 --categories 3",
    "missing: --noise-multiplier; see": f"{RUN} --find steps",
}


@pytest.mark.parametrize("complaint", BAD)
def test_what_cannot_be_found_is_refused_in_one_line(privet: Run, complaint: str) -> None:
    """Fails when two unknowns are guessed, a contradiction is passed over, or the line does not say what is wrong."""
    done = privet("calibrate", BAD[complaint])
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("privet: ")
    assert done.err.count("\n") == 1
    assert complaint in done.err


@pytest.mark.parametrize("categories", [2, 3, 7, 1000])
@pytest.mark.parametrize("each", [1e-7, 3e-10, 1e-20, 0.5, 20.0])
def test_the_printed_chance_is_safe_and_better_than_guessing(each: float, categories: int) -> None:
    """Catches a chance rounded down past 1/k, at which the true answer is told by its absence: ε = ∞ for k = 2."""
    shown = truth_probability(each, categories)
    chance = Fraction(shown)
    assert Fraction(1, categories) <= chance < 1
    odds = Decimal(chance.numerator) * (categories - 1) / Decimal(chance.denominator - chance.numerator)
    assert odds.ln() <= Decimal(each)


def test_a_tiny_epsilon_is_printed_as_it_was_priced(privet: Run) -> None:
    """Catches words that round what was found: the printed ε costs no more than the target, and so does the chance."""
    done = privet("calibrate --epsilon 1.234567e-7 --mechanism randomized-response --categories 3")
    each = float(done.out.split("ε of each answer: ")[1].split()[0])
    unit = Unit(neighbours=Neighbours.REPLACE)
    assert upper(RandomizedResponse(each, 3), 0.0, unit) <= 1.234567e-7
    chance = Decimal(done.out.split("probability of ")[1].split(",")[0])
    assert Decimal(1) / 3 < chance
    assert (2 * chance / (1 - chance)).ln() <= Decimal("1.234567e-7")
