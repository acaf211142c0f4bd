"""The one visible table of rules."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType

from privet.core.errors import InvalidInput
from privet.training.engine.arrival import Rule
from privet.training.rules import convolution, elementwise, embedding, linear, lstm, normalization

__all__ = ["RULES", "STEM_IF_SHARED", "Known", "all_known"]


@dataclass(frozen=True)
class Known:
    """A rule, and for which inputs of the operation it holds."""

    rule: Rule
    slots: Set[int]
    """Places among the operation's inputs at which a parameter may stand, counted from 0."""

    def __post_init__(self) -> None:
        if not callable(self.rule):
            raise InvalidInput(
                "rule", f"is of the type {type(self.rule).__name__}", "give a function from an Arrival to a Part"
            )
        if not isinstance(self.slots, Set) or not all(type(slot) is int for slot in self.slots):
            problem = f"is {self.slots!r}"
            raise InvalidInput("slots", problem, "give the set of the inputs that it holds for, such as {1}")
        object.__setattr__(self, "slots", frozenset(self.slots))


def _known(rule: Rule, *slots: int) -> Known:
    return Known(rule, frozenset(slots))


RULES: MappingProxyType[str, Known] = MappingProxyType(
    {
        "AddBackward0": _known(elementwise.add, 0, 1),
        "AddmmBackward0": _known(linear.addmm, 0, 2),
        "BmmBackward0": _known(linear.bmm, 1),
        "ConvolutionBackward0": _known(convolution.convolution, 1, 2),
        "DivBackward0": _known(elementwise.div, 0),
        "EmbeddingBackward0": _known(embedding.embedding, 0),
        "ExpandBackward0": _known(elementwise.expand, 0),
        "IndexBackward0": _known(embedding.index, 0),
        "IndexSelectBackward0": _known(embedding.index_select, 0),
        "MkldnnRnnLayerBackward0": _known(lstm.lstm_layer, 1, 2, 3, 4),
        "MmBackward0": _known(linear.mm, 1),
        "MulBackward0": _known(elementwise.mul, 0, 1),
        "DotBackward0": _known(linear.with_constant, 0, 1),
        "VdotBackward0": _known(linear.with_constant, 0, 1),
        "MvBackward0": _known(linear.with_constant, 0),
        "NativeBatchNormBackward0": _known(normalization.batch_norm, 1, 2),
        "NativeGroupNormBackward0": _known(normalization.group_norm, 1, 2),
        "NativeLayerNormBackward0": _known(normalization.layer_norm, 1, 2),
        "PreluKernelBackward0": _known(elementwise.prelu, 1),
        "RepeatBackward0": _known(elementwise.repeat, 0),
        "SubBackward0": _known(elementwise.sub, 0, 1),
        "WhereBackward0": _known(elementwise.where, 0, 1),
    }
)
"""Autograd's name of an operation → its rule, for parameters of that operation."""

STEM_IF_SHARED: MappingProxyType[str, bool] = MappingProxyType(
    {
        "DotBackward0": True,
        "VdotBackward0": True,
        "EmbeddingBackward0": True,
        "ExpandBackward0": False,
        "IndexBackward0": True,
        "IndexSelectBackward0": True,
        "MvBackward0": True,
        "RepeatBackward0": False,
        "WhereBackward0": False,
    }
)
"""Operations whose output may be shared by all examples → whether they have an input that could be data."""


def all_known(rules: Mapping[str, Known] | None) -> Mapping[str, Known]:
    """The rules of a run: those of the table, unless a user gave others, which are checked."""
    if rules is None:
        return RULES
    if not isinstance(rules, Mapping):
        problem = f"is of the type {type(rules).__name__}"
        raise InvalidInput("rules", problem, 'give RULES | {"MyFunctionBackward": Known(rule, {1})}')
    for name, known in rules.items():
        if not isinstance(name, str):
            problem = f"has the key {name!r}, and rules belong to operations, not to layers"
            advice = "name the operation as autograd does: type(output.grad_fn).__name__, such as 'AddmmBackward0'"
            raise InvalidInput("rules", problem, advice)
        if not isinstance(known, Known):
            problem = f"has something of the type {type(known).__name__} for {name!r}"
            advice = (
                f"write {{{name!r}: Known(rule, {{1}})}}, where {{1}} are the inputs at which a parameter may stand"
            )
            raise InvalidInput("rules", problem, advice)
    return rules
