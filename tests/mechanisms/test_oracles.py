"""What others say of the same noise: OpenDP, written down by `record_opendp`, and dp-accounting."""

from __future__ import annotations

import json
from typing import Any

import pytest

from privet import accounting
from privet.accounting import Accountant
from privet.accounting.zcdp import rho
from privet.core.event import DiscreteGaussian as DiscreteGaussianEvent
from privet.core.unit import Unit
from privet.mechanisms import (
    Categories,
    Count,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    Histogram,
    LaplaceMechanism,
    PermuteAndFlip,
    Reach,
    ReportNoisyMax,
)
from tests.mechanisms.examples import ADD, REPLACE
from tests.mechanisms.record_opendp import FILE

ROWS: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))["rows"]


def ours(row: dict[str, Any]) -> float:
    """What we say for the same noise and the same distance."""
    what, scale, moved = row["what"], row["scale"], row["moved"]
    if what == "laplace":
        event: Any = DiscreteLaplaceMechanism(scale, Reach(linf=moved, whole=True)).event
        return accounting.epsilon(event, 0.0).epsilon.upper
    if what == "laplace vector":
        event = DiscreteLaplaceMechanism(scale, Reach(l1=moved, dimension=2, whole=True)).event
        return accounting.epsilon(event, 0.0).epsilon.upper
    if what in ("gaussian", "gaussian vector"):
        dimension = 1 if what == "gaussian" else 2
        one = DiscreteGaussianMechanism(scale, Reach(l2=moved, dimension=dimension, whole=True)).event
        assert isinstance(one, DiscreteGaussianEvent)
        return rho(one, Unit())
    reach = Reach(linf=moved, dimension=3, whole=True, monotone="monotone" in what)
    ways = 1 if "monotone" in what else 2
    return PermuteAndFlip(ways * moved / scale, reach).event.epsilon


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['what']}-{row['scale']}-{row['moved']:.2g}")
def test_opendp_says_the_same(row: dict[str, Any]) -> None:
    """Catches a scale or a distance that means something else here, in any direction."""
    assert ours(row) == pytest.approx(row["cost"], rel=1e-9)


def test_choices_draw_with_the_scale_that_opendp_charges_for() -> None:
    """A rate of 1/scale a step is what `record_opendp` asked about: 2·moved/scale for any scores."""
    from privet.mechanisms.selection import Scores

    for row in (row for row in ROWS if row["what"].startswith("noisy max")):
        reach = Reach(linf=1.0, dimension=3, whole=True, monotone="monotone" in row["what"])
        for kind in (PermuteAndFlip, ReportNoisyMax):
            rate = Scores(reach).rate(kind(row["cost"], reach).epsilon)
            assert float(rate) == pytest.approx(1 / row["scale"], rel=1e-9)


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=str)
@pytest.mark.parametrize("delta", [1e-8, 1e-4])
def test_dp_accounting_says_the_same(unit: Unit, delta: float) -> None:
    """Calibrated counts cost what was asked, by somebody else's reckoning of the noise that is drawn, to 1 %."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    laplace = LaplaceMechanism.for_epsilon(1.0, Count(unit))
    moved = round(1.0 / laplace.grid.step)
    theirs = pld.from_discrete_laplace_mechanism(laplace.grid.step / laplace.scale, sensitivity=moved)
    assert theirs.get_epsilon_for_delta(0.0) == pytest.approx(1.0, abs=1e-3)
    for kind in (GaussianMechanism, DiscreteGaussianMechanism):
        if kind is DiscreteGaussianMechanism and unit is REPLACE:
            continue  # priced as a vector, by zCDP
        gaussian = kind.for_epsilon(1.0, delta, Count(unit))
        step = gaussian.grid.step
        theirs = pld.from_discrete_gaussian_mechanism(gaussian.sigma / step, sensitivity=round(1 / step))
        assert theirs.get_epsilon_for_delta(delta) == pytest.approx(1.0, rel=0.01)


def test_dp_accounting_says_the_same_of_histograms() -> None:
    """Of two counts that move when a row is replaced, composed by somebody else."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    of = Histogram(Categories(("a", "b", "c")), REPLACE)
    gaussian = GaussianMechanism.for_epsilon(1.0, 1e-6, of)
    one = pld.from_discrete_gaussian_mechanism(gaussian.sigma / gaussian.grid.step, sensitivity=2)
    assert one.self_compose(2).get_epsilon_for_delta(1e-6) == pytest.approx(1.0, rel=0.01)
    assert accounting.epsilon(gaussian.event, 1e-6, unit=REPLACE).accountant == Accountant.PLD.value
