"""The one visible table of rules."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType

from privet.core import InvalidInput
from privet.training.engine.incoming_gradient import Rule
from privet.training.rules import convolution, elementwise, embedding, linear, lstm, normalization

__all__ = ["EXPRESSION_IF_SHARED", "RULES", "OperationRule", "checked_rules"]


@dataclass(frozen=True)
class OperationRule:
    """A rule, and for which inputs of the operation it holds."""

    rule: Rule
    slots: Set[int]
    """Places among the operation's inputs at which a parameter may stand, counted from 0."""

    def __post_init__(self) -> None:
        if not callable(self.rule):
            raise InvalidInput(
                "rule",
                f"is of the type {type(self.rule).__name__}",
                "give a function from an IncomingGradient to a Contribution",
            )
        if not isinstance(self.slots, Set) or not all(type(slot) is int for slot in self.slots):
            problem = f"is {self.slots!r}"
            raise InvalidInput("slots", problem, "give the set of the inputs that it holds for, such as {1}")
        object.__setattr__(self, "slots", frozenset(self.slots))


RULES: MappingProxyType[str, OperationRule] = MappingProxyType(
    {
        "AddBackward0": OperationRule(elementwise.add, {0, 1}),
        "AddmmBackward0": OperationRule(linear.addmm, {0, 2}),
        "BmmBackward0": OperationRule(linear.bmm, {1}),
        "ConvolutionBackward0": OperationRule(convolution.convolution, {1, 2}),
        "DivBackward0": OperationRule(elementwise.div, {0}),
        "EmbeddingBackward0": OperationRule(embedding.embedding, {0}),
        "ExpandBackward0": OperationRule(elementwise.expand, {0}),
        "IndexBackward0": OperationRule(embedding.index, {0}),
        "IndexSelectBackward0": OperationRule(embedding.index_select, {0}),
        "MkldnnRnnLayerBackward0": OperationRule(lstm.lstm_layer, {1, 2, 3, 4}),
        "MmBackward0": OperationRule(linear.mm, {1}),
        "MulBackward0": OperationRule(elementwise.mul, {0, 1}),
        "DotBackward0": OperationRule(linear.with_constant, {0, 1}),
        "VdotBackward0": OperationRule(linear.with_constant, {0, 1}),
        "MvBackward0": OperationRule(linear.with_constant, {0}),
        "NativeBatchNormBackward0": OperationRule(normalization.batch_norm, {1, 2}),
        "NativeGroupNormBackward0": OperationRule(normalization.group_norm, {1, 2}),
        "NativeLayerNormBackward0": OperationRule(normalization.layer_norm, {1, 2}),
        "PreluKernelBackward0": OperationRule(elementwise.prelu, {1}),
        "RepeatBackward0": OperationRule(elementwise.repeat, {0}),
        "SubBackward0": OperationRule(elementwise.sub, {0, 1}),
        "WhereBackward0": OperationRule(elementwise.where, {0, 1}),
    }
)
"""Autograd's name of an operation → its rule, for parameters of that operation."""

EXPRESSION_IF_SHARED: MappingProxyType[str, bool] = MappingProxyType(
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


def checked_rules(rules: Mapping[str, OperationRule] | None) -> Mapping[str, OperationRule]:
    """Return the rules of a run: the built-in ones, or those that the user gave, after checking them.

    Args:
        rules: Rules by autograd's name of the operation; None for the built-in ones.

    Raises:
        InvalidInput: A name or a rule has a wrong type.
    """
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
        if not isinstance(known, OperationRule):
            problem = f"has something of the type {type(known).__name__} for {name!r}"
            advice = (
                f"write {{{name!r}: Known(rule, {{1}})}}, where {{1}} are the inputs at which a parameter may stand"
            )
            raise InvalidInput("rules", problem, advice)
    return rules
