"""Whole numbers as people write them."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    _Type = click.ParamType[int]
else:
    _Type = click.ParamType  # older versions of click have no type in brackets

__all__ = ["WHOLE", "Whole"]

_MOST_DIGITS = 40
"""Far more than anything here can count; 1e999999999 must not be written out."""


class Whole(_Type):
    """A whole number: 1000, 1_000 or 1e3; what else is typed is answered with what to write."""

    name = "integer"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).strip()
        try:
            number = Decimal(text)
        except InvalidOperation:
            if "," in text and text.replace(",", "").isdecimal():
                self.fail(f"{text!r} has commas; write {text.replace(',', '')}", param, ctx)
            number = Decimal("nan")
        if not number.is_finite():
            self.fail(f"{text!r} is not a whole number; write one such as 1000, 1_000 or 1e3", param, ctx)
        if number.adjusted() >= _MOST_DIGITS:
            self.fail(f"{text!r} is more than can be counted here; write a smaller number", param, ctx)
        below = int(number.to_integral_value(ROUND_FLOOR))
        if number != below:
            self.fail(f"{text!r} is not a whole number; write {below} or {below + 1}", param, ctx)
        return below


WHOLE = Whole()
