"""Local differential privacy: everybody randomizes their own answer, and nobody has to be trusted."""

from __future__ import annotations

from privet.local.duchi import Duchi
from privet.local.hadamard import HadamardResponse
from privet.local.hashing import LocalHashing
from privet.local.joint import SampledQuestions, SplitQuestions
from privet.local.mean import Mean, MeanMechanism, ReportSum
from privet.local.noisy import LocalGaussian, LocalLaplace
from privet.local.oracle import FrequencyOracle, PureOracle, Tally, collect_reports
from privet.local.piecewise import Piecewise
from privet.local.randomizer import ONE_REPORT
from privet.local.rappor import Rappor
from privet.local.response import GeneralizedRandomizedResponse
from privet.local.shares import Shares
from privet.local.table import MEANS, ORACLES, best_mean, best_oracle
from privet.local.unary import OptimizedUnary, SymmetricUnary

__all__ = [
    "MEANS",
    "ONE_REPORT",
    "ORACLES",
    "Duchi",
    "FrequencyOracle",
    "GeneralizedRandomizedResponse",
    "HadamardResponse",
    "LocalGaussian",
    "LocalHashing",
    "LocalLaplace",
    "Mean",
    "MeanMechanism",
    "OptimizedUnary",
    "Piecewise",
    "PureOracle",
    "Rappor",
    "ReportSum",
    "SampledQuestions",
    "Shares",
    "SplitQuestions",
    "SymmetricUnary",
    "Tally",
    "best_mean",
    "best_oracle",
    "collect_reports",
]
