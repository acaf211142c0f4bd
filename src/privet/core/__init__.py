"""The records that cross boundaries, the errors, and randomness. Imports nothing else of Privet's."""

from __future__ import annotations

from privet.core import checked as checked
from privet.core import event as event
from privet.core.atomic_write import write_atomically as write_atomically
from privet.core.bounded import Bounded
from privet.core.checked import count as count
from privet.core.codec import VERSION as VERSION
from privet.core.codec import Record as Record
from privet.core.codec import decode as decode
from privet.core.codec import encode as encode
from privet.core.codec import kinds_in as kinds_in
from privet.core.disclosure import Internal as Internal
from privet.core.disclosure import Public as Public
from privet.core.disclosure import Shareable as Shareable
from privet.core.disclosure import Typed as Typed
from privet.core.errors import BudgetExceeded, InvalidInput, LedgerError, MissingExtra, NotProven, PrivetError
from privet.core.errors import reason_of as reason_of
from privet.core.event import Approximate as Approximate
from privet.core.event import Composed as Composed
from privet.core.event import Concentrated as Concentrated
from privet.core.event import DiscreteGaussian as DiscreteGaussian
from privet.core.event import DiscreteLaplace as DiscreteLaplace
from privet.core.event import Event
from privet.core.event import Exponential as Exponential
from privet.core.event import Gaussian as Gaussian
from privet.core.event import IndependentBatches as IndependentBatches
from privet.core.event import Joint as Joint
from privet.core.event import Laplace as Laplace
from privet.core.event import Leaf as Leaf
from privet.core.event import NoisyMax as NoisyMax
from privet.core.event import NonPrivate as NonPrivate
from privet.core.event import Poisson as Poisson
from privet.core.event import Pure as Pure
from privet.core.event import RandomizedResponse as RandomizedResponse
from privet.core.event import Repeated as Repeated
from privet.core.event import Sampled as Sampled
from privet.core.event import Sampling as Sampling
from privet.core.event import Selected as Selected
from privet.core.event import Shuffled as Shuffled
from privet.core.event import ShuffledEpoch as ShuffledEpoch
from privet.core.event import WithoutReplacement as WithoutReplacement
from privet.core.event import WithReplacement as WithReplacement
from privet.core.guarantee import COMPUTATIONAL as COMPUTATIONAL
from privet.core.guarantee import Evidence, Guarantee, Interval
from privet.core.guarantee import digits_up as digits_up
from privet.core.guarantee import three_digits_down as three_digits_down
from privet.core.lazy_attributes import lazy_attributes as lazy_attributes
from privet.core.locking import locked as locked
from privet.core.randomness import Randomness
from privet.core.release import Draw, Release
from privet.core.release import Unpublishable as Unpublishable
from privet.core.rendering import html_of as html_of
from privet.core.rendering import register_renderers as register_renderers
from privet.core.scores import Canaries as Canaries
from privet.core.scores import Score as Score
from privet.core.scores import Trial as Trial
from privet.core.scores import number_or_none as number_or_none
from privet.core.trials import Trials as Trials
from privet.core.unit import Neighbours, Trust, Unit, Whose
from privet.core.words import counted as counted
from privet.core.words import listed as listed

__all__ = [
    "Bounded",
    "BudgetExceeded",
    "Draw",
    "Event",
    "Evidence",
    "Guarantee",
    "Interval",
    "InvalidInput",
    "LedgerError",
    "MissingExtra",
    "Neighbours",
    "NotProven",
    "PrivetError",
    "Randomness",
    "Release",
    "Trust",
    "Unit",
    "Whose",
]
