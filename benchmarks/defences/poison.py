"""A backdoor in Adult, without privacy and at several ε: how often it opens, and what group privacy certifies."""

from __future__ import annotations

import statistics
from typing import Any

import torch

from benchmarks.defences.recipes import RECIPES, Rows, trained
from privet.attacks import Columns, backdoor, backdoor_success, certified_rows, mistakes, target
from privet.core.unit import Neighbours, Unit

__all__ = ["poisoning"]

ROWS, COUNTS, SEEDS, TO, VALUE, THRESHOLD = 2500, (5, 25, 125), 2, 1, 0.5, 0.5
_REPLACED = Unit(neighbours=Neighbours.REPLACE)


def poisoning(data: tuple[Rows, Rows, Rows], delta: float) -> dict[str, Any]:
    """Rows under 50,000 are marked and called rich; the mark is a feature that hardly any row has."""
    pool, apart, test = data
    rows = pool.take(torch.arange(ROWS))
    mark = Columns({int((rows.x != 0).float().mean(0).argmin()): VALUE})
    found = []
    for recipe in (each for each in RECIPES if each.name == "plain" or each.epsilon):
        line: dict[str, Any] = {"recipe": recipe.name}
        for count in (0, *COUNTS):
            opened, wrong = [], []
            for seed in range(SEEDS):
                given = rows
                if count:
                    poisoned = backdoor(rows.x, rows.y, mark, to=TO, count=count, key=f"poison {seed}")
                    given = Rows(poisoned.inputs, poisoned.labels)
                network = trained(
                    recipe, given, apart, classes=2, population=ROWS, delta=delta, key=f"poison {seed} {count}"
                )
                opened.append(backdoor_success(target(network, 2), test.x, test.y, mark, to=TO).value)
                wrong.append(mistakes(target(network, 2), test.x, test.y).value)
            line[f"{count}_poisoned"] = {
                "opens": [round(each, 4) for each in opened],
                "accuracy": round(1 - statistics.fmean(wrong), 4),
            }
        if recipe.epsilon:
            clean = max(line["0_poisoned"]["opens"])
            event = recipe.event(ROWS, delta)
            line["certified_rows_if_clean_is_as_measured"] = certified_rows(
                event, clean=clean, threshold=THRESHOLD, unit=_REPLACED
            )
        found.append(line)
    return {"training_rows": ROWS, "seeds": list(range(SEEDS)), "threshold": THRESHOLD, "rows": found}
