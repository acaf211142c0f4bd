"""Many small models trained at once: PATE's teachers, the attacks' shadow models, sweeps; and a student."""

from __future__ import annotations

from privet.ensemble.estimators import Estimator
from privet.ensemble.features import RandomFeatures
from privet.ensemble.graph import NeighborGraph
from privet.ensemble.learner import Ensemble, EnsembleTask, Learner
from privet.ensemble.orders import most_informative, most_typical, most_uncertain, shuffled
from privet.ensemble.ridge import KernelRidge, Ridge
from privet.ensemble.shards import Shards, apart, shards
from privet.ensemble.stacked import Stacked
from privet.ensemble.student import Propagated, Student, Supervised, Teaching, Weighed
from privet.ensemble.train import train, train_one
from privet.ensemble.votes import vote_stretches, votes
from privet.ensemble.where import Here, Processes, Ray, Where

__all__ = [
    "Ensemble",
    "EnsembleTask",
    "Estimator",
    "Here",
    "KernelRidge",
    "Learner",
    "NeighborGraph",
    "Processes",
    "Propagated",
    "RandomFeatures",
    "Ray",
    "Ridge",
    "Shards",
    "Stacked",
    "Student",
    "Supervised",
    "Teaching",
    "Weighed",
    "Where",
    "apart",
    "most_informative",
    "most_typical",
    "most_uncertain",
    "shards",
    "shuffled",
    "train",
    "train_one",
    "vote_stretches",
    "votes",
]
