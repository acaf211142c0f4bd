"""Runs on the disk: the folder of one, and several side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from privet.core.atomic_write import write_atomically
from privet.core.disclosure import Internal, Public, Shareable, Typed
from privet.core.errors import InvalidInput
from privet.core.guarantee import digits_up
from privet.core.scores import Score, Trial
from privet.report.card_json import from_json, to_json
from privet.report.curves import curves_of
from privet.report.figures.accuracy import accuracy_by_epsilon
from privet.report.figures.teachers import accuracy_by_teachers
from privet.report.frame import bullets, drawn, escaped, framed, table
from privet.report.origin import INTERVALS, origin, rounded, short_interval
from privet.report.ranking import verdicts_on
from privet.report.repriced import require_priced
from privet.report.tables_file import read_tables
from privet.report.training_card import TrainingCard, is_tainted, shareable
from privet.report.training_page import internal_page, report_page
from privet.report.words import listed, protected, up
from privet.report.write import MARK

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
    "require_ours",
    "trials_of",
    "write_internal",
    "write_run",
]

CARD, REPORT = "card.json", "report.html"
INTERNAL_CARD, INTERNAL_PAGE = "internal.json", "internal.html"
_HEAD = ("run", "data", "method", "ε at most", "δ", "score", "value", "interval", "on", "origin")


def require_folder(folder: Path, argument: str = "out") -> None:
    """Raise now, before the work, where a run could not be written or another would be lost; makes the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InvalidInput(argument, f"is {str(folder)!r}, which cannot be made: {reason}", "name another") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidInput(argument, f"is {str(folder)!r}, which cannot be written", "choose another folder")
    if (folder / CARD).exists():
        raise InvalidInput(argument, f"is {str(folder)!r}, which holds a run already", "name another folder")


