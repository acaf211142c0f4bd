"""Many small models trained together: PATE's teachers, shadow models for attacks, and sweeps; and a student."""

from __future__ import annotations

from privet.ensemble.estimators import Estimator
from privet.ensemble.features import RandomFeatures
from privet.ensemble.graph import NeighborGraph
from privet.ensemble.learner import Ensemble, EnsembleTask, Learner
from privet.ensemble.learner import labeled_rows as labeled_rows
from privet.ensemble.orders import most_informative, most_typical, most_uncertain, shuffled_order
from privet.ensemble.placement import InProcess, Placement, Processes, Ray
from privet.ensemble.ridge import KernelRidge, Ridge
from privet.ensemble.ridge import Kernels as Kernels
from privet.ensemble.ridge import RidgeModels as RidgeModels
from privet.ensemble.seeding import generator as generator
from privet.ensemble.seeding import initial_weights as initial_weights
from privet.ensemble.seeding import seed_of as seed_of
from privet.ensemble.shards import Shards, require_disjoint, shards
from privet.ensemble.stacked import NetworkTraining as NetworkTraining
from privet.ensemble.stacked import Stacked
from privet.ensemble.student import LabelPropagation, Student, StudentTraining, SupervisedStudent, VoteRegression
from privet.ensemble.train import train, train_one
from privet.ensemble.votes import vote_batches, votes

__all__ = [
    "Ensemble",
    "EnsembleTask",
    "Estimator",
    "InProcess",
    "KernelRidge",
    "LabelPropagation",
    "Learner",
    "NeighborGraph",
    "Placement",
    "Processes",
    "RandomFeatures",
    "Ray",
    "Ridge",
    "Shards",
    "Stacked",
    "Student",
    "StudentTraining",
    "SupervisedStudent",
    "VoteRegression",
    "most_informative",
    "most_typical",
    "most_uncertain",
    "require_disjoint",
    "shards",
    "shuffled_order",
    "train",
    "train_one",
    "vote_batches",
    "votes",
]
