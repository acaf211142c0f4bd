"""Noise on vectors is priced in the norm that its proof asks for."""

from __future__ import annotations

import pytest

from privet import accounting
from privet.accounting import Accountant
from privet.accounting.conversions import zcdp_to_epsilon
from privet.mechanisms import GaussianMechanism, LaplaceMechanism
from privet.mechanisms.reach import Reach
from privet.mechanisms.sums import Norm, VectorSum


@pytest.mark.parametrize("dimension", [2, 9])
def test_laplace_noise_on_vectors_is_priced_by_their_l1_distance(dimension: int) -> None:
    """Fails when vectors clipped in L2 are priced by that clip: their L1 distance is up to √dimension times longer."""
    of = VectorSum(dimension, 1.0, Norm.L2)
    loss = accounting.epsilon(LaplaceMechanism(10.0, of).event, 0.0).epsilon
    assert loss.upper >= float(of.reach.distance("l1")) / 10.0


def test_gaussian_noise_on_vectors_is_priced_by_their_l2_distance() -> None:
    """Fails when a vector is priced by its largest coordinate where its length counts."""
    reach = Reach(l2=2.0, linf=1.5, dimension=4)
    for rho, mechanism in ((2.0 / 9, GaussianMechanism(3.0, reach)), (0.7, GaussianMechanism.for_rho(0.7, reach))):
        found = accounting.epsilon(mechanism.event, 1e-5, accountant=Accountant.ZCDP).epsilon.upper
        assert found >= zcdp_to_epsilon(rho, 1e-5) * (1 - 1e-3)
        assert mechanism.sigma >= 2.0 / (2 * rho) ** 0.5 * (1 - 1e-9)
