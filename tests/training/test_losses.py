"""Losses that are not what they seem, in a loop of one's own: refused, or said when it happens."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from privet import Ledger
from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.training import DPSGD, PrivateWarning, Run, RunError, TrainingWarning
from tests.training.models import filled, normal

Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]
ROWS = 200
DATA = normal(ROWS, 4).float(), torch.arange(ROWS) * 7 % 11 % 3


def network(dropout: float = 0.0) -> nn.Module:
    layers = [nn.Linear(4, 6), nn.Tanh(), nn.Dropout(dropout), nn.Linear(6, 3)]
    return filled(nn.Sequential(*layers)).float()


def attached(model: nn.Module, batch_size: int, steps: int = 8, **arguments: Any) -> Run:
    plan = DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=batch_size, steps=steps, sample_rate=batch_size / ROWS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return plan.attach(model, optimizer, DATA, rng=SeededRng(5), **arguments)


def loop(run: Run, model: nn.Module, loss: Loss) -> None:
    for x, y in run.batches():
        run.step(loss(model, x, y))


def entropy(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(model(x), y, reduction="none")


def mixup(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    other = torch.randperm(len(x))
    output = model(0.7 * x + 0.3 * x[other])
    mixed: Tensor = 0.7 * F.cross_entropy(output, y, reduction="none")
    return mixed + 0.3 * F.cross_entropy(output, y[other], reduction="none")


def class_weights(y: Tensor) -> Tensor:
    return 1 / y.bincount(minlength=3).clamp(min=1).float()


SCALED: dict[str, Loss] = {
    "length": lambda m, x, y: entropy(m, x, y) / len(x),
    "length, + 0": lambda m, x, y: entropy(m, x, y) / len(x) + 0,
    "inverse length, cloned": lambda m, x, y: (entropy(m, x, y) * (1 / len(x))).clone() * 1,
    "div": lambda m, x, y: entropy(m, x, y).div(y.shape[0]),
    "tensor": lambda m, x, y: entropy(m, x, y) / torch.tensor(float(len(x))),
    "times length": lambda m, x, y: entropy(m, x, y) * len(x),
    "labels that count": lambda m, x, y: entropy(m, x, y) / (y != 2).sum(),
    "detached sum": lambda m, x, y: entropy(m, x, y) / entropy(m, x, y).sum().detach(),
    "class weights": lambda m, x, y: F.cross_entropy(m(x), y, weight=class_weights(y), reduction="none"),
    "(B, 1) - (B,)": lambda m, x, y: (m(x)[:, :1] - y.float()).square().mean(1),
}
"""What the graph between model and losses shows, too."""
COUPLED: dict[str, Loss] = SCALED | {
    "softmax over the batch": lambda m, x, y: entropy(m, x, y) * entropy(m, x, y).detach().softmax(0),
    "weights by row": lambda m, x, y: entropy(m, x, y) * class_weights(y)[y],
    "mixup": mixup,
    "rows centered": lambda m, x, y: entropy(m, x - x.mean(0), y),
}


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("batch_size", [8, 16, 40])
@pytest.mark.parametrize("name", COUPLED)
def test_losses_that_depend_on_other_rows_are_refused(name: str, batch_size: int, dropout: float) -> None:
    """`losses / len(batch)` passed at batch sizes 8 and 16, and with `+ 0` at any; mixup and `(B, 1) − (B,)` passed.
    Catches a run that never tries its loop with other rows, or only where nothing is drawn at random.
    """
    torch.manual_seed(1)
    model = network(dropout)
    run = attached(model, batch_size)
    with pytest.raises(InvalidInput, match=r"^losses"):
        loop(run, model, COUPLED[name])
    assert run.steps <= 4
    run.close()


@pytest.mark.filterwarnings("ignore:the loop gives other losses")
@pytest.mark.parametrize("name", SCALED)
def test_losses_scaled_by_the_batch_are_refused_in_a_loop_that_cannot_be_repeated(name: str) -> None:
    """A loop with a random generator of its own cannot be rehearsed. Catches a factor of the losses that changes from
    piece to piece of one step: only the graph shows it.
    """
    own = torch.Generator().manual_seed(3)
    model = network()
    run = attached(model, 16)

    def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return SCALED[name](model, x + 0.1 * torch.randn(x.shape, generator=own), y)

    with pytest.raises(InvalidInput, match=r"changed within a step|every row of the batch with every other"):
        loop(run, model, loss)
    run.close()


SOUND: dict[str, Loss] = {
    "plain": entropy,
    "fixed factor": lambda m, x, y: entropy(m, x, y) * 0.125 / 3,
    "weights of own rows": lambda m, x, y: entropy(m, x, y) * torch.tensor([1.0, 2.0, 5.0])[y],
    "fixed class weights": lambda m, x, y: F.cross_entropy(m(x), y, torch.tensor([1.0, 2.0, 5.0]), reduction="none"),
    "noise on rows": lambda m, x, y: entropy(m, x + 0.1 * torch.randn_like(x), y),
    "(B, 1) - (B, 1)": lambda m, x, y: (m(x)[:, :1] - y[:, None].float()).square().mean(1),
    "half precision": lambda m, x, y: entropy(m.bfloat16(), x.bfloat16(), y).float(),
}


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("batch_size", [2, 8, 16, 40])
@pytest.mark.parametrize("name", SOUND)
def test_losses_of_their_own_rows_are_trained_on(name: str, batch_size: int, dropout: float) -> None:
    """Catches a check that takes rounding, dropout or a public factor for other rows."""
    torch.manual_seed(1)
    model = network(dropout)
    if name == "half precision":
        model = model.bfloat16()
    run = attached(model, batch_size, steps=9)
    loop(run, model, SOUND[name])
    assert run.steps == 9
    run.release()


def test_losses_with_a_factor_that_follows_the_step_are_trained_on() -> None:
    """A schedule of loss weights is public. Catches a check that wants one factor for the whole run."""
    model = network()
    run = attached(model, 16, steps=9)
    loop(run, model, lambda m, x, y: entropy(m, x, y) * (1 + run.steps / 10))
    assert run.steps == 9
    run.release()


def test_losses_of_a_grad_scaler_are_refused() -> None:
    """The documentation says that loss scaling is refused. Catches a factor of 65536, by which every gradient would be
    clipped.
    """
    model, scaler = network(), torch.amp.GradScaler("cpu")
    run = attached(model, 16)
    with pytest.raises(InvalidInput, match="GradScaler"):
        loop(run, model, lambda m, x, y: scaler.scale(entropy(m, x, y)))
    run.close()


# --- The rehearsal itself --------------------------------------------------------------------------------------------


def test_a_rehearsal_changes_nothing() -> None:
    """The weights are those of a run without one, to the bit. Catches a rehearsal that adds to the sum, draws random
    numbers or leaves the model in eval mode.
    """
    found = []
    for skip in (False, True):
        torch.manual_seed(1)
        model = network(0.3)
        run = attached(model, 16)
        passes = 0
        for x, y in run.batches():
            passes += run.rehearsing
            # Losses of zero cannot depend on other rows; whatever a rehearsal is given must not matter.
            run.step(entropy(model, x, y) * (0.0 if skip and run.rehearsing else 1.0))
            assert model[2].training  # type: ignore[index]
        assert passes > 3
        found.append(torch.cat([each.detach().flatten() for each in run.release().value.parameters()]))
    assert torch.equal(*found)


def test_a_rehearsal_goes_on_where_each_batch_is_asked_for() -> None:
    """`next(run.batches())` makes a new loop each time. Catches a rehearsal that ends with the loop that began it."""
    model = network()
    run = attached(model, 16, steps=2)
    done = 0
    while done < 2:
        x, y = next(run.batches())
        done += run.step(entropy(model, x, y))
    assert run.steps == 2
    run.release()


def test_a_rehearsal_that_breaks_off_begins_again() -> None:
    """Catches a model that stays in the mode, or random numbers in the state, of a pass that got no losses."""
    torch.manual_seed(1)
    model = network(0.3)
    run = attached(model, 16, steps=1)
    state = torch.random.get_rng_state()
    batches = run.batches()
    next(batches)
    torch.randn(9)
    with pytest.raises(RunError, match="got no step"):
        next(batches)
    next(run.batches())  # the first pass again
    assert run.rehearsing
    assert torch.equal(state, torch.random.get_rng_state())
    loop(run, model, entropy)
    assert run.steps == 1


def test_a_refused_rehearsal_spends_nothing_and_is_repeated(tmp_path: Path) -> None:
    """Whoever catches the error and goes on meets it again, and the charge is given back. Catches a refusal that is
    forgotten in the next step, in which no rehearsal would be due.
    """
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.create("clinic", epsilon=900.0, delta=1e-2)
    model = network()
    run = attached(model, 16, charge=ledger.budget("clinic"))
    before = [each.detach().clone() for each in model.parameters()]
    for _ in range(5):
        with pytest.raises(InvalidInput, match="divided by"):
            loop(run, model, COUPLED["length"])
    assert all(map(torch.equal, before, model.parameters()))
    run.close()
    assert ledger.budget("clinic").epsilon_left == pytest.approx(900.0)


@pytest.mark.parametrize("name", COUPLED)
def test_explain_and_selftest_refuse_what_the_run_refuses(name: str) -> None:
    """Catches an explanation, or a self-test, that finds nothing wrong with losses that a run will not take."""
    torch.manual_seed(1)
    model = network()
    run = attached(model, 16)
    # Made-up labels are all 0, and rows that are compared with equal labels do not differ: so these are numbers.
    data = (DATA[0], DATA[1].float()) if name.startswith("(B") else DATA
    assert run.plan.explain(model, data, loss=lambda batch: COUPLED[name](model, *batch)).refusals
    with pytest.raises((InvalidInput, RunError)):
        run.selftest(lambda batch: COUPLED[name](model, *batch))
    run.close()


def test_explain_and_selftest_refuse_a_grad_scaler() -> None:
    """As the run does."""
    model, scaler = network(), torch.amp.GradScaler("cpu")
    run = attached(model, 16)
    found = run.plan.explain(model, DATA, loss=lambda batch: scaler.scale(entropy(model, *batch)))
    assert "GradScaler" in found.refusals[0]
    with pytest.raises(InvalidInput, match="GradScaler"):
        run.selftest(lambda batch: scaler.scale(entropy(model, *batch)))
    run.close()


# --- Said when it happens --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_losses_that_are_all_nan_are_said_at_once(bad: float) -> None:
    """Fails when a run of noise alone is paid to its end without a word; or when it is said in every step."""
    model = network()
    run = attached(model, 16)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for x, y in run.batches():
            if run.step(entropy(model, x, y) * bad) and run.steps == 1:
                assert len(heard) == 1
                assert run.ignored == 1.0
    assert [each.category for each in heard] == [PrivateWarning]
    assert heard[0].filename == __file__
    assert run.steps == 8
    run.release()


def test_losses_of_which_some_are_nan_are_counted_in_silence() -> None:
    """A single row may not be heard of. Catches a warning about one row, and a count that forgets it."""
    model = network()
    run = attached(model, 40, steps=3)
    loop(run, model, lambda m, x, y: entropy(m, x, y) * torch.where(y == 2, torch.nan, 1.0))
    assert run.ignored is not None
    assert 0.0 < run.ignored < 1.0
    run.release()


def test_eval_mode_is_said_at_the_first_step() -> None:
    """Fails when a run without dropout says nothing; or when it is said of models for which it does not matter."""
    model = network(0.3).eval()
    run = attached(model, 16)
    with pytest.warns(TrainingWarning, match=r"eval mode, in which Dropout does nothing") as heard:
        loop(run, model, entropy)
    assert len(heard) == 1
    assert heard[0].filename == __file__
    for silent in (network(0.3), network(0.0).eval(), network(0.3).train()):
        for module in silent.modules():
            if isinstance(module, nn.Dropout):
                module.eval()  # meant
        loop(attached(silent, 16, steps=1), silent, entropy)


def test_delta_is_needed_before_anything_is_reserved(tmp_path: Path) -> None:
    """Fails when a run is made and paid that cannot state its ε in the end."""
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.create("clinic", epsilon=900.0, delta=1e-2)
    model = network()
    plan = DPSGD(noise_multiplier=1.0, batch_size=16, steps=2, population=ROWS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for delta, problem in ((None, "delta is missing"), (0.0, "delta is 0")):
        with pytest.raises(InvalidInput, match=problem):
            plan.attach(model, optimizer, DATA, charge=ledger.budget("clinic"), delta=delta)
    assert ledger.budget("clinic").epsilon_left == pytest.approx(900.0)
    run = plan.attach(model, optimizer, DATA, charge=ledger.budget("clinic"), delta=1e-5)
    loop(run, model, entropy)
    assert run.release().guarantee == plan.guarantee(1e-5)
