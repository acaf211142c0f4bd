"""Sweeps on MNIST: over teachers, noise and questions, and what is drawn of them.

After the figures of Papernot et al. 2017 and 2018: accuracy of the votes against noise, the gap between the two largest
counts, ε against questions, accuracy against ε.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.pate.drawn import Chart, Line, svg
from benchmarks.pate.protocol import ballots, drawn, loaded
from privet.core.random import SeededRng
from privet.ensemble import NeighborGraph, most_typical
from privet.pate import GNMax, LNMax, Plan, Votes, data_dependent
from privet.pate.votes import Counts

__all__ = ["sweeps"]

TEACHERS = (25, 50, 100, 250, 500, 1000)
INVERSE_SCALES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
QUESTIONS = (30, 60, 100, 200, 300, 500, 1000)
DELTAS = (1e-4, 1e-5, 1e-6, 1e-8)
SIGMAS = (10.0, 20.0, 30.0, 40.0, 60.0, 80.0, 120.0, 160.0)
_PENALTY, _SEED, _TEACHERS, _SIGMA = 0.1, 0, 250, 30.0
_PLACE = Path(__file__).parents[1] / "results"


def sweeps(cache: Path) -> dict[str, Any]:
    """Every sweep, its numbers, and a small picture of each in benchmarks/results."""
    data = loaded("mnist", None, cache, simulate=None)
    in_pool, _ = drawn(data, _SEED)
    pool, truth = data.public_rows[torch.from_numpy(in_pool.copy())], data.truth[in_pool]
    counted = {
        each: Votes.cast(ballots(data, pool, each, _PENALTY, f"shards {_SEED}"), labels=data.classes).counts
        for each in TEACHERS
    }
    asked = {each: most_typical(pool, each, key=f"asked {_SEED}") for each in QUESTIONS}
    found = {
        "votes_by_noise": by_noise(counted, truth),
        "gap_by_teachers": gaps(counted),
        "epsilon_by_questions": by_questions(counted[_TEACHERS], asked),
        "accuracy_by_epsilon": by_epsilon(pool, truth, counted[_TEACHERS], asked),
    }
    _draw(found)
    return {"teachers": list(TEACHERS), "penalty": _PENALTY, "seed": _SEED, **found}


def by_noise(counted: dict[int, Counts], truth: Counts) -> list[dict[str, float]]:
    """How often LNMax gives the true label of a row of the pool, for several numbers of teachers."""
    rows = []
    for teachers, counts in counted.items():
        for inverse in INVERSE_SCALES:
            plan = Plan(LNMax(1 / inverse), len(counts), teachers, counts.shape[1])
            said = np.array(plan.release(Votes(counts, teachers=teachers), rng=SeededRng(_SEED)).value)
            right = round(100 * float((said == truth).mean()), 2)
            rows.append({"teachers": teachers, "inverse_scale": inverse, "labels_right": right})
    return rows


def gaps(counted: dict[int, Counts]) -> list[dict[str, float]]:
    """How far the second label is behind the first, over the number of teachers."""
    rows = []
    for teachers, counts in counted.items():
        ordered = np.sort(counts, axis=1)
        shares = (ordered[:, -1] - ordered[:, -2]) / teachers
        low, middle = (round(float(np.quantile(shares, each)), 4) for each in (0.1, 0.5))
        rows.append(
            {"teachers": teachers, "mean_gap": round(float(shares.mean()), 4), "tenth": low, "median_gap": middle}
        )
    return rows


def by_questions(counts: Counts, asked: dict[int, Counts]) -> list[dict[str, float]]:
    """Both prices of typical questions, for several δ."""
    rows: list[dict[str, float]] = []
    for questions, at in asked.items():
        plan = Plan(GNMax(_SIGMA), questions, _TEACHERS, counts.shape[1])
        votes = Votes(counts[at], teachers=_TEACHERS)
        rows += [
            {
                "questions": questions,
                "delta": delta,
                "data_dependent": round(data_dependent(plan, votes, delta).epsilon, 4),
                "data_independent": round(plan.guarantee(delta).epsilon.upper, 4),
            }
            for delta in DELTAS
        ]
    return rows


def by_epsilon(pool: torch.Tensor, truth: Counts, counts: Counts, asked: dict[int, Counts]) -> list[dict[str, float]]:
    """What the answers become in the graph, for numbers of questions and noises: the pool's rows that come out right.

    The model that follows is left out, as it takes most of a run's time and adds the same to all.
    """
    rows = []
    for questions in (30, 100, 300):
        at = asked[questions]
        votes = Votes(counts[at], teachers=_TEACHERS)
        for sigma in SIGMAS:
            plan = Plan(GNMax(sigma), questions, _TEACHERS, counts.shape[1])
            said = np.array(plan.release(votes, rng=SeededRng(_SEED)).value)
            spread = NeighborGraph().labels(pool, at, said, counts.shape[1]).argmax(1)
            rows.append(
                {
                    "questions": questions,
                    "sigma": sigma,
                    "labels_right": round(100 * float((said == truth[at]).mean()), 2),
                    "spread_right": round(100 * float((spread == truth).mean()), 2),
                    "data_dependent": round(data_dependent(plan, votes, 1e-5).epsilon, 4),
                    "data_independent": round(plan.guarantee(1e-5).epsilon.upper, 4),
                }
            )
    return rows


def _lines(rows: list[dict[str, float]], by: str, x: str, y: str, name: str) -> tuple[Line, ...]:
    values = dict.fromkeys(row[by] for row in rows)
    return tuple(
        Line(name.format(value), tuple((row[x], row[y]) for row in rows if row[by] == value)) for value in values
    )


def _draw(found: dict[str, Any]) -> None:
    noise, prices, learned = (found[key] for key in ("votes_by_noise", "epsilon_by_questions", "accuracy_by_epsilon"))
    gap = tuple((row["teachers"], row["mean_gap"]) for row in found["gap_by_teachers"])
    charts = {
        "noise": Chart(
            "Labels of LNMax that are right, %",
            "1 over the noise's scale",
            _lines(noise, "teachers", "inverse_scale", "labels_right", "{} teachers"),
        ),
        "gap": Chart("Gap between the two largest counts, over the teachers", "teachers", (Line("mean", gap),)),
        "questions": Chart(
            "ε that typical questions cost these data (full) and any data (dashed)",
            "questions",
            _lines(prices, "delta", "questions", "data_dependent", "δ = {:g}")
            + tuple(
                Line("", each.points, dashed=True)
                for each in _lines(prices, "delta", "questions", "data_independent", "")
            ),
        ),
        "epsilon": Chart(
            "Rows of the pool that come out right, %, by ε for any data",
            "ε",
            _lines(learned, "questions", "data_independent", "spread_right", "{} questions"),
        ),
    }
    for name, chart in charts.items():
        (_PLACE / f"pate-{name}.svg").write_text(svg(chart), encoding="utf-8")
