"""Norms and weighted sums of per-example gradients, for every layer, option and way to compute them, against a loop.

In float64 the two agree to 1e-10; in float32 to 1e-5, or as well as the loop in float32 agrees with itself in float64,
within a factor of 4. Whatever cannot be exact must be refused, so that there is no third outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import InvalidInput
from privet.training.engine import calls
from privet.training.engine.contributions import Contribution, Dense, Outer
from privet.training.native import loops
from privet.training.rules import convolution
from privet.training.rules.convolution import ConvolutionFactors
from privet.training.rules.kernels import METHODS
from privet.training.rules.tuning import Way
from tests.training.composed import CASES
from tests.training.models import Case, described, filled, normal, waves
from tests.training.reference import Tapped, assert_exact, reference, sums

# torch's own remarks on layers that it runs in a slower way.
pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'", "ignore:LSTM with projections")
DTYPES = {"float64": torch.float64, "float32": torch.float32}
CONVOLUTIONS = [case for case in CASES if case.name.startswith(("conv", "transposed")) or "frames" in case.name]
GROUPED = ("groups", "depthwise")
FACTORS = torch.tensor([0.9, 0.1, 1.0, 0.0, 0.4], dtype=torch.float64)


def close(found: Tensor, case: Case, of: Callable[[Tensor], Tensor], name: str, dtype: torch.dtype) -> None:
    """Whether something computed of a parameter's gradients is what the loop gives."""
    exact = of(reference(case, torch.float64)[name])
    size = exact.abs().max()
    if dtype == torch.float64:
        # The floor is for gradients that are zero but for rounding, of which a ghost norm sees the square root.
        assert float((found - exact).abs().max()) <= 1e-10 * float(size) + 1e-14, name
    else:
        own = (of(reference(case, torch.float32)[name]) - exact).abs().max()
        assert float((found - exact).abs().max()) <= max(1e-5 * float(size), 4 * float(own), 1e-12), name


