"""`privet calibrate`: the least noise, the highest rate or the most steps that a guarantee allows."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from privet.cli import console, solve
from privet.cli.described import described_batches, run_of, times
from privet.cli.options import (
    AsJson,
    BatchSize,
    Epochs,
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
from privet.cli.other_neighbours import advised
from privet.core import checked
from privet.core.errors import InvalidInput

__all__ = ["FindWord", "MechanismWord", "calibrate"]


class FindWord(StrEnum):
    """What is left out, in the shell's words."""

    NOISE = "noise"
    RATE = "rate"
    STEPS = "steps"


class MechanismWord(StrEnum):
    """What adds the noise to some answers, in the shell's words."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    RANDOMIZED_RESPONSE = "randomized-response"


_FIND = "What to find; if left out, the one thing that is not given."
_CATEGORIES = "For randomized-response: how many possible answers; 2, if left out."
_MECHANISM = "Find the noise of some answers in place of a run."
_NEIGHBOURS = "What may change for one person: add/remove, or replace for randomized-response, if left out."
_DELTA = "The δ of the guarantee: far below 1/n, such as 1e-5; may be left out for laplace and randomized-response."
_SAMPLING = "How batches are really drawn: poisson, if left out; shuffling is not poisson."
_ANSWERS = "Answers, not a run"


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
    answers: Annotated[
        int | None, typer.Option(help="How many answers; 1, if left out.", rich_help_panel=_ANSWERS)
    ] = None,
    categories: Annotated[int | None, typer.Option(help=_CATEGORIES, rich_help_panel=_ANSWERS)] = None,
    neighbours: Annotated[
        NeighboursWord | None, typer.Option(help=_NEIGHBOURS, rich_help_panel="Who is protected")
    ] = None,
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
    is_response = mechanism is MechanismWord.RANDOMIZED_RESPONSE
    usual = NeighboursWord.REPLACE if is_response else NeighboursWord.ADD_REMOVE
    unit = unit_of(neighbours or usual, whose, records)
    checked.positive("epsilon", epsilon)
    if population is not None and mechanism is None:
        checked.count("population", population)
    share = _delta(delta, is_gaussian=mechanism in (None, MechanismWord.GAUSSIAN))
    target = solve.Target(epsilon, share, unit, population)
    given: dict[str, float | int | None] = {
        "noise_multiplier": noise_multiplier,
        "sample_rate": sample_rate,
        "batch_size": batch_size,
        "population": population,
        "epochs": epochs,
        "steps": steps,
    }
    if mechanism is not None:
        _refuse(given, tuple(given), f"has no place with --mechanism {mechanism.value}")
        if find not in (None, FindWord.NOISE):
            raise InvalidInput("find", "has no place with --mechanism, which finds its noise", "leave it out")
        if sampling is not None:
            raise InvalidInput("sampling", f"has no place with --mechanism {mechanism.value}", "leave it out")
        if categories is not None and not is_response:
            raise InvalidInput("categories", f"has no place with --mechanism {mechanism.value}", "leave it out")
        count = checked.count("answers", 1 if answers is None else answers)
        with console.waiting("Searching …"):
            if mechanism is MechanismWord.GAUSSIAN:
                found = solve.gaussian_noise(target, count)
            elif mechanism is MechanismWord.LAPLACE:
                found = solve.laplace_noise(target, count)
            else:
                several = checked.count("categories", 2 if categories is None else categories, 2)
                found = solve.response(target, count, several)
    else:
        for name, value in (("answers", answers), ("categories", categories)):
            if value is not None:
                raise InvalidInput(name, "has no place in a run", "leave it out, or give --mechanism")
        drawn = sampling or SamplingWord.POISSON
        wanted = find or _left_out(given, drawn)
        with console.waiting("Searching …"):
            found = _in_run(wanted, target, given, drawn)
    if as_json:
        console.show_json(found.document(target))
    else:
        _show(found, target)


def _delta(given: float | None, *, is_gaussian: bool) -> float:
    if is_gaussian and not given:
        problem = "is missing" if given is None else "is 0"
        raise InvalidInput(
            "delta", f"{problem}, and Gaussian noise needs δ > 0", "give one far below 1/n, such as 1e-5"
        )
    return checked.share("delta", given or 0.0)


def _left_out(given: dict[str, float | int | None], sampling: SamplingWord) -> FindWord:
    if given["noise_multiplier"] is None:
        return FindWord.NOISE
    if sampling is SamplingWord.POISSON and given["sample_rate"] is None and given["batch_size"] is None:
        return FindWord.RATE
    if given["epochs"] is None and given["steps"] is None:
        return FindWord.STEPS
    problem = "is given, and so are the batches and the steps: nothing is left to find"
    raise InvalidInput("noise_multiplier", problem, "leave one of them out, or use: privet account")


def _in_run(
    wanted: FindWord, target: solve.Target, given: dict[str, float | int | None], sampling: SamplingWord
) -> solve.Found:
    rate, noise = given["sample_rate"], given["noise_multiplier"]
    batch, population = _whole(given["batch_size"]), _whole(given["population"])
    epochs, steps = given["epochs"], _whole(given["steps"])
    already = "is given, and it is what shall be found"
    if wanted is FindWord.RATE:
        _refuse(given, ("sample_rate", "batch_size"), already)
        if sampling is not SamplingWord.POISSON:
            raise InvalidInput("sampling", f"is {sampling.value}, and a rate is found for poisson alone", "find noise")
        if steps is None:
            raise InvalidInput("steps", "is missing; with --epochs it would depend on the rate", "give --steps")
        return solve.rate_of_run(target, _noise(noise), checked.count("steps", steps), population)
    batches = described_batches(sampling, rate, batch, population)
    if wanted is FindWord.NOISE:
        _refuse(given, ("noise_multiplier",), already)
        repetitions = times(batches, epochs, steps)
        with advised(run_of(batches, 1.0, repetitions.count)):
            return solve.noise_of_run(target, batches, repetitions)
    _refuse(given, ("epochs", "steps"), already)
    with advised(batches.one(1.0)):
        return solve.most_often(target, batches, _noise(noise))


def _refuse(given: dict[str, float | int | None], names: tuple[str, ...], problem: str) -> None:
    for name in names:
        if given[name] is not None:
            raise InvalidInput(name, problem, "leave it out")


def _noise(given: float | int | None) -> float:
    if given is None:
        raise InvalidInput("noise_multiplier", "is missing", "give it, or find it with --find noise")
    return checked.positive("noise_multiplier", given)


def _whole(given: float | int | None) -> int | None:
    return int(given) if given is not None else None


def _show(found: solve.Found, target: solve.Target) -> None:
    from privet.report.words import headline

    value = f"{found.value:,}" if isinstance(found.value, int) else f"{found.value:.10g}"
    console.line(f"{found.words}: {value}", "bold green")
    console.line(f"{headline(found.guarantee)}; asked was ε = {target.epsilon:g}")
    for note in found.notes:
        console.line(note, "dim")
    warnings = found.warnings(target)
    if warnings:
        console.heading("Beware")
        console.bullets(tuple(f"{warning}." for warning in warnings), "yellow")
