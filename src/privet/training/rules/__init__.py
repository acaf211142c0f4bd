"""The rules: what each operation knows about its parameter's gradient, example by example. One file a kind.

A user's own: `attach(..., rules={**RULES, "MyFunctionBackward": Known(rule, frozenset({1}))})`.
"""

from __future__ import annotations

from privet.training.engine.arrival import Arrival, Rule
from privet.training.rules.table import RULES, STEM_IF_SHARED, Known

__all__ = ["RULES", "STEM_IF_SHARED", "Arrival", "Known", "Rule"]
