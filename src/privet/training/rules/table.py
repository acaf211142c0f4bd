"""The one visible table of rules."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from privet.training.engine.arrival import Rule
from privet.training.rules import convolution, elementwise, embedding, linear, lstm, normalization

__all__ = ["RULES", "STEM_IF_SHARED", "Known"]


@dataclass(frozen=True)
class Known:
    """A rule, and for which inputs of the operation it holds."""

    rule: Rule
    slots: frozenset[int]


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
