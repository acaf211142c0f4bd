"""A canary in small talk: its exposure by how often it stands there, without privacy and at several ε."""

from __future__ import annotations

from typing import Any

import torch

import privet
from privet.attacks import Alphabet, CharacterModel, Secret, exposure, letter_losses, likeliest, train_character_model
from privet.core.random import SeededRng
from privet.ensemble.seeding import generator

__all__ = ["extraction"]

LINES, COPIES, EPSILONS, STEPS, SEEDS = 500, (1, 4, 16), (8.0, 2.0), 150, 2
_SUBJECTS, _VERBS, _THINGS = (
    ("the cat", "a dog", "my aunt", "your pin", "one bird"),
    ("is", "was", "had"),
    ("red", "old"),
)


def extraction(delta: float) -> dict[str, Any]:
    """Every model learns from the same lines, and from so many copies of one of ten thousand pins."""
    secret = Secret("my pin is ", length=4)
    drawn = generator("canaries", "lines")

    def one(words: tuple[str, ...]) -> str:
        return words[int(torch.randint(len(words), (1,), generator=drawn))]

    talk = [
        f"{one(_SUBJECTS)} {one(_VERBS)} {one(_THINGS)} {int(torch.randint(1000, (1,), generator=drawn))}"
        for _ in range(LINES)
    ]
    found = []
    for epsilon in (None, *EPSILONS):
        for copies in COPIES:
            ranks, first = [], []
            for seed in range(SEEDS):
                (fill,) = secret.drawn(key=f"canary {seed} {copies}")
                lines = talk + copies * [secret.text(fill)]
                model = CharacterModel(Alphabet("abcdefghijklmnopqrstuvwxyz 0123456789"), width=32, key=f"{seed}")
                if epsilon is None:
                    train_character_model(model, lines, steps=STEPS, learning_rate=0.02, key=f"{seed}")
                else:
                    _privately(model, lines, epsilon, delta, seed)
                ranks.append(exposure(model.log_perplexities, secret, fill).bits)
                first.append(likeliest(model.log_perplexities, secret)[0] == fill)
            found.append(
                {
                    "epsilon": epsilon,
                    "copies": copies,
                    "exposure_bits": [round(each, 2) for each in ranks],
                    "comes_out_first": first,
                }
            )
    return {"space": secret.space, "lines": LINES, "steps": STEPS, "seeds": list(range(SEEDS)), "rows": found}


def _privately(model: CharacterModel, lines: list[str], epsilon: float, delta: float, seed: int) -> None:
    plan = privet.DPSGD(epsilon=epsilon, delta=delta, batch_size=64, steps=STEPS, population=LINES)
    privet.fit(
        model,
        model.pairs(lines),
        plan,
        loss=letter_losses,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.02),
        rng=SeededRng(seed),
    )
