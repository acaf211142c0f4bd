"""How far one unit can move an answer, known before any data is read: what mechanisms are built for.

A `Reach` is the public half of a `Bounded`. Clippers have one, mechanisms are made for one, and a mechanism takes no
value that could move further. All bounds are distances between the answers of neighboring data sets, for the unit as
it is: a count moves by 1 when a row comes or goes and when it is replaced; a histogram moves by 1 in L1 when a row
comes or goes and by 2 when it is replaced.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

from privet.accounting import span
from privet.core import Bounded, InvalidInput, Neighbours, Unit, checked

__all__ = ["COUNT", "ForClipper", "ForReach", "HasReach", "Of", "Reach", "reach_of", "replaces", "steps_of"]

_NORMS = ("l0", "l1", "l2", "linf")
# Beyond these, steps of a grid would leave the range of float64.
_SMALLEST, _LARGEST = 2.0**-900, 2.0**900
_ADVICE = "make the mechanism for this clipper"


@dataclass(frozen=True)
class Reach:
    """Bounds on how far one unit moves a vector of numbers; those left out follow from the others.

    >>> Reach(linf=1.0, l0=3, dimension=10).l1
    3.0
    """

    unit: Unit = Unit()
    l0: float | None = None
    """How many coordinates move."""
    l1: float | None = None
    l2: float | None = None
    linf: float | None = None
    dimension: int = 1
    whole: bool = False
    """Whether all coordinates are whole numbers, whatever the data."""
    monotone: bool = False
    """Whether whoever comes moves no coordinate down, as for counts: selection then needs less noise.

    Nothing of the kind holds for someone who is replaced. The direction is part of it: two answers of which one rises
    and one falls are, together, not monotone.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.unit, Unit):
            raise InvalidInput("unit", f"is a {type(self.unit).__name__}, where a Unit is wanted")
        checked.count("dimension", self.dimension)
        if self.l1 is None and self.l2 is None and self.linf is None:
            raise InvalidInput("l1", "and all other distances are missing", "state how far one unit moves the answer")
        given = {name: getattr(self, name) for name in _NORMS}
        for name, bound in given.items():
            if bound is not None and not _SMALLEST <= checked.positive(name, bound) <= _LARGEST:
                raise InvalidInput(
                    name, f"is {bound}, which is outside of 2^-900 to 2^900", "use another unit of measure"
                )
        for name, bound in zip(_NORMS, _implied(self.dimension, given), strict=True):
            object.__setattr__(self, name, bound)
        if replaces(self.unit) and self.monotone:
            raise InvalidInput("monotone", "is true, and a replaced contribution may move answers both ways", "drop it")

    def of(self, value: Any) -> Bounded[Any]:
        """Return the value as one that one unit moves by no more than these bounds.

        Args:
            value: The private answer.
        """
        norms = {"l0": self.l0, "l1": self.l1, "l2": self.l2, "linf": self.linf}
        return Bounded(value, self.unit, **norms, whole=self.whole, monotone=self.monotone)

    def distance(self, norm: str) -> Fraction:
        """Return one of the bounds, exactly.

        Args:
            norm: One of "l0", "l1", "l2" and "linf".
        """
        return Fraction(float(getattr(self, norm)))

    @property
    def span(self) -> int:
        """By how much accountants multiply one contribution: 2 where it is replaced, times the unit's records."""
        return int(span(self.unit))

    def require(self, query: Bounded[Any]) -> None:
        """Refuse an answer that could move further than this, or otherwise; what is compared is public.

        Fractions are refused by what was made for whole answers: there the grid charges nothing for rounding, and each
        of several fractions may move by a step more than the distance says (see `grid`). An answer that might fall when
        someone comes is refused by what was made for those that cannot.

        Args:
            query: The answer.

        Raises:
            InvalidInput: The answer is not bounded, or not as this reach has it.
        """
        if not isinstance(query, Bounded):
            raise InvalidInput(
                "query", f"is a {type(query).__name__}, where a Bounded value is wanted", "clip it first"
            )
        if query.unit != self.unit:
            raise InvalidInput("query", f"is bounded for {query.unit}, and the mechanism made for {self.unit}")
        given = {name: getattr(query, name) for name in _NORMS}
        # Of what `of` made, the bounds that follow from these are not larger.
        if any(bound != getattr(self, name) for name, bound in given.items()):
            for name, bound in zip(_NORMS, _implied(self.dimension, given), strict=True):
                if bound > getattr(self, name):
                    problem = f"may move by {name} = {bound}, and the mechanism was made for {getattr(self, name)}"
                    raise InvalidInput("query", problem, _ADVICE)
        if self.whole and not query.whole:
            raise InvalidInput("query", "may hold fractions, and the mechanism was made for whole numbers", _ADVICE)
        if self.monotone and not query.monotone:
            problem = "may fall when someone comes, and the mechanism was made for answers that only rise"
            raise InvalidInput("query", problem, _ADVICE)


