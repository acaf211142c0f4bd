"""Extraction: does a language model reveal a secret that was in its training text?

A canary is a sentence with a random secret in it, such as "my number is 2817". How likely the model considers it,
compared with all other sentences of the same form, measures how much the model memorized (Carlini et al. 2019).
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
"""Function from texts to their log-perplexities, −log₂ P(text) in bits, of a model of any library."""
Writer = Callable[[Sequence[str]], Sequence[str]]
"""Function from prefixes to a model's continuation of each."""

_TOGETHER = 8192
"""Number of texts scored in one batch."""
_MOST = 2_000_000
"""Largest number of candidates that is enumerated."""


@dataclass(frozen=True)
class Secret:
    """Sentence with a gap, and the alphabet and length of what fills the gap.

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
        """Number of possible fills."""
        return int(len(self.alphabet) ** self.length)

    def text(self, fill: str) -> str:
        """Return the sentence with the given fill in the gap.

        Args:
            fill: What to put into the gap.

        Raises:
            InvalidInput: If `fill` has another length, or a letter that is not in the alphabet.
        """
        if len(fill) != self.length or not set(fill) <= set(self.alphabet):
            problem = f"is {len(fill)} letters, or has one that is not in the alphabet"
            raise InvalidInput("fill", problem, f"give {self.length} letters of {self.alphabet!r}")
        return self.before + fill + self.after

    def texts(self, start: int, stop: int) -> list[str]:
        """Return a range of all possible sentences, ordered by their fills.

        Args:
            start: The number of the first sentence, from 0.
            stop: The number after the last sentence; numbers beyond the last possible one are ignored.
        """
        return [self.text(self._fill(number)) for number in range(start, min(stop, self.space))]

    def place(self, fill: str) -> int:
        """Return the number of the sentence with the given fill, in the order of `texts`.

        Args:
            fill: What stands in the gap.

        Raises:
            InvalidInput: If `fill` has another length, or a letter that is not in the alphabet.
        """
        self.text(fill)
        number = 0
        for letter in fill:
            number = number * len(self.alphabet) + self.alphabet.index(letter)
        return number

    def drawn(self, count: int = 1, *, key: str = "privet") -> list[str]:
        """Draw fills uniformly at random. The exposure of a secret that was chosen in another way is meaningless.

        Args:
            count: How many fills to draw.
            key: Seed of the fills.

        Raises:
            InvalidInput: If `count` is below 1.
        """
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
    """Rank of a secret among all possible fills, by the model's log-perplexity.

    >>> Exposure(rank=1.0, space=1024, exact=True).bits
    10.0
    """

    rank: float
    """Rank of the secret, 1 being the likeliest; ties count as ahead of it."""
    space: int
    exact: bool
    """Whether all fills were scored; otherwise the rank is extrapolated from a sample."""

    @property
    def bits(self) -> float:
        """log₂ space − log₂ rank: the guesses that the model saves an attacker, as a power of two."""
        return math.log2(self.space) - math.log2(self.rank)

    @property
    def chance(self) -> float | None:
        """Upper bound on the probability of this rank or a better one for a uniform secret that was never trained on.

        The model is then independent of the secret, so that its rank is uniform, except for ties, which make it worse:
        P[rank ≤ r] ≤ r/space, or P[bits ≥ b] ≤ 2^−b. None for an extrapolated rank, about which nothing is proven.
        """
        return self.rank / self.space if self.exact else None


def exposure(scorer: Scorer, secret: Secret, fill: str) -> Exposure:
    """Compute the secret's exact rank by scoring every possible fill.

    Args:
        scorer: The model's log-perplexities of texts.
        secret: The sentence with the gap.
        fill: What stood in the gap in the training text.

    Raises:
        InvalidInput: If there are too many possible fills, `fill` does not fit into the gap, or the scorer does not
            return one number for each text.

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
    """Estimate the secret's rank where there are too many possible fills to score all of them.

    A skew-normal distribution is fitted to the log-perplexities of some candidates; its mass below the secret's
    log-perplexity gives the rank (Carlini et al. 2019, section 4.3). That the log-perplexities have such a distribution
    is an assumption; it is extrapolated far beyond the sample, and no confidence is stated. The rank is never below 1.

    Args:
        scorer: The model's log-perplexities of texts.
        secret: The sentence with the gap.
        fill: What stood in the gap in the training text.
        candidates: How many random fills to score, at least 100.
        key: Seed of the candidates.

    Raises:
        InvalidInput: If `candidates` is below 100, `fill` does not fit into the gap, or the scorer scores all
            candidates alike or does not return one number for each text.
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
    """Return the fills that the model considers likeliest, best first, found by beam search.

    The secret is extracted when it is the first one.

    Args:
        scorer: The model's log-perplexities of texts.
        secret: The sentence with the gap.
        width: The number of beginnings that are kept after each letter.

    Returns:
        At most `width` fills.

    Raises:
        InvalidInput: If `width` is below 1, or the scorer does not return one number for each text.
    """
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
    """Return how often the model, prompted with the text before the gap, writes the secret.

    The interval is that of Clopper & Pearson 1934.

    Args:
        writer: The model's continuations of prefixes.
        secret: The sentence with the gap.
        fill: What stood in the gap in the training text.
        tries: How many continuations to ask for.
        confidence: The coverage of the interval.

    Raises:
        InvalidInput: If `tries` is below 1, the writer does not return one text for each prefix, or `confidence` is not
            between 0 and 1.
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
