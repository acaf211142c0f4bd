"""Runs on the disk: the folder of one, and several side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from privet.core import (
    Internal,
    InvalidInput,
    Public,
    Release,
    Score,
    Shareable,
    Trial,
    Typed,
    digits_up,
    reason_of,
    write_atomically,
)
from privet.report.card_json import from_json, to_json
from privet.report.curves import Curves, curves_of
from privet.report.figures.accuracy import accuracy_by_epsilon
from privet.report.figures.teachers import accuracy_by_teachers
from privet.report.frame import RUN_STYLES, alert, bullets, page_html, table
from privet.report.origin import INTERVALS, format_score, origin, short_interval
from privet.report.price_check import require_priced
from privet.report.ranking import verdicts_on
from privet.report.tables_file import read_tables
from privet.report.training_card import TrainingCard, is_tainted, shareable
from privet.report.training_page import SHAREABLE_FOOTER, internal_page, report_page
from privet.report.words import listed, protected, up
from privet.report.write import require_ours, require_writable_folder

__all__ = [
    "CARD",
    "INTERNAL_CARD",
    "INTERNAL_PAGE",
    "REPORT",
    "Comparison",
    "compare",
    "compare_page",
    "load",
    "read_card",
    "require_folder",
    "trials_of",
    "write_internal",
    "write_run",
]

T = TypeVar("T")
CARD, REPORT = "card.json", "report.html"
INTERNAL_CARD, INTERNAL_PAGE = "internal.json", "internal.html"
_HEAD = ("run", "data", "method", "ε at most", "δ", "metric", "value", "interval", "on", "origin")


def require_folder(folder: Path, argument: str = "out") -> None:
    """Create the folder of a new run, or check before the work that a run can be written to it.

    Args:
        folder: The folder.
        argument: The name of the user's argument that an error is about.

    Raises:
        InvalidInput: The folder cannot be written, or holds a run already.
    """
    require_writable_folder(folder, argument)
    if (folder / CARD).exists():
        raise InvalidInput(argument, f"is {str(folder)!r}, which holds a run already", "name another folder")


def write_run(
    folder: Path, card: TrainingCard, *, progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[Path, ...]:
    """Write the four files of a run.

    Args:
        folder: The folder.
        card: The card. No internal value reaches `card.json` and `report.html`, which may be shared; `internal.json`
            and `internal.html` are readable by their owner alone (mode 600).
        progress: Called with the number of finished steps and their total.

    Returns:
        The paths of all four.

    Raises:
        InvalidInput: A file cannot be written, or would replace a file that is not Privet's.
    """
    curves, shared = curves_of(card.privacy, progress=progress, whole=False), shareable(card)
    internal = _internal_files(folder, card, curves)
    return _write(folder, {REPORT: report_page(shared, curves)} | internal | {CARD: to_json(shared)}, "out")


def write_internal(
    folder: Path, card: TrainingCard, *, progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[Path, ...]:
    """Write `internal.json` and `internal.html` again; the files that may be shared stay as they are.

    Args:
        folder: The folder of the run.
        card: The card.
        progress: Called with the number of finished steps and their total.

    Returns:
        The paths of both.

    Raises:
        InvalidInput: A file cannot be written, or would replace a file that is not Privet's.
    """
    curves = curves_of(card.privacy, progress=progress, whole=False)
    return _write(folder, _internal_files(folder, card, curves), "run")


def _internal_files(folder: Path, card: TrainingCard, curves: Curves) -> dict[str, str]:
    page = internal_page(card, curves, read_tables(folder))
    return {INTERNAL_PAGE: page, INTERNAL_CARD: to_json(card, internal=True)}


def _write(folder: Path, files: Mapping[str, str], argument: str) -> tuple[Path, ...]:
    for name in {REPORT, INTERNAL_PAGE} & set(files):
        require_ours(folder / name)
    for name, text in files.items():
        write_atomically(folder / name, text, argument, private=name in (INTERNAL_CARD, INTERNAL_PAGE))
    return tuple(folder / name for name in files)


def read_card(folder: Path, *, internal: bool = False) -> TrainingCard:
    """Return the card in a run's folder without pricing it again: see `load`.

    Args:
        folder: The folder.
        internal: Whether to read `internal.json` in place of `card.json`.

    Raises:
        InvalidInput: The file cannot be read, or is not a card.
    """
    path = folder / (INTERNAL_CARD if internal else CARD)
    try:
        return from_json(path.read_text(encoding="utf-8"), internal=internal)
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "it is not text"
        problem = f"is {str(folder)!r}, of which {path.name} cannot be read: {reason}"
        raise InvalidInput("run", problem, "name a folder that `privet train` wrote") from None
    except InvalidInput as error:
        raise _refused(folder, path.name, error) from None


def load(folder: Path, *, internal: bool = False) -> TrainingCard:
    """Return the card in a run's folder. It is priced again, and refused if it claims less than its own events cost.

    Args:
        folder: The folder.
        internal: Whether to read `internal.json`, with everything, in place of `card.json`.

    Raises:
        InvalidInput: The file cannot be read, is not a card, or claims a smaller ε than its events cost.
    """
    card = read_card(folder, internal=internal)
    try:
        require_priced(card)
    except InvalidInput as error:
        raise _refused(folder, INTERNAL_CARD if internal else CARD, error) from None
    return card


def _refused(folder: Path, name: str, error: InvalidInput) -> InvalidInput:
    """Return the same error with the run's name, since there may be several."""
    problem = f"is {str(folder)!r}, of which {name} cannot be used: {error.argument} {error.problem}"
    return InvalidInput("run", problem, error.advice)