class HasReach(Protocol):
    """Clippers, for one."""

    @property
    def reach(self) -> Reach:
        """How far one unit can move what this makes."""
        ...


Of: TypeAlias = Reach | HasReach


def reach_of(of: Of) -> Reach:
    """Return the reach of a clipper, or the reach itself."""
    reach = of if isinstance(of, Reach) else getattr(of, "reach", None)
    if not isinstance(reach, Reach):
        raise InvalidInput("of", f"is a {type(of).__name__}", "give the clipper whose answers are to be released")
    return reach


class ForClipper:
    """A mechanism that is made for one clipper, its field `of`."""

    of: Of

    @property
    def reach(self) -> Reach:
        """How far one unit moves the answers that this mechanism takes."""
        return reach_of(self.of)


class ForReach(ForClipper):
    """A mechanism that needs to know no more of its clipper than the reach, which its field `of` becomes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", reach_of(self.of))


def replaces(unit: Unit) -> bool:
    """Return whether neighbors replace a contribution; ball neighbors are refused, as they say nothing about rows."""
    if unit.neighbours in (Neighbours.L1_BALL, Neighbours.L2_BALL):
        advice = "use add/remove, zero-out or replace"
        raise InvalidInput("unit", f"has {unit.neighbours.value} neighbors, which say nothing about rows", advice)
    return unit.neighbours is Neighbours.REPLACE


def steps_of(epsilon: float, unit: Unit) -> float:
    """Return the ε of one step that amounts to `epsilon` for the unit, rounded down."""
    count = int(span(unit))
    one = checked.positive("epsilon", epsilon) / count
    return one if Fraction(one) * count <= Fraction(float(epsilon)) else math.nextafter(one, 0.0)


def _implied(dimension: int, given: dict[str, float | None]) -> tuple[float, float, float, float]:
    """The least bounds that follow from those given, rounded up."""
    known = {name: math.inf if bound is None else float(bound) for name, bound in given.items()}
    l0, l1, l2, linf = min(known["l0"], float(dimension)), known["l1"], known["l2"], known["linf"]
    for _ in range(2):
        linf = min(linf, l2, l1)
        l2 = min(l2, l1, _product(_root(l0), linf))
        l1 = min(l1, _product(l0, linf), _product(_root(l0), l2))
    return l0, l1, l2, linf


def _product(first: float, second: float) -> float:
    product = first * second
    if math.isinf(product):
        return math.inf
    return product if Fraction(product) >= Fraction(first) * Fraction(second) else math.nextafter(product, math.inf)


def _root(value: float) -> float:
    root = math.sqrt(value)
    return root if Fraction(root) ** 2 >= Fraction(value) else math.nextafter(root, math.inf)


COUNT = Reach(linf=1.0, whole=True, monotone=True)
"""A count of rows, each of which comes or goes."""
