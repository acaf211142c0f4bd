"""The one table of what is proven: event × sampling × neighbors × accountant. An empty cell raises.

Each row says which leaves, under which sampling, for which neighbors, may be priced by which accountants. Rules live
beside their accountants; none of them is reached except through a cell of this table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from privet.accounting.accountant import Accountant
from privet.accounting.canonical import CountedEvent, canonical
from privet.core import (
    Approximate,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    IndependentBatches,
    Laplace,
    Leaf,
    Neighbours,
    NoisyMax,
    NotProven,
    Poisson,
    Pure,
    RandomizedResponse,
    Sampling,
    Selected,
    Shuffled,
    ShuffledEpoch,
    Trust,
    Unit,
    WithoutReplacement,
    WithReplacement,
)

__all__ = ["TABLE", "AccountantRow", "proven", "require", "require_all"]

_ADD, _ZERO, _REPLACE = Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT, Neighbours.REPLACE
_L1, _L2 = Neighbours.L1_BALL, Neighbours.L2_BALL
_PLD, _RENYI, _ZCDP, _GDP = Accountant.PLD, Accountant.RENYI, Accountant.ZCDP, Accountant.GDP
_BASIC, _ADVANCED = Accountant.BASIC, Accountant.ADVANCED
_PURE: tuple[type[Leaf], ...] = (Laplace, DiscreteLaplace, Exponential, NoisyMax, Pure)
_WHOLE: tuple[type[Leaf], ...] = (Gaussian, DiscreteGaussian, *_PURE)
_CLASSICAL = (_BASIC, _ADVANCED)
_CURVES = (_PLD, _RENYI, *_CLASSICAL)
_NO_GDP = (_PLD, _RENYI, _ZCDP, *_CLASSICAL)
_EVERY = (*_NO_GDP, _GDP)
_RECORDS = (_ADD, _ZERO, _REPLACE)
_LOCAL: tuple[type[Leaf], ...] = (RandomizedResponse, Pure)
"""What a report can do to its sender's answer by itself."""


@dataclass(frozen=True)
class AccountantRow:
    """Leaves × one sampling × neighbors → accountants, with the theorem that fills the cells."""

    leaves: tuple[type[Leaf], ...]
    sampling: type[Sampling] | None
    neighbours: tuple[Neighbours, ...]
    accountants: tuple[Accountant, ...]
    theorem: str


_NOT_SAMPLED = (
    AccountantRow((Gaussian,), None, (*_RECORDS, _L1, _L2), _EVERY, "Balle & Wang 2018"),
    AccountantRow((Laplace,), None, (*_RECORDS, _L1), _NO_GDP, "Dwork et al. 2006"),
    AccountantRow(
        (DiscreteGaussian, DiscreteLaplace, Exponential, NoisyMax, Pure),
        None,
        _RECORDS,
        _NO_GDP,
        "Canonne, Kamath & Steinke 2020; Bun & Steinke 2016; Durfee & Rogers 2019",
    ),
    AccountantRow((RandomizedResponse,), None, (_REPLACE,), _NO_GDP, "Kairouz, Bonawitz & Ramage 2016"),
    AccountantRow((Approximate,), None, _RECORDS, _CURVES, "Kairouz, Oh & Viswanath 2015"),
    AccountantRow((Concentrated,), None, _RECORDS, _NO_GDP, "Bun & Steinke 2016"),
    AccountantRow((Selected,), None, (*_RECORDS, _L1, _L2), (_RENYI,), "Papernot & Steinke 2022, Thm 2"),
    AccountantRow(
        (Shuffled,),
        None,
        (_REPLACE,),
        _CURVES,
        "Balle, Bell, Gascón & Nissim 2019, Lemma 5.3; Feldman, McMillan & Talwar 2021; proofs in laws/shuffled.py",
    ),
)
_POISSON = (
    AccountantRow((Gaussian, *_PURE), Poisson, (_ADD, _ZERO), _CURVES, "Zhu, Dong & Wang 2022, Thm 11"),
    AccountantRow(
        (DiscreteGaussian, Approximate), Poisson, (_ADD, _ZERO), (_PLD, *_CLASSICAL), "Zhu, Dong & Wang 2022, Thm 11"
    ),
    AccountantRow(
        (*_WHOLE, Approximate), Poisson, (_REPLACE,), (_PLD,), "Kahane 1985; Tchen 1980; proofs in laws/replaced.py"
    ),
    AccountantRow((*_WHOLE, Approximate), Poisson, (_REPLACE,), _CLASSICAL, "Balle, Barthe & Gaboardi 2018, Thm 2"),
)
_FIXED_SIZE = (
    AccountantRow(
        _WHOLE,
        WithoutReplacement,
        (_REPLACE, _ZERO),
        _CURVES,
        "Balle, Barthe & Gaboardi 2018, Thm 9; Wang, Balle & Kasiviswanathan 2019, Thm 9",
    ),
    AccountantRow((RandomizedResponse,), WithoutReplacement, (_REPLACE,), _CURVES, "the same two theorems"),
    AccountantRow(
        (Approximate,),
        WithoutReplacement,
        (_REPLACE, _ZERO),
        (_PLD, *_CLASSICAL),
        "Balle, Barthe & Gaboardi 2018, Thm 9",
    ),
    AccountantRow(
        (Gaussian,), WithReplacement, (_REPLACE, _ZERO), (_PLD, *_CLASSICAL), "Balle, Barthe & Gaboardi 2018, Thm 10"
    ),
)
_PASSES = (
    AccountantRow(
        (Gaussian,),
        ShuffledEpoch,
        (_ZERO, _REPLACE),
        _EVERY,
        "parallel composition: a row is in one batch, and the others do not move",
    ),
    AccountantRow(
        (Gaussian,),
        IndependentBatches,
        _RECORDS,
        _EVERY,
        "parallel composition: a row's batch does not depend on the other rows",
    ),
)
TABLE: tuple[AccountantRow, ...] = (*_NOT_SAMPLED, *_POISSON, *_FIXED_SIZE, *_PASSES)
"""Every proven cell."""


