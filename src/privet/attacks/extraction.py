"""Extraction: does a language model give away a secret that was in its text?

A canary is a sentence with a secret in it that nobody could guess, such as "my number is 2817". How likely the model
takes it to be, among all sentences that it could have been, says how much it remembers (Carlini et al. 2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import skewnorm

from privet.attacks.counting import Reals, checked_scores
from privet.attacks.outcome import ConfidenceInterval
from privet.core import InvalidInput, checked
from privet.ensemble import generator

__all__ = ["Exposure", "Scorer", "Secret", "Writer", "estimate_exposure", "exposure", "extraction_rate", "likeliest"]

Scorer = Callable[[Sequence[str]], Any]
"""From texts to their log-perplexities, −log₂ P(text) of each, in bits: any model's, whatever library it is of."""
Writer = Callable[[Sequence[str]], Sequence[str]]
"""From prefixes to how a model goes on from each."""

_TOGETHER = 8192
"""Texts that are scored at once."""
_MOST = 2_000_000
"""Candidates that are still tried one by one."""


@dataclass(frozen=True)
class Secret:
    """A sentence with a gap, and what may stand in the gap.

    >>> secret = Secret("my number is ", length=4)
    >>> secret.space, secret.text("2817"), secret.place("2817"), secret.texts(7, 8)
    (10000, 'my number is 2817', 2817, ['my number is 0007'])
    """

    before: str
    length: int
    alphabet: str = "0123456789"
    after: str = ""

    def __post_init__(self) -> None:
        checked.count("length", self.length)
        if len(self.alphabet) < 2 or len(set(self.alphabet)) < len(self.alphabet):
            raise InvalidInput("alphabet", "has one letter, or one twice", "name two letters or more, each once")

    @property
    def space(self) -> int:
        """How many things may stand in the gap."""
        return int(len(self.alphabet) ** self.length)

    def text(self, fill: str) -> str:
        """The sentence with something in the gap."""
        if len(fill) != self.length or not set(fill) <= set(self.alphabet):
            problem = f"is {len(fill)} letters, or has one that is not in the alphabet"
            raise InvalidInput("fill", problem, f"give {self.length} letters of {self.alphabet!r}")
        return self.before + fill + self.after

    def texts(self, start: int, stop: int) -> list[str]:
        """The sentences of these numbers, all of them being in the order of the alphabet."""
        return [self.text(self._fill(number)) for number in range(start, min(stop, self.space))]

    def place(self, fill: str) -> int:
        """The number of the sentence with this in the gap."""
        self.text(fill)
        number = 0
        for letter in fill:
            number = number * len(self.alphabet) + self.alphabet.index(letter)
        return number

    def drawn(self, count: int = 1, *, key: str = "privet") -> list[str]:
        """Fills drawn uniformly: a secret that is not drawn so has an exposure that means nothing."""
        drawn = generator(key, "secret", self.before)
        places = torch.randint(len(self.alphabet), (checked.count("count", count), self.length), generator=drawn)
        return ["".join(self.alphabet[place] for place in row) for row in places.tolist()]

    def _fill(self, number: int) -> str:
        letters = []
        for _ in range(self.length):
            number, place = divmod(number, len(self.alphabet))
            letters.append(self.alphabet[place])
        return "".join(reversed(letters))


@dataclass(frozen=True)
class Exposure:
    """How far ahead a secret is of all that it could have been.

    >>> Exposure(rank=1.0, space=1024, exact=True).bits
    10.0
    """

    rank: float
    """Its place among all of them, 1 being the likeliest; ties count as ahead of it."""
    space: int
    exact: bool
    """Whether all were tried; else the rank is extrapolated from some."""

    @property
    def bits(self) -> float:
        """log₂ space − log₂ rank: the guesses that the model saves, as a power of two."""
        return math.log2(self.space) - math.log2(self.rank)

    @property
    def chance(self) -> float | None:
        """The chance, at most, of such a rank or a better one for a secret that was drawn uniformly and never shown.

        The model then does not depend on the secret, so that its rank is uniform, ties apart, which make it worse:
        P[rank ≤ r] ≤ r/space, or P[bits ≥ b] ≤ 2^−b. None for a rank that was extrapolated: of it nothing is proven.
        """
        return self.rank / self.space if self.exact else None


