"""`privet calibrate`: solve for the least noise, the highest rate or the most steps that a guarantee allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli import console
from privet.cli.numbers import WHOLE
from privet.cli.options import (
    AsJson,
    BatchSize,
    Epochs,
    FindWord,
    MechanismWord,
    NeighboursWord,
    NoiseMultiplier,
    Population,
    Records,
    SampleRate,
    SamplingWord,
    Steps,
    WhoseOption,
    unit_of,
)
from privet.core import VERSION, InvalidInput, checked, encode

if TYPE_CHECKING:
    from privet.accounting import PrivacyTarget, Solution

__all__ = ["calibrate"]

_FIND = "What to find; if left out, the one thing that is not given."
_COUNT = "How many answers; 1, if left out."
_CATEGORIES = "For randomized-response: how many possible answers; 2, if left out."
_MECHANISM = "Find the noise of some answers in place of a run."
_NEIGHBOURS = "What may change for one person: add/remove, or replace for randomized-response, if left out."
_DELTA = "The δ of the guarantee: far below 1/n, such as 1e-5; may be left out for laplace and randomized-response."
_SAMPLING = "How batches are really drawn: poisson, if left out; shuffling is not poisson."
_ANSWERS = "Answers, not a run"
_UNIT = "Who is protected"


def calibrate(
    epsilon: Annotated[float, typer.Option(help="The ε that must not be exceeded.")],
    delta: Annotated[float | None, typer.Option(help=_DELTA)] = None,
    find: Annotated[FindWord | None, typer.Option(help=_FIND)] = None,
    noise_multiplier: NoiseMultiplier = None,
    sample_rate: SampleRate = None,
    batch_size: BatchSize = None,
    population: Population = None,
    epochs: Epochs = None,
    steps: Steps = None,
    sampling: Annotated[SamplingWord | None, typer.Option(help=_SAMPLING, rich_help_panel="The run")] = None,
    mechanism: Annotated[MechanismWord | None, typer.Option(help=_MECHANISM, rich_help_panel=_ANSWERS)] = None,
    answers: Annotated[int | None, typer.Option(click_type=WHOLE, help=_COUNT, rich_help_panel=_ANSWERS)] = None,
    categories: Annotated[
        int | None, typer.Option(click_type=WHOLE, help=_CATEGORIES, rich_help_panel=_ANSWERS)
    ] = None,
    neighbours: Annotated[NeighboursWord | None, typer.Option(help=_NEIGHBOURS, rich_help_panel=_UNIT)] = None,
    whose: WhoseOption = None,
    records: Records = 1,
    as_json: AsJson = False,
) -> None:
    """Find the one number that is left out, so that the whole costs at most (ε, δ).

    The answer is rounded to the safe side and priced again as it is printed: noise up, rate and steps down.

    The least noise for 10 epochs at ε = 3; then the most steps with a noise of 1.1:

    privet calibrate --epsilon 3 --delta 1e-5 --batch-size 256 --population 60000 --epochs 10

    privet calibrate --epsilon 3 --delta 1e-5 --batch-size 256 --population 60000 --noise-multiplier 1.1

    Laplace noise for ten counts; then a survey with four possible answers:

    privet calibrate --epsilon 1 --mechanism laplace --answers 10

    privet calibrate --epsilon 1 --mechanism randomized-response --categories 4
    """
    from privet.accounting import PrivacyTarget, RunParameter, RunSettings, SamplingScheme, solve_run
    from privet.report import guarantee_warnings

    usual = NeighboursWord.REPLACE if mechanism is MechanismWord.RANDOMIZED_RESPONSE else NeighboursWord.ADD_REMOVE
    unit = unit_of(neighbours or usual, whose, records)
    checked.positive("epsilon", epsilon)
    if population is not None and mechanism is None:
        checked.count("population", population)
    target = PrivacyTarget(epsilon, _delta(delta, is_gaussian=mechanism in (None, MechanismWord.GAUSSIAN)), unit)
    scheme = SamplingScheme((sampling or SamplingWord.POISSON).value)
    settings = RunSettings(noise_multiplier, scheme, sample_rate, batch_size, population, epochs, steps)
    with console.waiting("Searching …"):
        if mechanism is not None:
            no_place = f"has no place with --mechanism {mechanism.value}"
            _refuse({name: value for name, value in asdict(settings).items() if name != "scheme"}, no_place)
            if find not in (None, FindWord.NOISE):
                raise InvalidInput("find", "has no place with --mechanism, which finds its noise", "leave it out")
            _refuse({"sampling": sampling}, no_place)
            solution = _solve_answers(target, mechanism, answers, categories)
        else:
            given = {"answers": answers, "categories": categories}
            _refuse(given, "has no place in a run", "leave it out, or give --mechanism")
            solution = solve_run(target, settings, RunParameter(find.value) if find else None)
    warnings = guarantee_warnings(solution.guarantee, population)
    if as_json:
        console.show_json(_document(solution, target, warnings))
    else:
        _show(solution, target, warnings)


def _solve_answers(
    target: PrivacyTarget, mechanism: MechanismWord, answers: int | None, categories: int | None
) -> Solution:
    from privet.accounting import solve_gaussian, solve_laplace, solve_randomized_response

    count = 1 if answers is None else answers
    if mechanism is MechanismWord.RANDOMIZED_RESPONSE:
        return solve_randomized_response(target, count, 2 if categories is None else categories)
    _refuse({"categories": categories}, f"has no place with --mechanism {mechanism.value}")
    return (solve_gaussian if mechanism is MechanismWord.GAUSSIAN else solve_laplace)(target, count)


def _refuse(given: Mapping[str, object], problem: str, advice: str = "leave it out") -> None:
    for name, value in given.items():
        if value is not None:
            raise InvalidInput(name, problem, advice)


def _delta(given: float | None, *, is_gaussian: bool) -> float:
    if is_gaussian and not given:
        problem = "is missing" if given is None else "is 0"
        raise InvalidInput(
            "delta", f"{problem}, and Gaussian noise needs δ > 0", "give one far below 1/n, such as 1e-5"
        )
    return checked.share("delta", given or 0.0)


def _document(solution: Solution, target: PrivacyTarget, warnings: tuple[str, ...]) -> dict[str, Any]:
    return {
        "privet": VERSION,
        "command": "calibrate",
        "found": solution.parameter,
        "value": solution.value,
        "target": {"epsilon": target.epsilon, "delta": target.delta},
        "guarantee": encode(solution.guarantee),
        "event": encode(solution.event),
        "notes": list(solution.notes),
        "warnings": list(warnings),
    }


def _show(solution: Solution, target: PrivacyTarget, warnings: tuple[str, ...]) -> None:
    from privet.report import headline

    value = f"{solution.value:,}" if isinstance(solution.value, int) else f"{solution.value:.10g}"
    console.line(f"{solution.label}: {value}", "bold green")
    console.line(f"{headline(solution.guarantee)}; the target is ε = {target.epsilon:g}")
    for note in solution.notes:
        console.line(note, "dim")
    console.warnings(warnings)
