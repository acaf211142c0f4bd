"""Private training of any PyTorch model, at nearly the price of ordinary training."""

from __future__ import annotations

from privet.training.batchnorm import replace_batchnorm
from privet.training.budget_charge import BudgetCharge
from privet.training.clipping import Adaptive, Automatic, Flat, PerLayer
from privet.training.explain import Explanation
from privet.training.fit import Progress, fit
from privet.training.journal import CheckpointError
from privet.training.loop import StepFunction as StepFunction
from privet.training.loop import train_steps as train_steps
from privet.training.noise import Noise
from privet.training.noise import fill as fill
from privet.training.notices import PrivateWarning, TrainingWarning
from privet.training.performance import Performance
from privet.training.plan import DPSGD, BatchSampling
from privet.training.recipe import DataKind as DataKind
from privet.training.recipe import Recipe as Recipe
from privet.training.recipe import recipe as recipe
from privet.training.rules import RULES
from privet.training.run import Run, RunError
from privet.training.sampling import UserRows
from privet.training.state import Attributes as Attributes
from privet.training.state import Weights as Weights
from privet.training.step import Step as Step
from privet.training.tuning import Best as Best
from privet.training.tuning import Standing as Standing
from privet.training.tuning import select as select

__all__ = [
    "DPSGD",
    "RULES",
    "Adaptive",
    "Automatic",
    "BatchSampling",
    "BudgetCharge",
    "CheckpointError",
    "Explanation",
    "Flat",
    "Noise",
    "PerLayer",
    "Performance",
    "PrivateWarning",
    "Progress",
    "Run",
    "RunError",
    "TrainingWarning",
    "UserRows",
    "fit",
    "replace_batchnorm",
]