def compare(case: Case, dtype: torch.dtype, tapped: Tapped) -> None:
    parts = tapped.parts(case.loss, case.rows(dtype))
    for name, parameter in tapped.parameters.items():
        part = parts[name]
        if part is None:
            assert not bool(reference(case, torch.float64)[name].any()), name
            continue
        squares = part.squares().value
        assert not squares.requires_grad, "a part keeps a graph alive"
        norms = squares.clamp(min=0).sqrt().double()
        close(norms, case, lambda rows: rows.norm(dim=1), name, dtype)
        close(sums(part, parameter, FACTORS), case, lambda rows: FACTORS @ rows, name, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_chosen_way(case: Case, dtype: str) -> None:
    """What a user gets. Catches a rule that forgets an option of its layer, and any error of layout."""
    compare(case, DTYPES[dtype], Tapped(case.model(DTYPES[dtype])))


def kept(self: Contribution) -> Contribution:
    return self


def written_out(self: Contribution) -> Contribution:
    return Dense(self.dense())


@pytest.mark.parametrize("settle", [kept, written_out])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_factors_and_written_out(
    case: Case, settle: Callable[[Contribution], Contribution], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both forms of every product and convolution, whichever would be chosen. Catches a wrong ghost norm, and a cross
    term that is forgotten where a parameter is used twice.
    """
    monkeypatch.setattr(Outer, "settle", settle)
    monkeypatch.setattr(ConvolutionFactors, "settle", settle)
    for dtype in DTYPES.values():
        compare(case, dtype, Tapped(case.model(dtype)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_compiled_loops(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user without a compiler gets: the same, from torch alone. Catches code that only the loops' users test."""
    monkeypatch.setattr(loops, "_kernels", None)
    monkeypatch.setattr(Outer, "settle", kept)
    compare(case, torch.float32, Tapped(case.model(torch.float32)))


def test_every_form_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a table of models that no longer leads to one of the forms that a gradient is kept in."""
    monkeypatch.setattr(Outer, "settle", kept)
    monkeypatch.setattr(ConvolutionFactors, "settle", kept)
    reached: set[str] = set()
    for case in CASES:
        parts = Tapped(case.model()).parts(case.loss, case.rows())
        reached |= {type(part).__name__ for part in parts.values() if part is not None}
    assert reached == {"ConvolutionFactors", "Dense", "Lookup", "Mixed", "Outer"}


WAYS = {
    f"{method.__name__}, {'kept' if keep else 'twice'}": Way(method, keep)
    for method in METHODS
    for keep in (True, False)
}
PLACES = Way(METHODS[0], keep=False, by_places=True)


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_every_way_to_convolve(case: Case, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which way is quickest depends on the machine, so each must be right. Catches one that forgets an option."""
    monkeypatch.setattr(convolution, "way", lambda *_: way)
    for dtype in DTYPES.values():
        compare(case, dtype, Tapped(case.model(dtype)))


@pytest.mark.parametrize("case", [case for case in CONVOLUTIONS if not any(map(case.name.count, GROUPED))], ids=str)
def test_norms_by_places(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ghost norm of a convolution, which is for one group alone."""
    monkeypatch.setattr(convolution, "way", lambda *_: PLACES)
    for dtype in DTYPES.values():
        compare(case, dtype, Tapped(case.model(dtype)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_any_rule(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every module through `torch.func`, or refused. Catches a fallback that is wrong behind the rules."""
    monkeypatch.setattr(calls, "_COVERED_EXACTLY", frozenset())
    for dtype in DTYPES.values():
        tapped = Tapped(case.model(dtype), rules={})
        try:
            compare(case, dtype, tapped)
        except InvalidInput:
            return


# --- Modules without a rule, in the ways that modules are used -------------------------------------------------------


def power(m: Any, x: Tensor) -> Tensor:
    """Generalised-mean pooling: a learned exponent has no rule of its own."""
    return (x.abs() + 0.1).pow(m.p)


class Power(nn.Module):
    """The same as a module."""

    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor, mixing: Tensor | None = None) -> Tensor:
        return power(self, x) * 2 if mixing is None else power(self, x) @ mixing


def escaping(m: Any, x: Tensor) -> Tensor:
    m.features = power(m, x)
    out: Tensor = m.l(m.features)
    return out


def paired(m: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    features = power(m, x)
    return m.l(features), features


def with_features(model: Any, x: Tensor) -> Tensor:
    total: Tensor = waves(model, x) + model.features.sin().sum(1)
    return total


def of_both(model: nn.Module, x: Tensor) -> Tensor:
    first, second = model(x)
    total: Tensor = first.sin().sum(1) + second.cos().sum(1)
    return total


line = partial(nn.Linear, 4, 4)
exponent = partial(nn.Parameter, torch.zeros(1))
WITHOUT_RULE: dict[str, tuple[Callable[[], nn.Module], Callable[..., Tensor]]] = {
    "an exponent": (described(lambda m, x: m.l(power(m, x)), p=exponent, l=line), waves),
    "an exponent without axes": (
        described(lambda m, x: power(m, m.l(x)), p=lambda: nn.Parameter(torch.tensor(0.0)), l=line),
        waves,
    ),
    "also used where there is a rule": (described(lambda m, x: m.l(power(m, x)) * m.p, p=exponent, l=line), waves),
    "called twice": (described(lambda m, x: m.g(m.g(m.l(x)).tanh()), g=Power, l=line), waves),
    "output changed in place": (described(lambda m, x: m.l(m.g(m.l(x)).add_(1.0)), g=Power, l=line), waves),
    "a second output that feeds the first": (
        described(lambda m, x: (m.l(power(m, x)), power(m, x)), p=exponent, l=line),
        waves,
    ),
    "two outputs, one made of the other": (
        described(paired, p=exponent, l=line),
        waves,
    ),
    "two outputs, both used": (
        described(paired, p=exponent, l=line),
        of_both,
    ),
    "a tensor that is kept on the module": (described(escaping, p=exponent, l=line), with_features),
    "a constant as long as the batch": (
        described(lambda m, x: m.g(m.l(x)[:, :4], torch.eye(4, dtype=x.dtype) + 1), g=Power, l=line),
        waves,
    ),
    "time first": (
        described(lambda m, x: m.g(m.l(x).unflatten(1, (2, 2)).transpose(0, 1)).transpose(0, 1), g=Power, l=line),
        waves,
    ),
    "random inside": (described(lambda m, x: F.dropout(power(m, m.l(x))), p=exponent, l=line), waves),
    "coupled inside": (described(lambda m, x: power(m, x) - power(m, x).mean(0), p=exponent, l=line), waves),
    "weakly coupled inside": (
        described(lambda m, x: power(m, x) - 1e-4 * power(m, x).mean(0), p=exponent, l=line),
        waves,
    ),
}


@pytest.mark.parametrize("name", WITHOUT_RULE)
def test_modules_without_a_rule(name: str) -> None:
    """Exact or refused in plain words. Catches a call that is taken for all there is between its inputs and its first
    output: gradients that come in elsewhere would be lost or counted twice.
    """
    build, loss = WITHOUT_RULE[name]
    for examples in (4, 5):
        with suppress(InvalidInput):
            assert_exact(Tapped(filled(build()).double()), loss, (normal(examples, 4),))
