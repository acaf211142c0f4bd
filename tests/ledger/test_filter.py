"""The filter's arithmetic: whole numbers, outward rounding, and a rule that never lets the sums pass the limits."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.core.errors import InvalidInput, LedgerError
from privet.ledger import grid, orders
from privet.ledger.filter import Amount, Rules, Sums, amount_of, block_values, largest_block, rules_for

EPSILONS = st.floats(1e-3, 50.0)
DELTAS = st.floats(1e-12, 0.1)
FINE = Context(prec=120, Emin=-(10**9), Emax=10**9)


def budgets() -> st.SearchStrategy[Rules]:
    """Budgets of many sizes."""
    return st.builds(rules_for, EPSILONS, DELTAS)


@given(st.floats(0, 1e3), EPSILONS)
def test_a_charge_is_never_rounded_down(amount: float, epsilon: float) -> None:
    """Catches rounding to nearest, and limits that are rounded up."""
    bits = grid.bits_for(epsilon)
    assert (
        Fraction(grid.up(amount, bits), 1 << bits) >= Fraction(amount) >= Fraction(grid.down(amount, bits), 1 << bits)
    )
    assert (grid.up(amount, bits) > 0) == (amount > 0)


@given(EPSILONS, DELTAS)
def test_a_budget_is_a_whole_number_of_its_own_steps(epsilon: float, delta: float) -> None:
    """Catches a grid on which a charge of exactly ε is one step too large for a budget of ε."""
    for total in (epsilon, delta):
        bits = grid.bits_for(total)
        assert grid.up(total, bits) == grid.down(total, bits)
        assert grid.value(grid.up(total, bits), bits) == total


@given(EPSILONS, st.floats(1e-300, 0.9))
def test_the_shares_never_exceed_delta(epsilon: float, delta: float) -> None:
    """Catches shares that are rounded up, and orders under which nothing could ever fit."""
    rules = rules_for(epsilon, delta)
    assert sum(rules.shares) <= rules.whole
    assert rules.orders[-1] == math.inf
    assert min(rules.limits) > 0
    assert grid.value(rules.shares[-1], rules.delta_bits) >= delta / 2 * (1 - 1e-12)


def converted(rules: Rules, index: int, steps: int) -> Decimal:
    """ε of so many steps of Rényi divergence at an order's share, by the textbook formula in 120 digits."""
    a = Decimal(rules.orders[index])
    r = FINE.divide(Decimal(steps), Decimal(1 << rules.epsilon_bits))
    share = FINE.divide(Decimal(rules.shares[index]), Decimal(1 << rules.delta_bits))
    less = FINE.subtract(a, Decimal(1))
    gain = FINE.ln(FINE.divide(less, a))
    cost = FINE.divide(FINE.add(FINE.ln(share), FINE.ln(a)), less)
    return FINE.subtract(FINE.add(r, gain), cost)


@given(budgets())
def test_a_limit_is_the_largest_that_holds(rules: Rules) -> None:
    """Catches a wrong conversion, and limits that waste more than a step and the slack of the arithmetic."""
    for index in range(len(rules.orders) - 1):
        assert converted(rules, index, rules.limits[index]) <= Decimal(rules.epsilon)
        assert converted(rules, index, rules.limits[index] + 2) > Decimal(rules.epsilon)
    assert grid.value(rules.limits[-1], rules.epsilon_bits) == rules.epsilon


@given(st.floats(1e-9, 30.0), st.floats(1.05, 600.0))
def test_a_block_costs_what_randomised_response_costs(epsilon: float, order: float) -> None:
    """Against the sum over both answers in 120 digits; catches a block that is charged too little at some order."""
    keep = FINE.divide(Decimal(1), FINE.add(Decimal(1), FINE.exp(Decimal(-epsilon))))
    flip = FINE.subtract(Decimal(1), keep)
    a, rest = Decimal(order), FINE.subtract(Decimal(1), Decimal(order))
    terms = [FINE.multiply(FINE.power(p, a), FINE.power(q, rest)) for p, q in ((keep, flip), (flip, keep))]
    exact = FINE.divide(FINE.ln(FINE.add(*terms)), FINE.subtract(a, Decimal(1)))
    bound = grid.response_divergence(epsilon, order)
    assert bound >= Fraction(exact)
    assert bound <= Fraction(exact) * (1 + Fraction(1, 10**9)) + Fraction(1, 10**30)
    assert Fraction(block_values(epsilon, (order, math.inf))[0]) >= bound


