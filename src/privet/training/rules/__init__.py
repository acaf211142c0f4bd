"""The rules: what each operation knows about its parameter's gradient, example by example. One file a kind.

Users add their own: `attach(..., rules=RULES | {"MyFunctionBackward": OperationRule(rule, {1})})`. A rule takes an
`IncomingGradient` and returns a `Contribution`: `Dense` (the gradients themselves), `Outer` (factors of a product) or
`Lookup` (rows of a table).
"""

from __future__ import annotations

from privet.training.engine.contributions import Contribution, Dense, Lookup, Outer
from privet.training.engine.incoming_gradient import IncomingGradient, Rule
from privet.training.rules.table import EXPRESSION_IF_SHARED, RULES, OperationRule, checked_rules

__all__ = [
    "EXPRESSION_IF_SHARED",
    "RULES",
    "Contribution",
    "Dense",
    "IncomingGradient",
    "Lookup",
    "OperationRule",
    "Outer",
    "Rule",
    "checked_rules",
]
