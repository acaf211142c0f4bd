"""Small character-level language model, to measure what such a model memorizes of its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from privet.attacks.counting import Reals
from privet.core import InvalidInput, checked
from privet.ensemble import generator

__all__ = ["Alphabet", "CharacterModel", "letter_losses", "train_character_model"]

_NOTHING, _EDGE, _FIRST = 0, 1, 2
"""Codes of the padding, of the start and end of a text, and of the first letter."""
_TOGETHER = 4096
"""Number of texts scored in one batch."""


@dataclass(frozen=True)
class Alphabet:
    """Set of letters that texts may contain; public, as it must not depend on the texts.

    >>> Alphabet("ab").encode(["ab", "b"]).tolist()
    [[1, 2, 3, 1], [1, 3, 1, 0]]
    """

    letters: str

    def __post_init__(self) -> None:
        if not self.letters or len(set(self.letters)) < len(self.letters):
            raise InvalidInput("letters", "are none, or one comes twice", "name each letter once")

    @property
    def classes(self) -> int:
        """Number of codes: the letters, the start or end of a text, and the padding."""
        return len(self.letters) + _FIRST

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Encode texts as rows of codes, padded to the longest one.

        Args:
            texts: The texts.

        Returns:
            [texts, letters of the longest + 2]: one row for each text, with its start and its end.

        Raises:
            InvalidInput: If a text has a letter that is not in the alphabet.
        """
        numbers = {letter: place + _FIRST for place, letter in enumerate(self.letters)}
        if unknown := set().union(*texts) - numbers.keys():
            raise InvalidInput("texts", f"hold {min(unknown)!r}, which is no letter here", "put it into the alphabet")
        longest = max(map(len, texts), default=0)
        rows = [[_EDGE, *map(numbers.__getitem__, text), _EDGE] for text in texts]
        return torch.tensor([row + [_NOTHING] * (longest + 2 - len(row)) for row in rows])

    def decode(self, numbers: Sequence[int]) -> str:
        """Return the text of a row of codes, up to its end.

        Args:
            numbers: The codes, without the code of the start.
        """
        letters = [int(number) for number in numbers]
        end = letters.index(_EDGE) if _EDGE in letters else len(letters)
        return "".join(self.letters[number - _FIRST] for number in letters[:end] if number >= _FIRST)


