"""Name all required options that are missing at once, with an example of a complete command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from privet.cli.options import FindWord, MechanismWord, SamplingWord

__all__ = ["NEEDS", "MissingOptions"]

_Typed = Mapping[str, Any]
_Lacking = tuple[list[str], str]
"""The options that are missing beside those that are always required, and a complete command."""

_BATCHES = "--sample-rate (or --batch-size and --population)"
_STEPS = "--steps (or --epochs)"
_DELTA = "--delta (Gaussian noise needs δ > 0)"
_FIXED = (SamplingWord.WITHOUT_REPLACEMENT, SamplingWord.WITH_REPLACEMENT)
_UNKNOWN = "what shall be found, --noise-multiplier or --steps (--epochs)"
_TARGET = "privet calibrate --epsilon 3 --delta 1e-5"


class MissingOptions(click.UsageError):
    """Required options are missing; the message ends with a command that can be copied."""

    def __init__(self, lacking: tuple[str, ...], example: str, ctx: click.Context) -> None:
        self.lacking, self.example = lacking, example
        super().__init__(f"missing: {', '.join(lacking)}; see {ctx.command_path} --help, or try: {example}", ctx)


def _account(typed: _Typed) -> _Lacking:
    sizes = "--batch-size 100 --population 10000" if typed.get("sampling") in _FIXED else "--sample-rate 0.01"
    drawn = f" --sampling {typed['sampling']} --neighbours replace" if typed.get("sampling") in _FIXED else ""
    example = f"privet account --noise-multiplier 1.1 {sizes} --steps 1000 --delta 1e-5{drawn}"
    return [*_batches(typed), *_steps(typed)], example


def _calibrate(typed: _Typed) -> _Lacking:
    if "mechanism" in typed:
        mechanism = MechanismWord(typed["mechanism"])
        needs_delta = mechanism is MechanismWord.GAUSSIAN
        example = f"privet calibrate --epsilon 1{' --delta 1e-5' if needs_delta else ''} --mechanism {mechanism.value}"
        return [_DELTA] if needs_delta and "delta" not in typed else [], example
    delta = [] if "delta" in typed else [_DELTA]
    noise = [] if "noise_multiplier" in typed else ["--noise-multiplier"]
    find = typed.get("find")
    if find == FindWord.RATE:
        return [*delta, *noise, *(_steps(typed) and ["--steps"])], f"{_TARGET} --noise-multiplier 1.1 --steps 1000"
    if find == FindWord.STEPS:
        return [*delta, *noise, *_batches(typed)], f"{_TARGET} --noise-multiplier 1.1 --sample-rate 0.01"
    if find is None and not noise:
        return [*delta, *_one_left_out(typed)], f"{_TARGET} --noise-multiplier 1.1 --steps 1000"
    return [*delta, *_batches(typed), *_steps(typed)], f"{_TARGET} --sample-rate 0.01 --steps 1000"


def _one_left_out(typed: _Typed) -> list[str]:
    """With the noise given, either the batches or the steps may be left out: that is what is solved for."""
    batches = _batches(typed)
    # A rate is found for Poisson sampling alone; and half of a batch's description is no description left out.
    rate_open = typed.get("sampling", SamplingWord.POISSON) == SamplingWord.POISSON and batches == [_BATCHES]
    if not rate_open:
        return batches if _steps(typed) else [f"{each}; and leave out {_UNKNOWN}" for each in batches]
    either = "--steps (to find the rate), or --sample-rate (to find the steps)"
    return [either] if _steps(typed) else []


def _batches(typed: _Typed) -> list[str]:
    if typed.get("sampling") == SamplingWord.NONE or "sample_rate" in typed:
        return []
    if "batch_size" in typed:
        return [] if "population" in typed else ["--population (without it --batch-size says nothing)"]
    if typed.get("sampling") in _FIXED:
        return ["--batch-size and --population" if "population" not in typed else "--batch-size"]
    return [_BATCHES]


def _steps(typed: _Typed) -> list[str]:
    return [] if "steps" in typed or "epochs" in typed else [_STEPS]


NEEDS: dict[str, Callable[[_Typed], _Lacking]] = {"account": _account, "calibrate": _calibrate}
"""For each command whose needs depend on what is typed: what is missing, and an example."""
