"""The theorem behind the filter, by exact enumeration: an analyst who adapts to every answer never gets past (ε, δ).

Every mechanism here is the worst of its kind: (ε, δ) randomised response with four answers, of which every (ε, δ)-DP
mechanism is post-processing (Kairouz, Oh & Viswanath 2015). All transcripts of a game are enumerated, and δ is the
exact sum of (P − e^ε Q)₊ over them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from privet.ledger.filter import Amount, Rules, Sums, amount_of, block_values, rules_for

Menu = list[tuple[float, float]]
Analyst = Callable[[tuple[int, ...], int], int]
DEPTH = 9


def response(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """The chance of each answer on one data set and on its neighbour; the first two answers give everything away."""
    keep, flip = (1 - delta) / (1 + math.exp(-epsilon)), (1 - delta) / (1 + math.exp(epsilon))
    answers = [(delta, 0.0), (0.0, delta)] if delta else []
    return [*answers, (keep, flip), (flip, keep)]


def hostile(seed: int) -> Analyst:
    """An analyst whose next question is any function of the answers so far."""

    def choose(answers: tuple[int, ...], choices: int) -> int:
        return hashlib.sha256(bytes((seed, *answers))).digest()[0] % choices

    return choose


def greedy(answers: tuple[int, ...], choices: int) -> int:
    """Asks the largest question while the answers point one way, and the smallest to keep the budget otherwise."""
    return choices - 1 if len(set(answers)) <= 1 else 0


def careful(answers: tuple[int, ...], choices: int) -> int:
    """Saves while the answers point one way, and spends when they do not."""
    return 0 if len(set(answers)) <= 1 else choices - 1


ANALYSTS: list[Analyst] = [greedy, careful, *(hostile(seed) for seed in range(6))]


def delta_of(rules: Rules, menu: Menu, analyst: Analyst, epsilon: float, *, resetting: bool = False) -> float:
    """The exact δ at ε of the whole game, both directions; `resetting` plays a filter that forgets what was spent."""
    prices = [amount_of(rules, block_values(e, rules.orders), d) for e, d in menu]
    losses = [0.0, 0.0]

    def play(sums: Sums, answers: tuple[int, ...], p: float, q: float) -> None:
        pick = analyst(answers, len(menu))
        # A refusal tells the analyst nothing, for it follows from the sums; so the next smaller question is asked.
        affordable = [i for i in range(pick, -1, -1) if sums.order_for(prices[i], rules) is not None]
        if not affordable or len(answers) == DEPTH or p == q == 0:
            losses[0] += max(0.0, p - math.exp(epsilon) * q)
            losses[1] += max(0.0, q - math.exp(epsilon) * p)
            return
        chosen = affordable[0]
        after = Sums.empty(rules) if resetting else sums.after(prices[chosen])
        for index, (on_p, on_q) in enumerate(response(*menu[chosen])):
            play(after, (*answers, index), p * on_p, q * on_q)

    play(Sums.empty(rules), (), 1.0, 1.0)
    return max(losses)


PURE: Menu = [(0.1, 0.0), (0.25, 0.0), (0.5, 0.0), (0.7, 0.0)]
BLOCKS: Menu = [(0.1, 0.0), (0.2, 0.002), (0.4, 0.01), (0.6, 0.02)]


@pytest.mark.parametrize("menu", [PURE, BLOCKS], ids=["pure", "blocks"])
@pytest.mark.parametrize("analyst", ANALYSTS, ids=range(len(ANALYSTS)))
@pytest.mark.parametrize(("epsilon", "delta"), [(0.8, 0.05), (1.0, 0.2), (0.5, 0.1)])
def test_no_analyst_gets_past_the_budget(menu: Menu, analyst: Analyst, epsilon: float, delta: float) -> None:
    """Catches a filter whose orders, shares or offsets admit more than (ε, δ), for eight ways to adapt."""
    rules = rules_for(epsilon, delta, (4.0, 8.0, 16.0) if delta > 0.1 else (8.0, 16.0, 32.0))
    assert delta_of(rules, menu, analyst, epsilon) <= delta


def test_the_game_can_be_lost() -> None:
    """The enumeration has teeth: a filter that forgets, and one with limits four times too high, are both found out."""
    rules = rules_for(0.8, 0.05, (8.0, 16.0, 32.0))
    assert delta_of(rules, PURE, hostile(0), 0.8, resetting=True) > 0.05
    loose = replace(rules, limits=tuple(4 * limit for limit in rules.limits))
    assert max(delta_of(loose, PURE, analyst, 0.8) for analyst in ANALYSTS) > 0.05


def test_offsets_are_part_of_the_game() -> None:
    """Catches a filter that adds up ε and forgets δ: then the answers that give everything away are free."""
    rules = rules_for(0.8, 0.05, (8.0, 16.0, 32.0))
    loose = replace(rules, shares=(*rules.shares[:-1], 100 * rules.shares[-1]))
    game: Menu = [(0.1, 0.02)]
    assert delta_of(rules, game, greedy, 0.8) <= 0.05
    assert delta_of(loose, game, greedy, 0.8) > 0.05


def test_a_whole_budget_holds_too() -> None:
    """After the switch to basic composition the game still ends within (ε, δ)."""
    rules = rules_for(0.8, 0.05, (8.0, 16.0, 32.0))
    half = amount_of(rules, block_values(0.5, rules.orders), 0.05, whole=True)
    assert isinstance(half, Amount)
    sums = Sums.empty(rules).after(half)
    rest = amount_of(rules, block_values(0.3, rules.orders), 0.0)
    assert sums.order_for(rest, rules) == math.inf
    loss = 0.0
    for p1, q1 in response(0.5, 0.05):
        for p2, q2 in response(0.3, 0.0):
            loss += max(0.0, p1 * p2 - math.exp(0.8) * q1 * q2)
    assert loss <= 0.05 * (1 + 1e-12)