def trials_of(name: str, card: TrainingCard) -> tuple[Typed[Trial], ...]:
    """Return a run's scores as trials, for another card's `stored`; each stays public, a release, or internal.

    Args:
        name: The name of the run.
        card: The card of the run.
    """
    guarantee, method = card.privacy.guarantee.value, card.method.value
    teachers = None if card.teachers is None else card.teachers.value

    def trial(score: Score) -> Trial:
        return Trial(name, method, guarantee.epsilon.upper, guarantee.delta, score, teachers)

    return tuple(_mapped(score, trial) for score in card.scores)


def _mapped(value: Typed[T], function: Callable[[T], Trial]) -> Typed[Trial]:
    """Return a function of a value, which stays public, a release, or internal."""
    if isinstance(value, Release):
        return value.map(function)
    return Internal(function(value.value)) if isinstance(value, Internal) else Public(function(value.value))


@dataclass(frozen=True)
class Comparison:
    """Several runs as one table, and warnings about comparing them."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    cautions: tuple[str, ...]
    trials: tuple[Typed[Trial], ...]
    verdicts: tuple[str, ...] = ()
    """For each measure that several runs on one data set have: which is best, or that the intervals do not tell."""


def compare(cards: Mapping[str, TrainingCard]) -> Comparison:
    """Return runs side by side, with a row for each score that may be shared; a run without scores has one row.

    Scores of the run's own method stand beside the ε of the whole run, and those of methods that were compared within
    it beside the ε of their own model, as in `show`.

    Args:
        cards: The cards, by the name of the run.

    Raises:
        InvalidInput: There are no cards.
    """
    if not cards:
        raise InvalidInput("runs", "are none", "name one or more folders")
    shared = {name: shareable(card) for name, card in cards.items()}
    rows: list[tuple[str, ...]] = []
    trials: list[Typed[Trial]] = []
    for name, card in shared.items():
        guarantee = card.privacy.guarantee.value
        start = (
            name,
            card.data.value,
            card.method.value,
            up(guarantee.epsilon.upper),
            digits_up(guarantee.delta),
        )
        own = [(*start, *_score_cells(each.value, origin(each))) for each in card.scores]
        rows += own or [(*start, "–", "–", "–", "–", "–")]
        trials += trials_of(name, card)
        for each in _other_methods(card):
            trial = each.value
            beside = (name, card.data.value, trial.method, up(trial.epsilon), digits_up(trial.delta))
            rows.append((*beside, *_score_cells(trial.score, origin(each))))
            trials.append(_mapped(each, partial(replace, run=name)))
    return Comparison(_HEAD, tuple(rows), tuple(_cautions(shared)), tuple(trials), tuple(_verdicts(shared)))


def _other_methods(card: TrainingCard) -> list[Shareable[Trial]]:
    """Return the trials, of those that may be shared, of methods that a run was compared with."""
    return [each for each in card.compared if not isinstance(each, Internal) and each.value.method != card.method.value]


def _score_cells(score: Score, source: str) -> tuple[str, ...]:
    return score.name, format_score(score.value, score.share), short_interval(score), score.on, source


def compare_page(cards: Mapping[str, TrainingCard]) -> str:
    """Return the comparison of runs as a page for sharing, with the scores against ε.

    Args:
        cards: The cards, by the name of the run.

    Raises:
        InvalidInput: There are no cards.
    """
    comparison = compare(cards)
    verdicts = bullets(tuple(f"{verdict}." for verdict in comparison.verdicts)) if comparison.verdicts else ""
    body = [
        '<header><p class="kind">Runs side by side</p><h1>Each with its own guarantee</h1>',
        *(alert("warning", "Warning", f"{text}.") for text in comparison.cautions),
        "</header>",
        '<div class="wide"><section>',
        table(f"All runs. {INTERVALS}", comparison.head, comparison.rows),
        verdicts,
        "</section></div>",
    ]
    figures = (*accuracy_by_epsilon(comparison.trials), *accuracy_by_teachers(comparison.trials))
    return page_html("Runs side by side", body, figures, footer=SHAREABLE_FOOTER, styles=RUN_STYLES)


def _verdicts(cards: Mapping[str, TrainingCard]) -> Sequence[str]:
    groups: dict[tuple[str, str, str], dict[str, Score]] = {}
    for run, card in cards.items():
        for each in card.scores:
            groups.setdefault((each.value.name, each.value.on, card.data.value), {})[run] = each.value
        for trial in (each.value for each in _other_methods(card)):
            same = groups.setdefault((trial.score.name, trial.score.on, card.data.value), {})
            same[f"{run} ({trial.method})"] = trial.score
    several = len({card.data.value for card in cards.values()}) > 1
    return [
        verdict
        for (name, on, data), scores in groups.items()
        for verdict in verdicts_on(f"{name} on {on}{f' of {data}' if several else ''}", scores)
    ]


def _cautions(cards: Mapping[str, TrainingCard]) -> Sequence[str]:
    cautions = []
    units = dict.fromkeys(protected(card.privacy.guarantee.value.unit) for card in cards.values())
    if len(units) > 1:
        cautions.append(f"the runs protect different things ({'; '.join(units)}), so that their ε cannot be compared")
    by_data: dict[str, list[str]] = {}
    for name, card in cards.items():
        by_data.setdefault(card.data.value, []).append(name)
    if len(by_data) > 1:
        cautions.append("the runs are on different data sets")
    if together := {data: names for data, names in by_data.items() if len(names) > 1}:
        which = "; ".join(f"{listed(names)} on {data}" for data, names in together.items())
        caution = "each ε is that of one run; on the same data they add up, as the ledger counts them"
        cautions.append(caution if len(by_data) == 1 else f"{caution} ({which})")
    if several := [name for name, card in cards.items() if _other_methods(card)]:
        cautions.append(
            f"more than one model was released by {listed(several)}: a score of the run's own method has the ε of the "
            "whole run beside it, one of another method the ε of that model alone; `privet report show` has the ε of "
            "each model"
        )
    epsilons = {name: up(card.privacy.guarantee.value.epsilon.upper) for name, card in cards.items()}
    if len(set(epsilons.values())) > 1:
        each = ", ".join(f"{name}: {epsilon}" for name, epsilon in epsilons.items())
        cautions.append(f"the ε of the runs differ ({each}), so that a better score may come from weaker privacy")
    if seeded := [name for name, card in cards.items() if is_tainted(card)]:
        cautions.append(f"the noise of {listed(seeded)} came from a seeded generator and protects nobody")
    return cautions
