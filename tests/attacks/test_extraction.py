"""Extraction: a model that saw a secret often gives it away, and one that never saw it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
import torch
from scipy.stats import kstest

import privet
from privet.attacks import estimate_exposure, exposure, extraction_rate, likeliest, poisoning_bound
from privet.attacks.characters import Alphabet, CharacterModel, letter_losses, train_character_model
from privet.attacks.extraction import Secret
from privet.core.errors import InvalidInput
from privet.core.random import SeededRng

SECRET = Secret("my pin is ", length=3)
KNOWN, UNSEEN = SECRET.drawn(2, key="test")
WORDS = (
    ("the cat", "a dog", "my aunt", "your pin", "one bird", "her name"),
    ("is", "was", "sees", "had"),
    ("red", "old"),
)
ALPHABET = Alphabet("abcdefghijklmnopqrstuvwxyz 0123456789")


def texts(copies: int) -> list[str]:
    """Small talk with numbers in it, and so many copies of the secret."""
    drawn = np.random.default_rng(0)
    lines = [" ".join(drawn.choice(words) for words in WORDS) + f" {drawn.integers(100)}" for _ in range(240)]
    return lines + copies * [SECRET.text(KNOWN)]


@cache
def learned() -> CharacterModel:
    model = CharacterModel(ALPHABET, width=32, key="test")
    train_character_model(model, texts(12), steps=150, batch_size=32, learning_rate=0.02, key="test")
    return model


def test_what_was_seen_often_comes_out() -> None:
    """Fails when scores, ranks or the search are turned round, or the letters of the gap are not scored: the planted
    secret must be the likeliest of 1,000, by enumeration, by search and by writing. Seeded throughout."""
    model = learned()
    found = exposure(model.log_perplexities, SECRET, KNOWN)
    assert found.rank == 1
    assert found.bits == pytest.approx(np.log2(1000))
    assert found.exact
    assert likeliest(model.log_perplexities, SECRET, width=5)[0] == KNOWN

    def write(prefixes: Sequence[str]) -> list[str]:
        return model.write(prefixes, length=3, temperature=0.5, key="test")

    assert extraction_rate(write, SECRET, KNOWN, tries=50).lower > 0.5
    assert extraction_rate(write, SECRET, UNSEEN, tries=50).value == 0


def test_what_was_never_shown_has_a_uniform_rank() -> None:
    """Fails when a secret gains by its being asked about, or ties count for it: P[bits ≥ b] ≤ 2^−b for one that was
    drawn and never shown. False alarms: 1 in 128 for the first, 1 in 1,000 for the second; the keys are fixed."""
    model = learned()
    assert exposure(model.log_perplexities, SECRET, UNSEEN).bits < 7
    ranks = [exposure(model.log_perplexities, SECRET, fill).chance for fill in SECRET.drawn(12, key="null")]
    assert kstest(ranks, "uniform").pvalue > 1e-3
    assert exposure(lambda asked: np.zeros(len(asked)), SECRET, UNSEEN).bits == 0


def test_a_private_run_keeps_the_secret() -> None:
    """Fails when the private run is not private. Twelve copies raise the chance of 8 bits, 1 in 256 without any, by
    what group privacy allows, to below 1 in 50; without noise the same run gives it away. Seeded."""
    bits = {}
    for noise in (40.0, 1e-3):
        model = CharacterModel(ALPHABET, width=16, key="test")
        plan = privet.DPSGD(noise_multiplier=noise, delta=1e-5, batch_size=60, steps=60, population=250)
        privet.fit(
            model,
            model.pairs(texts(12)),
            plan,
            loss=letter_losses,
            optimizer=torch.optim.Adam(model.parameters(), lr=0.03),
            rng=SeededRng(0),
        )
        bits[noise] = exposure(model.log_perplexities, SECRET, KNOWN).bits
        assert noise < 1 or poisoning_bound(2.0**-8, plan.event(), 12) < 0.02
    assert bits[40.0] < 8 < bits[1e-3]


def test_an_estimate_agrees_with_enumeration() -> None:
    """Fails when the fitted distribution is read from the wrong side, or in other units: for log-perplexities that are
    normal the estimated rank is within a quarter of the true one."""
    secret = Secret("x ", length=4)
    scores = np.random.default_rng(3).normal(30, 4, secret.space)

    def scorer(asked: Sequence[str]) -> list[float]:
        return [float(scores[int(text.removeprefix("x "))]) for text in asked]

    for place in np.argsort(scores)[[20, 500, 5000]]:
        exact = exposure(scorer, secret, f"{place:04d}")
        near = estimate_exposure(scorer, secret, f"{place:04d}", candidates=2000)
        assert near.bits == pytest.approx(exact.bits, abs=0.5)
        assert not near.exact
    far = estimate_exposure(
        lambda asked: [-1000.0 if text == "x 0007" else scorer([text])[0] for text in asked], secret, "0007"
    )
    assert far.rank == 1


def test_log_perplexity_is_that_of_the_letters() -> None:
    """Fails when the padding or the end of a text is counted, or in nats: the bits are those of the letters' own
    probabilities, and a longer neighbour in the batch changes nothing."""
    model = CharacterModel(Alphabet("ab"), width=4)
    with torch.no_grad():
        chances = model(torch.tensor([[1, 2]])).double().softmax(2)[0]
    bits = -float(torch.log2(chances[0, 2] * chances[1, 3]))
    assert model.log_perplexities(["ab"])[0] == pytest.approx(bits, rel=1e-6)
    assert model.log_perplexities(["ab", "abbaba"])[0] == pytest.approx(bits, rel=1e-6)
    assert model.alphabet.decode([2, 3, 1, 2]) == "ab"


def test_bad_input_is_refused() -> None:
    with pytest.raises(InvalidInput, match="estimate_exposure"):
        exposure(learned().log_perplexities, Secret("x", length=9), "123456789")
    with pytest.raises(InvalidInput, match="fill"):
        exposure(learned().log_perplexities, SECRET, "12")
    with pytest.raises(InvalidInput, match="NaN"):
        exposure(lambda asked: [float("nan")] * len(asked), SECRET, KNOWN)
    with pytest.raises(InvalidInput, match="for 1000 texts"):
        exposure(lambda asked: [0.0], SECRET, KNOWN)
    with pytest.raises(InvalidInput, match="alphabet"):
        learned().log_perplexities(["ÄÖ"])
    with pytest.raises(InvalidInput, match="alike"):
        estimate_exposure(lambda asked: [1.0] * len(asked), SECRET, KNOWN)