def write_run(
    folder: Path, card: TrainingCard, *, progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[Path, ...]:
    """Write `card.json` and `report.html`, which may be shared, and `internal.json` and `internal.html`, for their
    owner's eyes (mode 600); the paths of all four. What is internal reaches neither of the first two."""
    curves = curves_of(card.privacy, progress=progress, whole=False)
    shared = shareable(card)
    texts = {
        REPORT: report_page(shared, curves),
        INTERNAL_PAGE: internal_page(card, curves, read_tables(folder)),
        INTERNAL_CARD: to_json(card, internal=True),
        CARD: to_json(shared),
    }
    for name in (REPORT, INTERNAL_PAGE):
        require_ours(folder / name)
    for name, text in texts.items():
        write_atomically(folder / name, text, "out", private=name in (INTERNAL_CARD, INTERNAL_PAGE))
    return tuple(folder / name for name in texts)


def write_internal(
    folder: Path, card: TrainingCard, *, progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[Path, ...]:
    """Write `internal.json` and `internal.html` anew, for their owner's eyes; what may be shared stays as it is."""
    curves = curves_of(card.privacy, progress=progress, whole=False)
    texts = {
        INTERNAL_PAGE: internal_page(card, curves, read_tables(folder)),
        INTERNAL_CARD: to_json(card, internal=True),
    }
    require_ours(folder / INTERNAL_PAGE)
    for name, text in texts.items():
        write_atomically(folder / name, text, "run", private=True)
    return tuple(folder / name for name in texts)


def read_card(folder: Path, *, internal: bool = False) -> TrainingCard:
    """The card of a run's folder as it stands there, whatever it claims: see `load`."""
    path = folder / (INTERNAL_CARD if internal else CARD)
    try:
        return from_json(path.read_text(encoding="utf-8"), internal=internal)
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "unknown reason").lower() if isinstance(error, OSError) else "it is not text"
        problem = f"is {str(folder)!r}, of which {path.name} cannot be read: {reason}"
        raise InvalidInput("run", problem, "name a folder that `privet train` wrote") from None
    except InvalidInput as error:
        raise _refused(folder, path.name, error) from None


def load(folder: Path, *, internal: bool = False) -> TrainingCard:
    """The card of a run's folder: what may be shared of it, or with `internal` everything.

    It is priced again, and refused if it claims less than its own events cost.
    """
    card = read_card(folder, internal=internal)
    try:
        require_priced(card)
    except InvalidInput as error:
        raise _refused(folder, INTERNAL_CARD if internal else CARD, error) from None
    return card


def _refused(folder: Path, name: str, error: InvalidInput) -> InvalidInput:
    """The same with the run's name, for there may be several."""
    problem = f"is {str(folder)!r}, of which {name} cannot be used: {error.argument} {error.problem}"
    return InvalidInput("run", problem, error.advice)


def trials_of(name: str, card: TrainingCard) -> tuple[Typed[Trial], ...]:
    """A run's scores as trials, for another card's `stored`; each stays what it is: public, paid for or internal."""
    guarantee, method = card.privacy.guarantee.value, card.method.value
    teachers = None if card.teachers is None else card.teachers.value

    def trial(score: Score) -> Trial:
        return Trial(name, method, guarantee.epsilon.upper, guarantee.delta, score, teachers)

    found: list[Typed[Trial]] = []
    for score in card.scores:
        if isinstance(score, Internal):
            found.append(Internal(trial(score.value)))
        elif isinstance(score, Public):
            found.append(Public(trial(score.value)))
        else:
            found.append(score.map(trial))
    return tuple(found)


@dataclass(frozen=True)
class Comparison:
    """Several runs as one table, and what to beware of in comparing them."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    cautions: tuple[str, ...]
    trials: tuple[Typed[Trial], ...]
    verdicts: tuple[str, ...] = ()
    """For each measure that several runs on one data set have: which is best, or that the intervals do not tell."""


def compare(cards: Mapping[str, TrainingCard]) -> Comparison:
    """Return runs by name, side by side, with a line for each score that may be shared; a run without one has a line.

    Scores of the run's own method stand beside the ε of the whole run, and those of methods that were compared within
    it beside the ε of their own model, as in `show`.
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
            trials.append(_renamed(each, name))
    return Comparison(_HEAD, tuple(rows), tuple(_cautions(shared)), tuple(trials), tuple(_verdicts(shared)))


def _other_methods(card: TrainingCard) -> list[Shareable[Trial]]:
    """Return the trials, of those that may be shared, of methods that a run was compared with."""
    return [each for each in card.compared if not isinstance(each, Internal) and each.value.method != card.method.value]


def _renamed(trial: Shareable[Trial], name: str) -> Shareable[Trial]:
    """Return a trial under the name of its run; it stays public, or the release that it is."""
    if isinstance(trial, Public):
        return Public(replace(trial.value, run=name))
    return trial.map(lambda known: replace(known, run=name))


def _score_cells(score: Score, source: str) -> tuple[str, ...]:
    return score.name, rounded(score.value, score.share), short_interval(score), score.on, source


def compare_page(cards: Mapping[str, TrainingCard]) -> str:
    """The comparison as a page for sharing, with the scores against ε."""
    found = compare(cards)
    figures = (*accuracy_by_epsilon(found.trials), *accuracy_by_teachers(found.trials))
    body = [
        "<main>",
        '<header><p class="kind">Runs side by side</p><h1>Each with its own guarantee</h1>',
        *(f'<p class="warning"><strong>Beware:</strong> {escaped(text)}.</p>' for text in found.cautions),
        "</header>",
        '<div class="wide"><section>',
        table(f"All runs. {INTERVALS}", found.head, found.rows),
        bullets(tuple(f"{verdict}." for verdict in found.verdicts)) if found.verdicts else "",
        "</section></div>",
        '<section class="wide" aria-label="Figures">',
        *map(drawn, figures),
        "</section>",
        "</main>",
    ]
    footer = "Made by Privet. All of this page is known without the data, or was paid for."
    return framed("Runs side by side", body, figures, footer=footer, styles=("page.css", "training.css"))


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
    found = []
    units = dict.fromkeys(protected(card.privacy.guarantee.value.unit) for card in cards.values())
    if len(units) > 1:
        found.append(f"the runs protect different things ({'; '.join(units)}), so that their ε cannot be compared")
    by_data: dict[str, list[str]] = {}
    for name, card in cards.items():
        by_data.setdefault(card.data.value, []).append(name)
    if len(by_data) > 1:
        found.append("the runs are on different data sets")
    if together := {data: names for data, names in by_data.items() if len(names) > 1}:
        which = "; ".join(f"{listed(names)} on {data}" for data, names in together.items())
        said = "each ε is that of one run; on the same data they add up, as the ledger counts them"
        found.append(said if len(by_data) == 1 else f"{said} ({which})")
    if several := [name for name, card in cards.items() if _other_methods(card)]:
        found.append(
            f"more than one model was released by {listed(several)}: a score of the run's own method has the ε of the "
            "whole run beside it, one of another method the ε of that model alone; `privet report show` has the ε of "
            "each model"
        )
    epsilons = {name: up(card.privacy.guarantee.value.epsilon.upper) for name, card in cards.items()}
    if len(set(epsilons.values())) > 1:
        each = ", ".join(f"{name}: {epsilon}" for name, epsilon in epsilons.items())
        found.append(f"the ε of the runs differ ({each}), so that a better score may come from weaker privacy")
    if seeded := [name for name, card in cards.items() if is_tainted(card)]:
        found.append(f"the noise of {listed(seeded)} came from a seeded generator and protects nobody")
    return found


def require_ours(path: Path) -> None:
    """Raise where a page would be written over a file that is not one of ours."""
    if not path.exists():
        return
    with path.open("rb") as file:
        ours = MARK.encode() in file.read(2000)
    if not ours:
        problem = f"holds {path.name!r}, which is not a page of Privet's"
        raise InvalidInput("out", problem, "name another folder, so that nothing is lost")
