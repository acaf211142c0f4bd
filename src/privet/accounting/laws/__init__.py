"""Laws of privacy losses: one file for additive noise, one for finite laws, one for what sampling does to them."""

from __future__ import annotations

from privet.accounting.laws.atoms import Atoms, block, randomized_response
from privet.accounting.laws.law import Array, Law, law_delta, law_epsilon, reach
from privet.accounting.laws.noise import GaussianLoss, LaplaceLoss, discrete_gaussian, discrete_laplace
from privet.accounting.laws.replaced import (
    ReplacedGaussian,
    ReplacedLaplace,
    replaced_discrete_gaussian,
    replaced_discrete_laplace,
    two_steps,
)
from privet.accounting.laws.sampled import Added, Mixture, Removed, Symmetric, draws_of_one_row
from privet.accounting.laws.shuffled import crowd, crowd_below

__all__ = [
    "Added",
    "Array",
    "Atoms",
    "GaussianLoss",
    "LaplaceLoss",
    "Law",
    "Mixture",
    "Removed",
    "ReplacedGaussian",
    "ReplacedLaplace",
    "Symmetric",
    "block",
    "crowd",
    "crowd_below",
    "discrete_gaussian",
    "discrete_laplace",
    "draws_of_one_row",
    "law_delta",
    "law_epsilon",
    "randomized_response",
    "reach",
    "replaced_discrete_gaussian",
    "replaced_discrete_laplace",
    "two_steps",
]
