"""What an accountant proves (`Guarantee`) and what an audit measured (`Evidence`)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from math import inf

from privet.core import checked
from privet.core.codec import Record
from privet.core.errors import InvalidInput
from privet.core.rendering import html_of
from privet.core.unit import Unit

__all__ = ["COMPUTATIONAL", "Evidence", "Guarantee", "Interval", "digits_up", "three_digits_down"]

COMPUTATIONAL = "computational"
"""The assumption that every guarantee resting on cryptography carries."""


@dataclass(frozen=True)
class Interval(Record):
    """Two proven ends of a number that is known to lie between them; `upper` may be infinite."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, _nonnegative_or_infinite(name, getattr(self, name)))
        if self.lower > self.upper:
            raise InvalidInput("lower", f"is {self.lower}, above upper = {self.upper}")

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper


@dataclass(frozen=True)
class Guarantee(Record):
    """(ε, δ)-differential privacy for a unit: ε lies in an interval, and the upper end is the promise.

    Printing gives the upper end, rounded up.

    >>> print(Guarantee(Interval(0.9, 1.0), 1e-5, Unit(), "pld"))
    (ε ≤ 1.000, δ = 1e-05) for one example, add/remove, central [pld]
    """

    epsilon: Interval
    delta: float
    unit: Unit
    accountant: str
    """The method that proved the upper end."""
    numeric_error: float = 0.0
    """How much of `upper` is discretization and rounding, at most (upper − lower where that is all)."""
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Interval):
            raise InvalidInput("epsilon", f"is a {type(self.epsilon).__name__}, where an Interval is wanted")
        if not isinstance(self.unit, Unit):
            raise InvalidInput("unit", f"is a {type(self.unit).__name__}, where a Unit is wanted")
        object.__setattr__(self, "delta", checked.share("delta", self.delta))
        checked.text("accountant", self.accountant)
        object.__setattr__(self, "numeric_error", _nonnegative_or_infinite("numeric_error", self.numeric_error))
        object.__setattr__(self, "assumptions", checked.texts("assumptions", self.assumptions))

    def __str__(self) -> str:
        upper = self.epsilon.upper
        shown = "∞" if upper == float("inf") else f"{_rounded_up(upper):.3f}"
        return f"(ε ≤ {shown}, δ = {digits_up(self.delta)}) for {self.unit} [{self.accountant}]"

    def _repr_html_(self) -> str:
        return html_of(self)


def _nonnegative_or_infinite(argument: str, value: float) -> float:
    return inf if value == inf else checked.nonnegative(argument, value)


def digits_up(value: float) -> str:
    """Format a value with six digits if they do not understate it, and with all digits otherwise.

    >>> digits_up(1e-5), digits_up(1.2345634e-5)
    ('1e-05', '1.2345634e-05')
    """
    short = f"{value:g}"
    return short if float(short) >= value else repr(value)


def three_digits_down(value: float) -> float:
    """Round a δ down to three digits: the other digits of a default δ tell nothing, and a smaller δ is safe.

    >>> three_digits_down(0.1 / 3000), three_digits_down(0.1 / 100_000)
    (3.33e-05, 1e-06)
    """
    return float(Context(3, ROUND_FLOOR).create_decimal(repr(value)))


def _rounded_up(value: float) -> float:
    rounded = round(value, 3)
    return rounded if rounded >= value else rounded + 0.001


@dataclass(frozen=True)
class Evidence(Record):
    """An empirical lower bound on ε, from an attack; it can refute a guarantee and never replaces one."""

    epsilon: float
    """ε is at least this much, with the stated confidence."""
    delta: float
    confidence: float
    attack: str
    trials: int
    unit: Unit = Unit()
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked.nonnegative("epsilon", self.epsilon))
        object.__setattr__(self, "delta", checked.share("delta", self.delta))
        object.__setattr__(self, "confidence", checked.share("confidence", self.confidence))
        checked.text("attack", self.attack)
        checked.count("trials", self.trials)
        if not isinstance(self.unit, Unit):
            raise InvalidInput("unit", f"is a {type(self.unit).__name__}, where a Unit is wanted")
        object.__setattr__(self, "assumptions", checked.texts("assumptions", self.assumptions))

    def refutes(self, guarantee: Guarantee) -> bool:
        """Return whether the lower bound exceeds the guarantee's ε.

        The two are comparable if they are for the same unit, the δ here is at least as large, and the evidence rests on
        no assumptions; otherwise nothing is refuted.

        Args:
            guarantee: The guarantee to test.
        """
        comparable = self.unit == guarantee.unit and self.delta >= guarantee.delta and not self.assumptions
        return comparable and self.epsilon > guarantee.epsilon.upper