@st.composite
def charges(draw: st.DrawFn, rules: Rules) -> tuple[tuple[float, ...], float]:
    """Any curve and offset, from far too small to notice to far too large."""
    sizes = st.one_of(st.floats(0, 1e-15), st.floats(0, 0.3), st.floats(0, 5), st.just(math.inf))
    values = tuple(draw(sizes) * (rules.epsilon if draw(st.booleans()) else 1.0) for _ in rules.orders)
    return values, draw(st.sampled_from([0.0, 1e-30, rules.delta / 8, rules.delta / 3, rules.delta]))


@given(st.data(), budgets())
def test_random_histories_never_pass_the_budget(data: st.DataObject, rules: Rules) -> None:
    """The exact sums of the real charges stay under one limit; catches lost, rounded or double-counted charges."""
    sums, standing = Sums.empty(rules), list[tuple[tuple[float, ...], float, Amount]]()
    for _ in range(data.draw(st.integers(1, 25))):
        if standing and data.draw(st.integers(0, 3)) == 0:
            *_, amount = standing.pop(data.draw(st.integers(0, len(standing) - 1)))
            sums = sums.without(amount, rules)
        values, offset = data.draw(charges(rules))
        amount = amount_of(rules, values, offset)
        order = sums.order_for(amount, rules)
        if order is None:
            continue
        sums = sums.after(amount)
        standing.append((values, offset, amount))
        at = rules.orders.index(order)
        exact = sum((Fraction(values[at]) for values, _, _ in standing), Fraction(0))
        assert exact <= Fraction(rules.limits[at], 1 << rules.epsilon_bits)
        given_away = sum((Fraction(offset) for _, offset, _ in standing), Fraction(0))
        assert given_away <= Fraction(rules.shares[-1], 1 << rules.delta_bits)
        assert sums.active == len(standing)
    for *_, amount in data.draw(st.permutations(standing)):
        sums = sums.without(amount, rules)
    assert sums == Sums.empty(rules)


@given(st.data(), budgets())
def test_the_order_of_aborts_does_not_matter(data: st.DataObject, rules: Rules) -> None:
    """Catches sums in floating point, which depend on the order in which numbers come and go."""
    amounts = [amount_of(rules, *data.draw(charges(rules))) for _ in range(data.draw(st.integers(2, 8)))]
    sums = Sums.empty(rules)
    for amount in amounts:
        sums = sums.after(amount)
    leaving = amounts[: data.draw(st.integers(1, len(amounts) - 1))]
    results = set()
    for order in (leaving, list(reversed(leaving)), data.draw(st.permutations(leaving))):
        left = sums
        for amount in order:
            left = left.without(amount, rules)
        results.add(left)
    assert len(results) == 1


def test_tiny_charges_near_exhaustion_are_counted() -> None:
    """Catches a tiny charge that is lost beside a large sum: in floating point 1 + 1e-18 is 1, for ever."""
    rules = rules_for(1.0, 0.0)
    room = 5
    nearly = Sums((rules.limits[0] - room,), active=1)
    tiny = amount_of(rules, (1e-300,), 0.0)
    admitted = 0
    while nearly.order_for(tiny, rules) is not None:
        nearly = nearly.after(tiny)
        admitted += 1
        assert admitted <= room
    assert admitted == room
    assert nearly.orders == rules.limits


@pytest.mark.parametrize("factor", [1.0 + 2.0**-52, 2.0, 1e6, math.inf])
def test_a_charge_above_the_whole_budget_never_fits(factor: float) -> None:
    """Fails when a charge of more than a budget is cut to the budget, which an empty history would then admit."""
    rules = rules_for(1.0, 1e-6)
    above = tuple(
        math.nextafter(float(grid.value(most, rules.epsilon_bits)), math.inf) * factor for most in rules.limits
    )
    assert Sums.empty(rules).order_for(amount_of(rules, above, 0.0), rules) is None


def test_a_full_order_still_takes_what_costs_nothing() -> None:
    """An event without any cost (repeated 0 times) fits a full budget, and changes nothing but the count."""
    rules = rules_for(1.0, 0.0)
    full = Sums(rules.limits, active=1)
    assert full.order_for(amount_of(rules, (0.0,), 0.0), rules) == math.inf
    assert full.order_for(amount_of(rules, (5e-324,), 0.0), rules) is None


def test_offsets_have_an_allowance_of_their_own() -> None:
    """Catches a filter that forgets the δ of blocks when the divergence is small."""
    rules = rules_for(1.0, 1e-6)
    small = (0.0,) * len(rules.orders)
    assert Sums.empty(rules).order_for(amount_of(rules, small, 5e-7), rules) is not None
    assert Sums.empty(rules).order_for(amount_of(rules, small, math.nextafter(5e-7, 1)), rules) is None
    assert Sums.empty(rules_for(1.0, 0.0)).order_for(Amount((0,), 1), rules_for(1.0, 0.0)) is None