class CharacterModel(nn.Module):
    """Embedding, one LSTM and a linear layer that predict the next letter.

    Train it with `train_character_model`, or privately with `privet.fit` on `pairs(texts)` with `letter_losses`.
    """

    def __init__(self, alphabet: Alphabet, *, width: int = 64, key: str = "privet") -> None:
        super().__init__()
        checked.count("width", width)
        self.alphabet = alphabet
        # Created without values and initialized from the key, as torch's own initialization uses a global stream.
        with torch.device("meta"):
            layers = nn.Embedding(alphabet.classes, width), nn.LSTM(width, width, batch_first=True)
            last = nn.Linear(width, alphabet.classes)
        self.embedding, self.recurrent, self.last = (layer.to_empty(device="cpu") for layer in (*layers, last))
        drawn = generator(key, "characters")
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_((2 * torch.rand(parameter.shape, generator=drawn) - 1) / width**0.5)

    def forward(self, letters: Tensor) -> Tensor:
        """Return scores, before softmax, of the letter that follows each position.

        Args:
            letters: [texts, positions]: codes, as `Alphabet.encode` returns them.

        Returns:
            [texts, positions, classes].
        """
        found: Tensor = self.last(self.recurrent(self.embedding(letters))[0])
        return found

    def pairs(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return inputs and next-letter targets as a data set for `privet.fit`, with one row for each text.

        Args:
            texts: The texts.

        Raises:
            InvalidInput: If a text has a letter that is not in the alphabet.
        """
        rows = self.alphabet.encode(texts)
        return rows[:, :-1], rows[:, 1:]

    def log_perplexities(self, texts: Sequence[str]) -> Reals:
        """Return −log₂ of the probability that a text starts with the given letters; lower is likelier.

        Args:
            texts: The texts.

        Returns:
            [texts]: log-perplexities in bits.

        Raises:
            InvalidInput: If a text has a letter that is not in the alphabet.
        """
        found = [np.zeros(0)]
        for start in range(0, len(texts), _TOGETHER):
            rows = self.alphabet.encode(texts[start : start + _TOGETHER])[:, :-1]
            with torch.no_grad():
                logs = self(rows[:, :-1]).double().log_softmax(2).gather(2, rows[:, 1:, None])[:, :, 0]
            inside = rows[:, 1:] >= _FIRST
            found.append((-(logs * inside).sum(1) / np.log(2)).numpy())
        return np.concatenate(found)

    def write(
        self, prefixes: Sequence[str], *, length: int, temperature: float = 1.0, key: str = "privet"
    ) -> list[str]:
        """Sample a continuation of each prefix from the model, letter by letter.

        Args:
            prefixes: The prefixes, all of the same length.
            length: The maximum number of letters of a continuation.
            temperature: The divisor of the scores; at a low one, the likeliest letter is nearly always chosen.
            key: Seed of the samples.

        Returns:
            One continuation for each prefix, without the prefix.

        Raises:
            InvalidInput: If the prefixes have different lengths or a letter that is not in the alphabet, `length` is
                below 1, or `temperature` is not positive.
        """
        checked.count("length", length)
        checked.positive("temperature", temperature)
        if len({len(prefix) for prefix in prefixes}) > 1:
            raise InvalidInput("prefixes", "are of several lengths", "ask for each length by itself")
        drawn = generator(key, "written")
        rows = self.alphabet.encode(prefixes)[:, :-1]
        begun = rows.shape[1]
        with torch.no_grad():
            for _ in range(length):
                scores = self(rows)[:, -1].double() / temperature
                scores[:, _NOTHING] = -torch.inf
                rows = torch.cat([rows, torch.multinomial(scores.softmax(1), 1, generator=drawn)], 1)
        return [self.alphabet.decode(row) for row in rows[:, begun:].tolist()]


def letter_losses(scores: Tensor, wanted: Tensor) -> Tensor:
    """Return the mean cross-entropy of each text's letters; it depends on that text alone.

    Args:
        scores: [texts, positions, classes]: scores before softmax.
        wanted: [texts, positions]: the codes that should have been predicted; padding is ignored.

    Returns:
        [texts].
    """
    found = F.cross_entropy(scores.transpose(1, 2), wanted, ignore_index=_NOTHING, reduction="none")
    return found.sum(1) / (wanted != _NOTHING).sum(1).clamp(min=1)


def train_character_model(
    model: CharacterModel,
    texts: Sequence[str],
    *,
    steps: int = 300,
    batch_size: int = 64,
    learning_rate: float = 0.01,
    key: str = "privet",
) -> None:
    """Train the model in place with Adam, without any privacy.

    Args:
        model: The model to train.
        texts: The texts to learn from.
        steps: The number of batches.
        batch_size: The number of texts in a batch.
        learning_rate: The learning rate.
        key: Seed of the batches.

    Raises:
        InvalidInput: If there are no texts, one has a letter that is not in the alphabet, or a setting is not positive.
    """
    checked.count("steps", steps)
    checked.count("batch_size", batch_size)
    if not texts:
        raise InvalidInput("texts", "are none", "give something to learn from")
    letters, following = model.pairs(texts)
    drawn = generator(key, "learn")
    optimizer = torch.optim.Adam(model.parameters(), lr=checked.positive("learning_rate", learning_rate))
    for _ in range(steps):
        rows = torch.randint(len(letters), (min(batch_size, len(letters)),), generator=drawn)
        optimizer.zero_grad()
        torch.autograd.backward(letter_losses(model(letters[rows]), following[rows]).mean())
        optimizer.step()
