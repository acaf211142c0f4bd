"""Scoring of published rows for a person where cells may differ, and the decision whether the best row is claimed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privet.attacks.row_matching import Codes, MatchedColumn, RowGroups
from privet.core import InvalidInput, checked

__all__ = ["LinkageScoring", "best_rows", "determined_columns"]

_CELLS = 1 << 21
_CHANCE = 1e-6
_Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LinkageScoring:
    """Rule by which rows are scored, and one is claimed.

    A score is the logarithm of a likelihood ratio (Fellegi & Sunter 1969): a column that agrees adds
    log((1 − errors)/u), where u is the share of published rows that agree there with this person, so that rare values
    count for more; one that differs adds log(errors/(1 − u)); a missing cell adds nothing. The best row is claimed if
    it stands out from the second by `eccentricity` standard deviations of all rows' scores (Narayanan & Shmatikov
    2008), and if, by Bayes' rule, it is this person's with a probability of `sure`, where the person was in the
    published table with probability `inside` beforehand. The first test alone makes many false claims where columns are
    few: among many rows, some agree by chance in one column more than all others do.

    Columns are assumed to be independent. One that follows from another, as a town from its postcode, would be counted
    twice, and too much would be claimed: it is excluded (`determined_columns`). Weaker dependencies, and a column that
    follows from two others together, are not detected; claims are then right less often than `sure`.
    """

    errors: float = 0.05
    """How often a cell of a person's row differs from what is known about that person."""
    inside: float = 0.5
    sure: float = 0.9
    eccentricity: float = 1.5

    def __post_init__(self) -> None:
        for name in ("errors", "inside", "sure"):
            if not 0 < checked.finite(name, getattr(self, name)) < 1:
                raise InvalidInput(name, f"is {getattr(self, name):g}", "give a probability between 0 and 1")
        checked.nonnegative("eccentricity", self.eccentricity)


def best_rows(
    columns: Sequence[MatchedColumn],
    rows: RowGroups,
    people: RowGroups,
    scoring: LinkageScoring,
    progress: Callable[[int, int], None] = lambda done, total: None,
    but: Sequence[int] = (),
) -> Codes:
    """Return the row that is claimed for each group of people.

    All pairs of groups are scored. Rows and people that are not unique are never claimed, nor is one row for two
    people.

    Args:
        columns: The columns, matched between both tables.
        rows: Groups of equal published rows.
        people: Groups of people who are equal in these columns.
        scoring: The rule.
        progress: Called with the number of groups of people that were scored, and their total.
        but: Indices of columns that are not scored.

    Returns:
        [groups of people]: the index of the published row, or −1.
    """
    weights = {
        place: _weights(column, rows.codes[:, place], rows.sizes, scoring)
        for place, column in enumerate(columns)
        if place not in but
    }
    total, step = len(people.sizes), max(1, _CELLS // len(rows.sizes))
    claims = np.full(total, -1, dtype=np.int64)
    for start in range(0, total, step):
        some = people.codes[start : start + step]
        scores = np.zeros((len(some), len(rows.sizes)))
        for place, (gain, loss) in weights.items():
            mine, theirs = rows.codes[:, place], some[:, place]
            agree = columns[place].agreeing_with(theirs)[:, mine]
            scores += np.where(agree, gain[theirs, None], loss[theirs, None]) * (mine >= 0)
        claims[start : start + step] = _standing_out(scores, rows, scoring)
        progress(min(start + step, total), total)
    claims[people.sizes > 1] = -1
    taken, times = np.unique(claims, return_counts=True)
    claims[np.isin(claims, taken[times > 1])] = -1
    return claims


def _weights(column: MatchedColumn, groups: Codes, sizes: Codes, scoring: LinkageScoring) -> tuple[_Scores, _Scores]:
    """Return what agreement with a person of this value adds to a score, and what a difference does.

    Both are [values and one for missing].
    """
    rows = np.bincount(groups[groups >= 0], weights=sizes[groups >= 0], minlength=column.values)
    share = np.bincount(column.theirs, weights=rows[column.mine], minlength=column.others + 1) / max(rows.sum(), 1.0)
    with np.errstate(divide="ignore"):
        gain = np.where(share > 0, np.log(1 - scoring.errors) - np.log(share), 0.0)
        loss = np.where(share < 1, np.log(scoring.errors) - np.log(1 - share), 0.0)
    gain[-1] = loss[-1] = 0.0  # a person whose cell is missing
    return gain, loss


def determined_columns(rows: RowGroups) -> tuple[int, ...]:
    """Return the columns that are functions of another column in the published rows.

    A column is returned only if this is not due to chance: of rows that share a value of the one column with an earlier
    row, each would have the same value of the other one with the share of its most common value, at most, if both were
    independent; that all of them do must have a probability below 10⁻⁶. Of two columns that determine each other, the
    second one is returned.

    Args:
        rows: Groups of equal published rows.

    Returns:
        Indices of columns, in order.
    """
    left_out: list[int] = []
    columns = range(rows.codes.shape[1])
    for place in reversed(columns):
        if any(_follows(rows, place, other) for other in columns if other != place and other not in left_out):
            left_out.append(place)
    return tuple(sorted(left_out))


def _follows(rows: RowGroups, place: int, other: int) -> bool:
    both = (rows.codes[:, place] >= 0) & (rows.codes[:, other] >= 0)
    if not both.any():
        return False
    value, cause, sizes = rows.codes[both, place], rows.codes[both, other], rows.sizes[both]
    causes = len(np.unique(cause))
    if len(np.unique(np.stack([cause, value]), axis=1).T) > causes:
        return False
    commonest = float(np.bincount(value, weights=sizes).max() / sizes.sum())
    return bool(commonest < 1 and (sizes.sum() - causes) * np.log(commonest) < np.log(_CHANCE))


def _standing_out(scores: _Scores, rows: RowGroups, scoring: LinkageScoring) -> Codes:
    """Return the row that stands out in each line of scores, or −1."""
    sizes, total = rows.sizes, int(rows.sizes.sum())
    first = scores.argmax(axis=1)
    top = scores[np.arange(len(scores)), first]
    others = scores.copy()
    others[np.arange(len(scores)), first] = -np.inf
    second = others.max(axis=1)
    mean = scores @ sizes / total
    spread = np.sqrt(((scores - mean[:, None]) ** 2) @ sizes / total)
    outside = total * (1 - scoring.inside) / scoring.inside
    chance = 1 / (np.exp(scores - top[:, None]) @ sizes + outside * np.exp(-top))
    stands = (top - second > scoring.eccentricity * spread) & (chance >= scoring.sure) & (sizes[first] == 1)
    return np.where(stands, rows.first[first], -1)