def proven(part: CountedEvent, unit: Unit) -> frozenset[Accountant]:
    """The accountants that may price this part for this unit."""
    return frozenset(accountant for row in _rows(part, unit) for accountant in row.accountants)


def require(part: CountedEvent, unit: Unit, accountant: Accountant | None = None) -> None:
    """Raise `NotProven`, in words, unless the cell is filled."""
    _trusted(part, unit)
    cells = proven(part, unit)
    if cells and (accountant is None or accountant in cells):
        return
    how = f" sampled by {type(part.sampling).__name__}" if part.sampling else ""
    which = f" with the {accountant.value} accountant" if accountant else ""
    advice = "no theorem is known to us" if not cells else f"use {', '.join(sorted(a.value for a in cells))}"
    if not cells and isinstance(part.sampling, ShuffledEpoch):
        advice = "adding a row moves every batch of a shuffled epoch; use Poisson sampling, or zero-out or replace"
    if part.sampling is None and (lacking := _no_curve(part, unit)) is not None:
        advice = f"it is priced from the Rényi curve of one run, and {lacking} has none"
    if isinstance(part.leaf, Shuffled) and (other := _unlike_a_report(part.leaf)) is not None:
        advice = f"only reports that are randomized responses or pure blocks are amplified, and not {other}"
    raise NotProven(f"{type(part.leaf).__name__}{how} for {unit.neighbours.value} neighbors{which}: {advice}")


def require_all(parts: Iterable[CountedEvent], unit: Unit, accountant: Accountant | None = None) -> None:
    """Raise `NotProven`, in words, unless the cell of every part is filled."""
    for part in parts:
        require(part, unit, accountant)


def _trusted(part: CountedEvent, unit: Unit) -> None:
    """Refuse events that do not protect against those whom the unit does not trust.

    A local guarantee is about each report by itself, so that nobody else's sampling, noise or shuffling counts. Under
    shuffled trust what holds by itself holds as well.
    """
    if unit.trust in (Trust.CENTRAL, Trust.DISTRIBUTED):
        return
    if part.sampling is None and isinstance(part.leaf, (*_LOCAL, Approximate)):
        return
    if part.sampling is None and unit.trust is Trust.SHUFFLED and isinstance(part.leaf, Shuffled):
        return
    what = type(part.leaf).__name__ + (f" sampled by {type(part.sampling).__name__}" if part.sampling else "")
    advice = "only a report's own randomized response or block counts"
    if unit.trust is Trust.SHUFFLED:
        advice += ", alone or as Shuffled"
    raise NotProven(f"{what} under {unit.trust.value} trust: {advice}; use central trust for a curator's noise")


def _rows(part: CountedEvent, unit: Unit) -> Iterator[AccountantRow]:
    kind = type(part.sampling) if part.sampling is not None else None
    if not _block_covers(part, unit.neighbours) or _no_curve(part, unit) is not None:
        return
    if isinstance(part.leaf, Shuffled) and _unlike_a_report(part.leaf) is not None:
        return
    for row in TABLE:
        if type(part.leaf) in row.leaves and kind is row.sampling and unit.neighbours in row.neighbours:
            yield row


def _no_curve(part: CountedEvent, unit: Unit) -> str | None:
    """What in one run of a selection has no Rényi curve for this unit, in words; None where nothing is missing."""
    for inner in canonical(part.leaf.event).parts if isinstance(part.leaf, Selected) else ():
        if _RENYI not in proven(inner, unit):
            how = f" sampled by {type(inner.sampling).__name__}" if inner.sampling else ""
            return f"{type(inner.leaf).__name__}{how}"
    return None


def _unlike_a_report(leaf: Shuffled) -> str | None:
    """What in one report is no ε-DP randomizer of its sender's answer, in words; None where all of it is."""
    parts = canonical(leaf.event).parts
    for part in parts:
        if part.sampling is not None or not isinstance(part.leaf, _LOCAL):
            return type(part.leaf).__name__ + (f" sampled by {type(part.sampling).__name__}" if part.sampling else "")
    return None if parts else "an empty one"


def _block_covers(part: CountedEvent, neighbours: Neighbours) -> bool:
    """A block proven for some neighbors says nothing about others, except that two steps make a replacement."""
    leaf = part.leaf
    if not isinstance(leaf, (Pure, Approximate, Concentrated)):
        return True
    if isinstance(part.sampling, Poisson) and leaf.neighbours is not _ADD:
        return False  # a batch with the row is compared with one without it, not with one where it is blank
    covered = {
        _ADD: (_ADD, _ZERO, _REPLACE),  # a blanked contribution is one that is not there
        _ZERO: (_ZERO, _REPLACE),
        _REPLACE: (_REPLACE,),
    }
    return neighbours in covered[leaf.neighbours]
