"""`privet account`: the privacy cost of a described run by every accountant, and what it means."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli import console
from privet.cli.options import (
    AccountantWord,
    AsJson,
    BatchSize,
    Delta,
    Epochs,
    NeighboursOption,
    NeighboursWord,
    Population,
    Records,
    SampleRate,
    SamplingOption,
    SamplingWord,
    Steps,
    WhoseOption,
    unit_of,
)

if TYPE_CHECKING:
    from privet.report import RunCard

__all__ = ["account"]

_WHICH = "Prove it by this accountant alone; the tightest, if left out."
_PLOT = "Write a page with five figures here; it needs no network."


def account(
    noise_multiplier: Annotated[
        float,
        typer.Option(help="Standard deviation of the noise over the clip, such as 1.1.", rich_help_panel="The run"),
    ],
    delta: Delta,
    sample_rate: SampleRate = None,
    batch_size: BatchSize = None,
    population: Population = None,
    epochs: Epochs = None,
    steps: Steps = None,
    sampling: SamplingOption = SamplingWord.POISSON,
    neighbours: NeighboursOption = NeighboursWord.ADD_REMOVE,
    whose: WhoseOption = None,
    records: Records = 1,
    accountant: Annotated[AccountantWord | None, typer.Option(help=_WHICH)] = None,
    as_json: AsJson = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.html", help=_PLOT, rich_help_panel="Output")] = None,
) -> None:
    """Price a run of noisy, clipped updates (DP-SGD) before it is done; no data is read.

    Shows ε by every accountant that has a theorem for the run, and what it means: how well the best attack can do, and
    how far an attacker's belief about one person can move.

    The usual run on MNIST, with a page of figures:

    privet account --noise-multiplier 1.1 --batch-size 256 --population 60000 --epochs 60 --delta 1e-5 --plot run.html
    """
    from privet.accounting import Accountant, RunSettings, SamplingScheme, describe_run
    from privet.report import curves_of, document, page, price_description, require_writable, write_page

    scheme = SamplingScheme(sampling.value)
    settings = RunSettings(noise_multiplier, scheme, sample_rate, batch_size, population, epochs, steps)
    run = describe_run(settings, unit_of(neighbours, whose, records))
    if plot is not None:
        require_writable(plot)
    with console.waiting("Pricing the run …"):
        chosen = Accountant(accountant.value) if accountant else None
        card = price_description(run, delta, accountant=chosen, population=population)
    if plot is not None:
        with console.progress_bar("Drawing the page …") as progress:
            write_page(plot, page(card, curves_of(card, progress=progress)))
    with console.after(f"the page {str(plot)!r} was written") if plot is not None else nullcontext():
        if as_json:
            console.show_json(document(card))
        else:
            _show(card, plot)


def _show(card: RunCard, plot: Path | None) -> None:
    from privet.report import headline, proven_by

    guarantee = card.guarantee.value
    console.line(headline(guarantee), "bold yellow" if card.warnings.value else "bold green")
    for note in card.notes.value:
        console.line(note, "dim")
    console.warnings(card.warnings.value)
    if any(rung.guarantee and math.isfinite(rung.guarantee.epsilon.upper) for rung in card.ladder.value):
        console.heading("By every accountant")
        _show_ladder(card)
    console.heading("What it means")
    console.bullets(card.meaning.value.sentences)
    if math.isfinite(guarantee.epsilon.upper):
        console.heading("It holds if")
        console.bullets(card.conditions.value)
        console.line()
        console.line(proven_by(guarantee), "dim")
    console.page_written(plot)


def _show_ladder(card: RunCard) -> None:
    from privet.report import ACCOUNTANTS, down, listed, up, why_not

    rows, refused = [], dict[str, list[str]]()
    for rung in card.ladder.value:
        answer = rung.guarantee.epsilon if rung.guarantee else None
        lower = down(answer.lower) if answer and answer.lower > 0 else ""
        name = rung.accountant.value
        rows.append((name, ACCOUNTANTS[rung.accountant], up(answer.upper) if answer else "no theorem", lower))
        if not answer:
            refused.setdefault(why_not(rung), []).append(name)
    columns = ("accountant", "name", "ε at most", "ε at least")
    console.show_rows(columns, rows, right=columns[2:], spare=("name",))
    for reason, names in refused.items():
        console.line(f"{listed(names)}: {reason}.", "dim")
