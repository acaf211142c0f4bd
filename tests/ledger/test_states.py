"""Reserved, drawing, committed, aborted: which steps exist, what they do to the sums, and who may take them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from privet.core.errors import BudgetExceeded, InvalidInput, LedgerError, NotProven
from privet.core.event import Composed, Gaussian, Laplace, NonPrivate, Pure, Repeated, Sampled, ShuffledEpoch
from privet.core.unit import Neighbours, Unit
from privet.ledger import Charge, Form, Ledger, State, Statement

SMALL = Laplace(100.0)


def at(ledger: Ledger, state: State) -> Charge:
    """A charge that has come to this state."""
    charge = ledger.reserve("clinic", SMALL, purpose="count")
    if state is State.ABORTED:
        charge.abort()
    if state in (State.DRAWING, State.COMMITTED):
        charge.draw()
    if state is State.COMMITTED:
        charge.commit()
    return charge


def test_a_charge_is_drawn_and_committed(ledger: Ledger) -> None:
    """The ordinary way, and what the ledger shows of it."""
    charge = ledger.reserve("clinic", SMALL, purpose="mean age")
    assert ledger.entry(charge.id).state is State.RESERVED
    with charge.drawing() as same:
        assert same is charge
        assert ledger.entry(charge.id).state is State.DRAWING
    entry = ledger.entry(charge.id)
    assert (entry.state, entry.event, entry.purpose, entry.form) == (State.COMMITTED, SMALL, "mean age", Form.CURVE)
    assert entry.reserved <= entry.changed
    assert ledger.verify("clinic")


def test_a_reservation_counts_at_once_and_an_abort_gives_it_back_exactly(ledger: Ledger) -> None:
    """Catches a ledger that counts only what is committed: two processes could then both take the last ε."""
    fresh = ledger.budget("clinic")
    first = ledger.reserve("clinic", SMALL)
    between = ledger.budget("clinic")
    assert all(used > 0 for used in between.used)
    second = ledger.reserve("clinic", Laplace(70.0))
    first.abort()
    second.abort()
    after = ledger.budget("clinic")
    assert after.used == fresh.used
    assert (after.active, after.entries) == (0, 2)
    assert ledger.verify("clinic")


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("step", [Charge.draw, Charge.commit, Charge.abort])
def test_only_the_three_steps_exist(file_ledger: Ledger, state: State, step: Callable[[Charge], object]) -> None:
    """Catches a refund after drawing, a second draw under one charge, and a commit of what was never drawn."""
    allowed = {(State.RESERVED, Charge.draw), (State.RESERVED, Charge.abort), (State.DRAWING, Charge.commit)}
    charge = at(file_ledger, state)
    before = file_ledger.head("clinic")
    if (state, step) in allowed:
        step(charge)
        assert file_ledger.entry(charge.id).state is charge.state is not state
    else:
        with pytest.raises(LedgerError, match=charge.id):
            step(charge)
        assert file_ledger.entry(charge.id).state is charge.state is state
        assert file_ledger.head("clinic") == before
    assert file_ledger.verify("clinic")


@pytest.mark.parametrize("state", [State.DRAWING, State.COMMITTED])
def test_the_whole_charge_stays_once_anything_may_have_been_drawn(ledger: Ledger, state: State) -> None:
    """Catches `release` as a way round the rule that `abort` keeps."""
    charge = at(ledger, state)
    used = ledger.budget("clinic").used
    with pytest.raises(LedgerError, match="the whole charge stays"):
        ledger.release(charge.id)
    assert ledger.budget("clinic").used == used


def test_a_stale_reservation_can_be_released_and_then_not_drawn(ledger: Ledger) -> None:
    """Catches a process that wakes up and draws under a charge that was given away meanwhile."""
    sleeping = at(ledger, State.RESERVED)
    assert ledger.release(sleeping.id).state is State.ABORTED
    with pytest.raises(LedgerError, match="was aborted"):
        sleeping.draw()


def test_an_error_while_drawing_keeps_the_charge(ledger: Ledger) -> None:
    """Catches a context manager that tidies up by giving the charge back."""
    charge = ledger.reserve("clinic", SMALL)
    with pytest.raises(ZeroDivisionError), charge.drawing():
        _ = 1 / 0
    assert ledger.entry(charge.id).state is State.DRAWING
    assert ledger.budget("clinic").active == 1


def test_a_stopped_run_resumes_under_its_charge(ledger: Ledger) -> None:
    """No second charge; and whoever held the charge before can no longer finish it."""
    first = ledger.reserve("clinic", SMALL, resumable=True)
    first.draw()
    used = ledger.budget("clinic").used
    assert first.token is not None
    second = ledger.resume(first.id, first.token)
    assert (second.id, second.event, second.state) == (first.id, first.event, State.DRAWING)
    with pytest.raises(LedgerError, match="resumed by another process"):
        first.commit()
    second.commit()
    assert ledger.budget("clinic").used == used
    assert ledger.verify("clinic")
    with pytest.raises(LedgerError, match="nothing to resume"):
        ledger.resume(first.id, first.token)


def test_resuming_needs_the_token_of_a_run_that_was_meant_to(ledger: Ledger) -> None:
    """Catches a query that is drawn twice for one charge: it has no checkpoint, so it cannot be resumed."""
    query = at(ledger, State.DRAWING)
    assert query.token is None
    with pytest.raises(LedgerError, match="not reserved as resumable"):
        ledger.resume(query.id, "")
    run = ledger.reserve("clinic", SMALL, resumable=True)
    with pytest.raises(LedgerError, match="token is not that"):
        ledger.resume(run.id, "0" * 32)
    assert run.token is not None
    waiting = ledger.resume(run.id, run.token)
    assert waiting.state is State.RESERVED
    waiting.draw()
    with pytest.raises(LedgerError, match="drawing already"):
        run.draw()


def test_nothing_shown_holds_tokens(ledger: Ledger) -> None:
    """Catches a token, or what could be compared with it, in output that may be shared."""
    run = ledger.reserve("clinic", SMALL, resumable=True)
    shown = ledger.show("clinic")
    assert run.token is not None
    assert run.token not in shown.to_json()
    assert shown.entries[0].resumable
    assert Statement.from_json(shown.to_json()) == shown


def test_what_is_not_private_is_refused_with_its_reason(ledger: Ledger) -> None:
    """Catches a budget that admits an event of infinite ε, or one without noise."""
    with pytest.raises(BudgetExceeded, match="plain labels were read"):
        ledger.reserve("clinic", Composed((SMALL, NonPrivate("plain labels were read"))))
    with pytest.raises(BudgetExceeded, match="without noise"):
        ledger.reserve("clinic", Gaussian(0.0))
    assert ledger.budget("clinic").entries == 0


def test_every_event_is_priced_for_the_budgets_unit_or_refused(ledger: Ledger) -> None:
    """Catches a price for other neighbours than the budget protects: a shuffled epoch says nothing about add/remove."""
    epoch = Sampled(Gaussian(50.0), by=ShuffledEpoch(10))
    with pytest.raises(NotProven):
        ledger.reserve("clinic", epoch)
    assert ledger.budget("clinic").entries == 0
    ledger.create("replaced", epsilon=1.0, delta=1e-6, unit=Unit(neighbours=Neighbours.REPLACE))
    ledger.create("blanked", epsilon=1.0, delta=1e-6, unit=Unit(neighbours=Neighbours.ZERO_OUT))
    for name in ("replaced", "blanked"):
        ledger.reserve(name, epoch)
    replaced, blanked = ledger.budget("replaced"), ledger.budget("blanked")
    assert replaced.used[0] == pytest.approx(4 * blanked.used[0], rel=1e-9)


def test_units_of_many_records_cost_more(ledger: Ledger) -> None:
    """Catches a budget for users that is charged as one for records."""
    ledger.create("users", epsilon=1.0, delta=1e-6, unit=Unit(records=3))
    ledger.reserve("users", Pure(0.01))
    ledger.reserve("clinic", Pure(0.01))
    assert ledger.budget("users").used[-1] == pytest.approx(3 * ledger.budget("clinic").used[-1], rel=1e-9)


def test_an_event_that_does_nothing_costs_nothing(ledger: Ledger) -> None:
    """Repeated 0 times is not an error, and takes nothing away."""
    ledger.reserve("clinic", Repeated(Gaussian(1.0), 0)).draw()
    assert set(ledger.budget("clinic").used) == {0.0}


def test_names_are_unique_and_plain(ledger: Ledger) -> None:
    """Catches a second budget for the same data set, which would double what it may spend."""
    with pytest.raises(LedgerError, match="already"):
        ledger.create("clinic", epsilon=9.0, delta=1e-6)
    for name in ("", " ", "a\nb", "nul\0", "x" * 201):
        with pytest.raises(InvalidInput, match="name"):
            ledger.create(name, epsilon=1.0, delta=1e-6)
    for purpose in ("tab\there", "x" * 1001):
        with pytest.raises(InvalidInput, match="purpose"):
            ledger.reserve("clinic", SMALL, purpose=purpose)
    with pytest.raises(LedgerError, match="no budget for 'hospital'"):
        ledger.reserve("hospital", SMALL)
    with pytest.raises(LedgerError, match="no entry"):
        ledger.release("0123456789abcdef")
    with pytest.raises(InvalidInput, match="event"):
        ledger.reserve("clinic", "Laplace")  # type: ignore[arg-type]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (-1.0, 0.1), (float("nan"), 0.1), (1.0, 1.0), (1.0, -0.1)])
def test_budgets_without_sense_are_refused(file_ledger: Ledger, epsilon: float, delta: float) -> None:
    """Catches a budget that would admit everything or nothing."""
    with pytest.raises(InvalidInput, match=r"epsilon|delta"):
        file_ledger.create("other", epsilon=epsilon, delta=delta)


def test_budgets_are_listed_and_shown(ledger: Ledger) -> None:
    """The last entries come first, and the open ones can be asked for."""
    ledger.create("archive", epsilon=2.0, delta=0.0)
    done = [at(ledger, State.COMMITTED) for _ in range(3)]
    waiting = at(ledger, State.RESERVED)
    assert [budget.name for budget in ledger.list()] == ["archive", "clinic"]
    shown = ledger.show("clinic", last=2)
    assert [entry.id for entry in shown.entries] == [waiting.id, done[-1].id]
    assert [entry.id for entry in ledger.show("clinic", open_only=True).entries] == [waiting.id]
    assert ledger.show("clinic", last=0, planned=False).planned is None
