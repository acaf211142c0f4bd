"""From a part and a unit to the loss laws that bound it, above and below, for each direction of the neighbors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from privet.accounting.canonical import CountedEvent
from privet.accounting.conversions import group_privacy
from privet.accounting.laws import (
    Added,
    GaussianLoss,
    LaplaceLoss,
    Law,
    Mixture,
    Removed,
    ReplacedGaussian,
    ReplacedLaplace,
    Symmetric,
    block,
    crowd_below,
    discrete_gaussian,
    discrete_laplace,
    draws_of_one_row,
    randomized_response,
    replaced_discrete_gaussian,
    replaced_discrete_laplace,
    two_steps,
)
from privet.accounting.neighbor_distance import shift, stretch
from privet.accounting.pure import pure_epsilon
from privet.accounting.shuffling import attains, law_of, local_of
from privet.core import Neighbours, NotProven, Unit
from privet.core import event as events

__all__ = ["Bracket", "brackets"]


_HOPELESS = 1000.0
"""Above this many standard deviations of shift, ε is beyond 500,000 for every row that is sampled."""


_ENDLESS = 1e100
"""A loss above this is called infinite, so that no sum or difference of losses overflows."""


@dataclass(frozen=True)
class Bracket:
    """A law that dominates what was done, and one that it dominates; None where there is none."""

    above: Law | None
    below: Law | None


def _gaussian(leaf: Any, unit: Unit) -> Bracket:
    law = GaussianLoss(shift(unit) * unit.records / leaf.noise_multiplier)
    return Bracket(law, law)


def _apart(epsilon: float, delta: float, count: int) -> Law:
    """What dominates everything that is (ε, δ)-DP a step, over a walk of `count` steps."""
    halfway = two_steps(epsilon, delta, 1.0) if count == 2 else None
    return halfway or block(*group_privacy(epsilon, delta, count))


def _laplace(leaf: Any, unit: Unit) -> Bracket:
    moved = shift(unit) * unit.records
    exact = LaplaceLoss(leaf.noise_multiplier / moved)
    # for several coordinates only ε-DP is proven; one coordinate alone shows that it is not much less
    several = _apart(1 / leaf.noise_multiplier, 0.0, 2) if moved == 2 else _apart(moved / leaf.noise_multiplier, 0.0, 1)
    return Bracket(exact if leaf.dimension == 1 else several, exact)


def _discrete_laplace(leaf: Any, unit: Unit) -> Bracket:
    count = unit.records * int(shift(unit))
    exact = discrete_laplace(leaf.scale, leaf.bound * count)
    one = exact if leaf.dimension == 1 else None
    return Bracket(one or _apart(leaf.bound / leaf.scale, 0.0, count), exact)


def _discrete_gaussian(leaf: Any, unit: Unit) -> Bracket:
    moved = int(leaf.bound) * unit.records * int(shift(unit))
    exact = discrete_gaussian(leaf.sigma, moved) if moved else None
    return Bracket(exact if leaf.dimension == 1 else None, exact)


def _answer(leaf: Any, unit: Unit) -> Bracket:
    exact = randomized_response(leaf.epsilon, leaf.categories)
    # k records of one person are k answers at most, each of which may be any other
    return Bracket(exact, exact) if unit.records == 1 else Bracket(_apart(leaf.epsilon, 0.0, unit.records), None)


def _block(leaf: Any, unit: Unit) -> Bracket:
    """What is known by its ε (and δ) alone."""
    return Bracket(_apart(leaf.epsilon, _delta(leaf), stretch(leaf, unit)), None)


def _delta(leaf: events.Leaf) -> float:
    return leaf.delta if isinstance(leaf, events.Approximate) else 0.0


def _none(leaf: Any, unit: Unit) -> Bracket:
    return Bracket(None, None)


_LEAVES: dict[type[events.Leaf], Callable[[Any, Unit], Bracket]] = {
    events.Gaussian: _gaussian,
    events.Laplace: _laplace,
    events.DiscreteLaplace: _discrete_laplace,
    events.DiscreteGaussian: _discrete_gaussian,
    events.Exponential: _block,
    events.NoisyMax: _block,
    events.RandomizedResponse: _answer,
    events.Pure: _block,
    events.Approximate: _block,
    events.Concentrated: _none,
    events.Selected: _none,
}


def _replaced_gaussian(leaf: Any, rate: float) -> Bracket:
    if 1 / leaf.noise_multiplier > _HOPELESS:
        return Bracket(two_steps(0.0, 1.0, rate), None)
    law = ReplacedGaussian(1 / leaf.noise_multiplier, rate)
    return Bracket(law, law)


def _replaced_laplace(leaf: Any, rate: float) -> Bracket:
    exact = ReplacedLaplace(leaf.noise_multiplier, rate)
    return Bracket(exact if leaf.dimension == 1 else two_steps(1 / leaf.noise_multiplier, 0.0, rate), exact)


def _replaced_discrete_laplace(leaf: Any, rate: float) -> Bracket:
    exact = replaced_discrete_laplace(leaf.scale, leaf.bound, rate)
    one = exact if leaf.dimension == 1 else None
    return Bracket(one or two_steps(leaf.bound / leaf.scale, 0.0, rate), exact)


def _replaced_discrete_gaussian(leaf: Any, rate: float) -> Bracket:
    exact = replaced_discrete_gaussian(leaf.sigma, int(leaf.bound), rate) if leaf.bound >= 1 else None
    return Bracket(exact if leaf.dimension == 1 else None, exact)


def _replaced_block(leaf: Any, rate: float) -> Bracket:
    return Bracket(two_steps(leaf.epsilon, _delta(leaf), rate), None)


_REPLACED: dict[type[events.Leaf], Callable[[Any, float], Bracket]] = {
    events.Gaussian: _replaced_gaussian,
    events.Laplace: _replaced_laplace,
    events.DiscreteLaplace: _replaced_discrete_laplace,
    events.DiscreteGaussian: _replaced_discrete_gaussian,
    events.Exponential: _replaced_block,
    events.NoisyMax: _replaced_block,
    events.Pure: _replaced_block,
    events.Approximate: _replaced_block,
}


def brackets(part: CountedEvent, unit: Unit, tail: float) -> tuple[Bracket, Bracket]:
    """The laws of one run of a part: (the unit is removed, the unit is added); masses below `tail` may be cut to +∞."""
    if _gives_away(part.leaf, unit):
        # whoever is in the batch is known, and nobody else is touched: (0, P(the unit is drawn))-DP
        given = Bracket(block(0.0, _chance(part.sampling)), None)
        return given, given
    if isinstance(part.leaf, events.Shuffled):
        return _shuffled(part.leaf, unit, tail)
    if isinstance(part.sampling, (type(None), events.ShuffledEpoch, events.IndependentBatches)):
        plain = _LEAVES[type(part.leaf)](part.leaf, unit)  # symmetric; a pass uses a row once, so it is the leaf
        if part.sampling is not None and part.sampling.batches > 1:
            plain = Bracket(plain.above, None)  # where a row went may be hidden: how much that helps is not proven
        return plain, plain
    absent = Unit(neighbours=Neighbours.ADD_REMOVE)
    replace = Unit(neighbours=Neighbours.REPLACE)
    one = _below_one(part, absent)
    if isinstance(part.sampling, events.Poisson):
        rate = part.sampling.sample_rate
        if unit.neighbours is not Neighbours.REPLACE:
            return _poisson(_LEAVES[type(part.leaf)](part.leaf, absent), rate)
        replaced = _REPLACED[type(part.leaf)](part.leaf, rate)
        if replaced.above is not None:
            return replaced, replaced
        # Balle et al. 2018, Thm 2 with both terms bounded by the replace-one leaf
        return _fixed(_LEAVES[type(part.leaf)](part.leaf, replace).above, rate, one)
    if isinstance(part.sampling, events.WithoutReplacement):
        rate = part.sampling.batch_size / part.sampling.population
        if rate == 1:
            everyone = _LEAVES[type(part.leaf)](part.leaf, unit)
            return everyone, everyone
        return _fixed(_LEAVES[type(part.leaf)](part.leaf, replace).above, rate, one)
    if not isinstance(part.sampling, events.WithReplacement) or not isinstance(part.leaf, events.Gaussian):
        raise NotProven(f"{type(part.leaf).__name__} sampled by {type(part.sampling).__name__} has no pair here")
    chance, weights, rest = draws_of_one_row(part.sampling.draws, part.sampling.population, tail)
    laws = tuple(GaussianLoss(2 * (k + 1) / part.leaf.noise_multiplier) for k in range(len(weights)))
    return _fixed(Mixture(laws, weights, rest), chance, None)


def _shuffled(leaf: events.Shuffled, unit: Unit, tail: float) -> tuple[Bracket, Bracket]:
    """One replaced answer in a crowd; several of one person only where there is no crowd (else `group_privacy`)."""
    if unit.records > 1:
        alone = Bracket(_apart(pure_epsilon(leaf, replace(unit, records=1)), 0.0, unit.records), None)
        return alone, alone
    above, (epsilon, categories) = law_of(leaf, tail), local_of(leaf)
    known = crowd_below(epsilon, categories, leaf.reports) if attains(leaf) else None
    if known is None:
        return Bracket(above, None), Bracket(above, None)
    return Bracket(above, known[0]), Bracket(above, known[1])


def _gives_away(leaf: events.Leaf, unit: Unit) -> bool:
    """Whether there is so little noise that doubles cannot hold its losses."""
    if isinstance(leaf, (events.Gaussian, events.Concentrated, events.Selected)):
        return False  # a Gaussian has closed forms, and see `_sane`; the others have no laws
    if isinstance(leaf, events.DiscreteGaussian):
        return leaf.bound > _HOPELESS * leaf.sigma
    return (leaf.epsilon if isinstance(leaf, events.Approximate) else pure_epsilon(leaf, unit)) > _ENDLESS


def _chance(sampling: events.Sampling | None) -> float:
    """That a row is in a batch."""
    if isinstance(sampling, events.Poisson):
        return sampling.sample_rate
    if isinstance(sampling, events.WithoutReplacement):
        return sampling.batch_size / sampling.population * (1 + 1e-15)
    return 1.0


def _below_one(part: CountedEvent, absent: Unit) -> Bracket | None:
    """The leaf for a row that adds nothing against one that does: an instance of every kind of neighbors."""
    if isinstance(part.leaf, (events.RandomizedResponse, events.Approximate, events.Pure)):
        return None
    return _LEAVES[type(part.leaf)](part.leaf, absent)


def _poisson(leaf: Bracket, rate: float) -> tuple[Bracket, Bracket]:
    leaf = _sane(leaf)
    removed = Bracket(leaf.above and Removed(leaf.above, rate), leaf.below and Removed(leaf.below, rate))
    added = Bracket(leaf.above and Added(leaf.above, rate), leaf.below and Added(leaf.below, rate))
    return removed, added


def _sane(leaf: Bracket) -> Bracket:
    """A Gaussian with next to no noise gives a sampled row away: the loss is called infinite, and no grid is laid."""
    hopeless = isinstance(leaf.above, GaussianLoss) and leaf.above.mu > _HOPELESS
    return Bracket(block(0.0, 1.0), None) if hopeless else leaf


def _fixed(above: Law | None, rate: float, one: Bracket | None) -> tuple[Bracket, Bracket]:
    """Replace-one under sampling, from the replace-one leaf; below, the row is replaced by one that adds nothing."""
    above = _sane(Bracket(above, None)).above
    dominating = above and (Symmetric(Removed(above, rate)) if rate < 1 else above)
    if one is None or one.below is None:
        return Bracket(dominating, None), Bracket(dominating, None)
    removed, added = _poisson(one, rate) if rate < 1 else (one, one)
    return Bracket(dominating, removed.below), Bracket(dominating, added.below)