def exposure(scorer: Scorer, secret: Secret, fill: str) -> Exposure:
    """The secret's exact rank: everything that may stand in the gap is scored.

    Args:
        scorer: the model's log-perplexities of texts.
        secret: the sentence.
        fill: what stood in the gap in the text that the model learned from.

    >>> def knows(texts: Sequence[str]) -> list[float]:
    ...     return [0.0 if text == "pin 42" else 1.0 + number for number, text in enumerate(texts)]
    >>> round(exposure(knows, Secret("pin ", length=2), "42").bits, 2)
    6.64
    """
    if secret.space > _MOST:
        problem = f"has {secret.space:,} possibilities, too many to try"
        raise InvalidInput("secret", problem, "use estimate_exposure, which tries some and extrapolates")
    place = secret.place(fill)
    starts = range(0, secret.space, _TOGETHER)
    scores = np.concatenate([_scored(scorer, secret.texts(start, start + _TOGETHER)) for start in starts])
    return Exposure(float(np.count_nonzero(scores <= scores[place])), secret.space, exact=True)


def estimate_exposure(
    scorer: Scorer, secret: Secret, fill: str, *, candidates: int = 5000, key: str = "privet"
) -> Exposure:
    """The secret's rank, for spaces that are too large to try: a skew-normal distribution is fitted to the
    log-perplexities of some candidates, and its part below the secret's is taken (Carlini et al. 2019, section 4.3).

    That the log-perplexities have such a distribution is an assumption; it is extrapolated far beyond what was seen,
    and no confidence is stated. The rank is never below 1.
    """
    checked.count("candidates", candidates, least=100)
    others = [each for each in secret.drawn(candidates, key=key) if each != fill]
    scores = _scored(scorer, [secret.text(each) for each in (fill, *others)])
    if not scores[1:].std():
        raise InvalidInput("scorer", "scores all candidates alike", "check that it looks at the gap")
    log_part = float(skewnorm.logcdf(scores[0], *skewnorm.fit(scores[1:])))
    rank = math.exp(min(math.log(secret.space), max(0.0, log_part + math.log(secret.space))))
    return Exposure(rank, secret.space, exact=False)


def likeliest(scorer: Scorer, secret: Secret, *, width: int = 20) -> list[str]:
    """What the model would put into the gap, the likeliest first: letter by letter, keeping the best `width` beginnings
    (beam search). The secret has come out when it is first."""
    checked.count("width", width)
    kept = [""]
    for place in range(secret.length):
        grown = [begun + letter for begun in kept for letter in secret.alphabet]
        after = secret.after if place + 1 == secret.length else ""
        scores = _scored(scorer, [secret.before + each + after for each in grown])
        kept = [grown[at] for at in np.argsort(scores, kind="stable")[:width]]
    return kept


def extraction_rate(
    writer: Writer, secret: Secret, fill: str, *, tries: int = 200, confidence: float = 0.95
) -> ConfidenceInterval:
    """How often the model, asked to go on from what comes before the gap, writes the secret.

    The interval is that of Clopper & Pearson 1934.
    """
    prefixes = [secret.before] * checked.count("tries", tries)
    texts = list(writer(prefixes))
    if len(texts) != tries:
        raise InvalidInput("writer", f"gives {len(texts)} texts for {tries} beginnings", "give one for each")
    return ConfidenceInterval.of_share(sum(text.startswith(fill) for text in texts), tries, confidence)


def _scored(scorer: Scorer, texts: list[str]) -> Reals:
    parts = [checked_scores("scorer", scorer(texts[at : at + _TOGETHER]), 1) for at in range(0, len(texts), _TOGETHER)]
    found = np.concatenate(parts)
    if len(found) != len(texts):
        raise InvalidInput("scorer", f"gives {len(found)} numbers for {len(texts)} texts", "give one for each")
    return found
