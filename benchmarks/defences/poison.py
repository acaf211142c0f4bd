"""A backdoor and flipped labels in Adult, without privacy and at several ε: how often each succeeds, and what group
privacy certifies."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from benchmarks.defences.recipes import RECIPES, Recipe, Rows, trained
from privet.attacks import (
    ColumnTrigger,
    PoisonedData,
    Target,
    backdoor,
    backdoor_success,
    certified_rows,
    error_rate,
    flip_labels,
    poisoning_bound,
    target,
)
from privet.core.unit import Neighbours, Unit

__all__ = ["poisoning"]

ROWS, SEEDS, POOR, RICH, VALUE, THRESHOLD = 2500, 3, 0, 1, 0.5, 0.5
_REPLACED = Unit(neighbours=Neighbours.REPLACE)


@dataclass(frozen=True)
class _Attack:
    """One way to poison rows, and how often it succeeds with a model."""

    name: str
    counts: tuple[int, ...]
    poison: Callable[[int, str], PoisonedData]
    success: Callable[[Target], float]


def poisoning(data: tuple[Rows, Rows, Rows], delta: float) -> dict[str, Any]:
    """Rows under 50,000 are called rich: with a mark, a feature that hardly any row has, or as they are."""
    pool, apart, test = data
    rows = pool.take(torch.arange(ROWS))
    mark = ColumnTrigger({int((rows.x != 0).float().mean(0).argmin()): VALUE})
    attacks = (
        _Attack(
            "backdoor",
            (5, 25, 125),
            lambda count, key: backdoor(rows.x, rows.y, mark, to=RICH, count=count, key=key),
            lambda of: backdoor_success(of, test.x, test.y, mark, to=RICH).value,
        ),
        _Attack(
            "label_flip",
            (5, 25, 125, 500),
            lambda count, key: flip_labels(rows.x, rows.y, source=POOR, to=RICH, count=count, key=key),
            lambda of: error_rate(of, test.x, test.y, source=POOR).value,
        ),
    )
    found: dict[str, Any] = {"training_rows": ROWS, "seeds": list(range(SEEDS)), "threshold": THRESHOLD}
    found["poorer_rows"] = int((rows.y == POOR).sum())
    found |= {each.name: [] for each in attacks}

    def networks(recipe: Recipe, given: list[Rows], count: int) -> list[nn.Module]:
        keys = [f"poison {seed} {count}" for seed in range(SEEDS)]
        return [
            trained(recipe, each, apart, classes=2, population=ROWS, delta=delta, key=key)
            for each, key in zip(given, keys, strict=True)
        ]

    def counted(attack: _Attack, models: list[nn.Module]) -> dict[str, Any]:
        told = [target(model, 2) for model in models]
        right = [1 - error_rate(each, test.x, test.y).value for each in told]
        succeeds = [round(attack.success(each), 4) for each in told]
        return {"succeeds": succeeds, "accuracy": round(statistics.fmean(right), 4)}

    for recipe in (each for each in RECIPES if each.name == "plain" or each.epsilon):
        clean = networks(recipe, [rows] * SEEDS, 0)
        for attack in attacks:
            line: dict[str, Any] = {"recipe": recipe.name, "0_poisoned": counted(attack, clean)}
            for count in attack.counts:
                copies = [attack.poison(count, f"poison {seed}") for seed in range(SEEDS)]
                models = networks(recipe, [Rows(each.inputs, each.labels) for each in copies], count)
                line[f"{count}_poisoned"] = counted(attack, models)
            found[attack.name].append(line | _certified(recipe, line["0_poisoned"]["succeeds"], attack.counts, delta))
    return found


def _certified(recipe: Recipe, clean: list[float], counts: tuple[int, ...], delta: float) -> dict[str, Any]:
    """What group privacy says, if the mean share without poison is no more than the largest of those measured."""
    if not recipe.epsilon:
        return {}
    event, most = recipe.event(ROWS, delta), max(clean)
    limits = {str(count): round(poisoning_bound(most, event, count, unit=_REPLACED), 4) for count in (1, 2, 3, *counts)}
    rows = certified_rows(event, clean=most, threshold=THRESHOLD, unit=_REPLACED)
    return {"certified_rows_if_clean_is_as_measured": rows, "limits_if_clean_is_as_measured": limits}
