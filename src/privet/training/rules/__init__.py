"""The rules: what each operation knows about its parameter's gradient, example by example. One file a kind.

A user's own: `attach(..., rules=RULES | {"MyFunctionBackward": Known(rule, {1})})`. A rule gets an `Arrival` and gives
a `Part`: `Dense` (the gradients themselves), `Outer` (factors of a product) or `Lookup` (rows of a table).
"""

from __future__ import annotations

from privet.training.engine.arrival import Arrival, Rule
from privet.training.engine.parts import Dense, Lookup, Outer, Part
from privet.training.rules.table import RULES, STEM_IF_SHARED, Known, all_known

__all__ = [
    "RULES",
    "STEM_IF_SHARED",
    "Arrival",
    "Dense",
    "Known",
    "Lookup",
    "Outer",
    "Part",
    "Rule",
    "all_known",
]