def test_the_whole_budget_is_given_only_while_nothing_stands() -> None:
    """Catches a switch to basic composition that is made after an output exists, and so could depend on it."""
    rules = rules_for(1.0, 1e-6)
    everything = amount_of(rules, block_values(1.0, rules.orders), 1e-6, whole=True)
    nothing = amount_of(rules, (0.0,) * len(rules.orders), 0.0)
    empty = Sums.empty(rules)
    assert empty.order_for(everything, rules) == math.inf
    assert empty.after(nothing).order_for(everything, rules) is None
    taken = empty.after(everything)
    assert taken.basic
    assert taken.order_for(amount_of(rules, (5e-324,) * len(rules.orders), 0.0), rules) is None
    assert taken.without(everything, rules) == empty


def test_finite_orders_are_closed_after_the_switch() -> None:
    """Catches a filter that lets Rényi orders use a share of δ that the switch has given to order ∞."""
    rules = rules_for(1.0, 1e-6)
    half = amount_of(rules, block_values(0.5, rules.orders), 1e-6, whole=True)
    taken = Sums.empty(rules).after(half)
    gaussian = amount_of(rules, (*(0.001 for _ in rules.orders[:-1]), math.inf), 0.0)
    assert Sums.empty(rules).order_for(gaussian, rules) is not None
    assert taken.order_for(gaussian, rules) is None
    assert taken.order_for(amount_of(rules, block_values(0.5, rules.orders), 0.0), rules) == math.inf


def test_sums_cannot_become_negative() -> None:
    """Catches an abort of something that was never counted."""
    rules = rules_for(1.0, 1e-6)
    one = amount_of(rules, (0.1,) * len(rules.orders), 0.0)
    two = amount_of(rules, (0.2,) * len(rules.orders), 0.0)
    with pytest.raises(LedgerError, match="smaller than an entry"):
        Sums.empty(rules).after(one).without(two, rules)
    with pytest.raises(LedgerError, match="smaller than an entry"):
        Sums.empty(rules).after(two).without(one, rules)


@given(budgets(), st.floats(0.01, 1.0))
def test_what_is_said_to_be_left_fits(rules: Rules, part: float) -> None:
    """Catches a refusal that promises more than the budget would take."""
    sums = Sums.empty(rules).after(amount_of(rules, block_values(rules.epsilon * part, rules.orders), rules.delta / 4))
    epsilon, delta = largest_block(rules, sums)
    offset = min(delta, rules.delta / 4)
    assert sums.order_for(amount_of(rules, block_values(epsilon, rules.orders), offset), rules) is not None
    more = amount_of(rules, block_values(epsilon * 1.001 + 1e-9, rules.orders), 0.0)
    assert sums.order_for(more, rules) is None


@pytest.mark.parametrize("wanted", [(1.0,), (0.5, 2.0), (float("nan"),), (True,), ("4",)])
def test_orders_that_are_none_are_refused(wanted: tuple[float, ...]) -> None:
    """Catches Rényi orders at which no conversion holds."""
    with pytest.raises(InvalidInput, match="orders"):
        rules_for(1.0, 1e-6, wanted)


def test_orders_of_no_use_are_refused() -> None:
    """At order 2 a share of 1e-6 costs more than ε = 1, so the order would only take δ from the others."""
    with pytest.raises(InvalidInput, match="nothing can ever fit"):
        rules_for(1.0, 1e-6, (2.0, 64.0))
    assert rules_for(1.0, 1e-6, (64, 32.0, math.inf)).orders == (32.0, 64.0, math.inf)
    with pytest.raises(InvalidInput, match="finite orders"):
        rules_for(1.0, 0.0, (32.0,))


@given(st.floats(0.1, 50.0), st.floats(1e-12, 1e-5))
def test_the_usual_orders_waste_little(epsilon: float, delta: float) -> None:
    """Under the usual orders, Gaussian noise gets at least 2/3 of the ρ that one best order with all of δ would give.

    Catches a ladder of orders that misses the useful ones.
    """
    rules = rules_for(epsilon, delta)
    whole, bits = grid.down(delta, grid.bits_for(delta)), (grid.bits_for(delta), grid.bits_for(epsilon))
    ladder = [1 + 2 ** (k / 8) for k in range(-16, 120)]
    best = max(orders.limit(order, epsilon, whole, *bits) / order for order in ladder)
    ours = max(most / order for order, most in zip(rules.orders[:-1], rules.limits[:-1], strict=True))
    assert 3 * ours >= 2 * best
