"""A step: what is summed, what is added to it, what it is divided by, and what the optimizer is given.

Everything is seeded. The rate stated is the chance that a correct step fails under a seed picked at random.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import pytest
import torch
from torch import Tensor, nn

from privet.core.errors import InvalidInput
from privet.core.event import Joint, Poisson, Repeated, Sampled
from privet.training import Adaptive, Flat, Performance, UserRows
from privet.training.clipping import Clipping
from tests.training.conftest import Attach, gradient, squared, trained_on
from tests.training.models import filled, normal
from tests.training.reference import loop

ALARM = 6.0
"""Deviations that a measured one may be off: a false alarm in 5e8."""


def wide() -> nn.Module:
    return filled(nn.Linear(100, 100)).float()


# --- Noise -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "clip", "batch_size"), [(1.0, 1.0, 1), (0.7, 3.0, 16), (2.0, 0.1, 256)])
def test_noise_without_gradients(noise: float, clip: float, batch_size: int, attach: Attach) -> None:
    """Pitfall 15. The released gradient has deviation σC/L. Catches noise for a sum on a mean, and the reverse."""
    model = wide()
    run = attach(model, normal(20, 100).float(), noise_multiplier=noise, clip=clip, batch_size=batch_size)
    trained_on(run, model, lambda model, x: squared(model, x) * 0)
    found = gradient(model)
    expected = noise * clip / batch_size
    assert abs(float(found.square().mean().sqrt()) / expected - 1) < ALARM / sqrt(2 * found.numel())
    assert abs(float(found.mean())) < ALARM * expected / sqrt(found.numel())
    assert float(found[1:] @ found[:-1]) / float(found @ found) < ALARM / sqrt(found.numel())


def test_noise_is_drawn_once_a_step(attach: Attach, network: nn.Module, recorded: list[tuple[int, float]]) -> None:
    """Pitfall 5. Catches noise for each micro-batch, or none for an empty batch."""
    for runs, micro in enumerate((1, 3, None), 1):
        performance = Performance(micro_batch=micro)
        rows = normal(9, 4).float()
        run = attach(network, rows, steps=5, sample_rate=0.3, noise_multiplier=1.0, performance=performance)
        trained_on(run, network)
        assert run.steps == 5
        assert recorded == [(51, 1.0)] * 5 * runs


def meddle_zero(model: nn.Module, losses: Tensor) -> None:
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.zero_()  # optimizer.zero_grad(set_to_none=False)


def meddle_clip(model: nn.Module, losses: Tensor) -> None:
    nn.utils.clip_grad_norm_(model.parameters(), 1e-3)


def meddle_backward(model: nn.Module, losses: Tensor) -> None:
    losses.sum().backward(retain_graph=True)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("meddle", [meddle_zero, meddle_clip, meddle_backward])
def test_gradients_of_the_last_step_are_the_users(meddle: Callable[..., None], attach: Attach) -> None:
    """A loop may clear, clip or fill `.grad` between two steps, as loops do. Catches a buffer of noise that is also the
    last step's `.grad`: clearing it takes the noise away, and `backward` adds unclipped gradients to it.
    """
    found = []
    for meddling in (True, False):
        model = filled(nn.Linear(4, 3)).float()
        run = attach(model, normal(9, 4).float(), steps=3, noise_multiplier=5.0)
        for x in run.batches():
            losses = squared(model, x)
            if meddling:
                meddle(model, losses)
            run.step(losses)
        found.append(gradient(model))
    assert torch.equal(*found)


# --- Micro-batches, empty batches ------------------------------------------------------------------------------------


@pytest.mark.parametrize("clipping", [Flat(), Adaptive(count_noise=0.5)], ids=["flat", "adaptive"])
@pytest.mark.parametrize("users", [False, True])
def test_micro_batches_change_nothing(clipping: Clipping, users: bool, attach: Attach) -> None:
    """Pitfalls 5 and 14. Catches a result, a batch or a clip that depends on how the batch was cut."""
    rows, owners = normal(40, 4).float(), [number // 3 for number in range(40)] if users else None
    found = []
    for micro in (None, 1, 3, 64):
        model = filled(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))).float()
        run = attach(
            model,
            rows,
            steps=4,
            sample_rate=0.5,
            batch_size=10,
            noise_multiplier=0.5,
            clipping=clipping,
            users=None if owners is None else UserRows(owners, cap=2),
            performance=Performance(micro_batch=micro),
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        )
        trained_on(run, model)
        found.append(torch.cat([torch.tensor([run.clip]), *(p.detach().flatten() for p in model.parameters())]))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("micro", [None, 2])
@pytest.mark.parametrize("clipping", [Flat(), Adaptive()], ids=["flat", "adaptive"])
def test_empty_batches(clipping: Clipping, micro: int | None, attach: Attach) -> None:
    """Pitfall 22. Noise, a step, a count, no exception; the row that stands in for the batch adds nothing, not even if
    its loss is no number.
    """
    model, before = wide(), wide()
    run = attach(
        model,
        normal(5, 100).float(),
        sample_rate=1e-12,
        steps=3,
        noise_multiplier=1.0,
        clipping=clipping,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        performance=Performance(micro_batch=micro),
    )
    variance = 0.0
    for x in run.batches():
        variance += run.clip**2
        assert run.step(squared(model, x) / 0)
    assert run.steps == 3
    pairs = zip(model.parameters(), before.parameters(), strict=True)
    moved = torch.cat([(now - then).detach().flatten() for now, then in pairs])
    assert abs(float(moved.square().mean()) / variance - 1) < ALARM * sqrt(2 / moved.numel())


@pytest.mark.parametrize("quantile", [0.01, 0.99])
def test_the_noise_follows_an_adaptive_clip(quantile: float, attach: Attach) -> None:
    """Catches noise of the clip that the plan began with, where gradients are clipped to another; false alarm: 1e-8."""
    model = wide()
    run = attach(
        model,
        normal(5, 100).float(),
        sample_rate=1e-12,
        steps=4,
        noise_multiplier=1.5,
        clipping=Adaptive(quantile=quantile, count_noise=1e-6, rate=2.0),
    )
    clips = []
    for x in run.batches():
        clips.append(run.clip)
        run.step(squared(model, x))
        noise = gradient(model).double()
        assert abs(float(noise.square().mean()) / (1.5 * clips[-1]) ** 2 - 1) < ALARM * sqrt(2 / noise.numel())
    assert (clips[-1] > 10) == (quantile > 0.5)
    assert (clips[-1] < 0.1) == (quantile < 0.5)


# --- Rows that are no numbers ----------------------------------------------------------------------------------------

SPOILED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "nan": lambda losses, bad: losses * torch.where(bad, float("nan"), 1.0),
    "infinite": lambda losses, bad: losses * torch.where(bad, float("inf"), 1.0),
    "infinite slope": lambda losses, bad: (losses - torch.where(bad, losses.detach(), -1.0)).abs().sqrt(),
}
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Linear(4, 4),
    "convolution": lambda: nn.Conv1d(4, 4, 1),
    "layer norm": lambda: nn.LayerNorm(4),
    "recurrent": lambda: nn.GRU(4, 4, batch_first=True),
    "without a rule": lambda: nn.Bilinear(4, 4, 3),
}


@pytest.mark.parametrize("spoil", SPOILED)
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("step", [1, 2])
def test_rows_that_are_no_numbers(spoil: str, layer: str, step: int, attach: Attach) -> None:
    """Pitfall 21. Such a row adds exactly nothing, and the step happens, on the first batch and later. Catches 0 · NaN,
    and a survey of the model that takes a NaN for coupled examples.
    """
    found = []
    for counted in (1.0, 0.0):
        below, above = nn.Linear(4, 4), LAYERS[layer]()
        model = filled(nn.ModuleList([below, above])).float()
        run = attach(model, (normal(6, 4, 4).float(), torch.arange(6)), steps=2)
        for x, place in run.batches():
            hidden = below(x)
            output = above(hidden, x) if isinstance(above, nn.Bilinear) else above(hidden)
            losses = (output if isinstance(output, Tensor) else output[0]).flatten(1).square().sum(1)
            here = (place == 1) & (run.steps == step)
            # The second time the row is left out instead.
            run.step(SPOILED[spoil](losses, here & bool(counted)) * torch.where(here, counted, 1.0))
        found.append(gradient(model))
    assert bool(found[0].isfinite().all())
    torch.testing.assert_close(found[0], found[1], rtol=1e-6, atol=1e-7)


# --- Units of several rows -------------------------------------------------------------------------------------------


def near(found: Tensor, expected: Tensor) -> None:
    """Up to the room that clipping leaves for rounding."""
    assert float((found - expected).norm()) <= 1e-5 * float(expected.norm())


def test_copies_are_averaged_before_clipping(attach: Attach, network: nn.Module) -> None:
    """Pitfall 26. Three copies of each row, next to each other. Catches copies that are clipped one by one, or summed.

    In another order they are refused: nobody could tell whether ids and rows are in the same one.
    """
    network, rows, scales = network.double(), normal(5, 4), torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    each = [torch.cat(list(loop(network, squared, (rows * scale,)).values()), 1) for scale in scales]
    means = torch.stack(each).mean(0)
    clip = float(means.norm(dim=1).median())
    run = attach(network, rows, clip=clip)
    for x in run.batches():
        units = torch.arange(len(x))
        copies = x.repeat_interleave(3, 0) * scales.repeat(len(x))[:, None]
        if len(x) > 1:
            with pytest.raises(InvalidInput, match="repeat_interleave"):
                run.step(squared(network, copies), groups=units.repeat(3))
        run.step(squared(network, copies), groups=units.repeat_interleave(3))
    expected = (means * (clip / means.norm(dim=1).clamp(min=clip))[:, None]).sum(0)
    near(gradient(network), expected)


def test_users_are_clipped_as_one(attach: Attach, network: nn.Module) -> None:
    """Pitfall 27. All rows of a user are averaged and clipped once, however many there are. Catches rows that are
    clipped one by one under a guarantee for users.
    """
    network, rows = network.double(), normal(12, 4) * 3
    owners = torch.tensor([0] * 6 + [1] * 3 + [2] * 2 + [3])
    each = torch.cat(list(loop(network, squared, (rows,)).values()), 1)
    means = torch.stack([each[owners == user].mean(0) for user in range(4)])
    clip = float(means.norm(dim=1).min() * 0.9)
    run = attach(network, rows, users=UserRows(owners, cap=6), clip=clip)
    trained_on(run, network)
    near(gradient(network), (means * clip / means.norm(dim=1)[:, None]).sum(0))


def test_a_user_cannot_be_split(attach: Attach, network: nn.Module) -> None:
    """Groups that put one user's rows into several units would multiply what that user moves: refused."""
    run = attach(network, 100 * normal(12, 4).float(), users=UserRows([number // 3 for number in range(12)], cap=3))
    with pytest.raises(InvalidInput, match="groups"):  # noqa: PT012
        for x in run.batches():
            run.step(squared(network, x), groups=torch.arange(len(x)) % 2)


@pytest.mark.parametrize(
    "groups",
    [
        torch.tensor([0, 1, -1]),
        torch.tensor([0, 1, 9]),
        torch.tensor([0.0, 1, 2]),
        torch.tensor([0, 1]),
        torch.tensor([[0, 1, 2]]),
        torch.tensor([True, False, True]),
    ],
)
def test_groups_that_are_none(groups: Tensor, attach: Attach, network: nn.Module) -> None:
    run = attach(network, normal(3, 4).float())
    with pytest.raises(InvalidInput, match="groups"):
        run.step(squared(network, next(run.batches())), groups=groups)


# --- One row more ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [1.0, 1e6, float("nan")])
@pytest.mark.parametrize("rows", [9, 10, 11])
def test_a_neighbour_changes_nothing_but_the_sum(
    rows: int, extra: float, attach: Attach, recorded: list[tuple[int, float]]
) -> None:
    """Record and replay on D and on D with one row more. Pitfall 14: the divisor, the noise, the steps, the event are
    the same, and the sums before noise differ by at most the clip.
    """
    data, runs = normal(12, 4).float(), []
    data[rows] *= extra
    for count in (rows, rows + 1):
        model = filled(nn.Linear(4, 3)).float()
        run = attach(model, data[:count], batch_size=10, clip=0.5, noise_multiplier=2.0, steps=3)
        trained_on(run, model)
        runs.append(
            (gradient(model).double() * 10, list(recorded), run.steps, run.event, run.guarantee(1e-5), run.unit)
        )
        recorded.clear()
    assert runs[0][1:] == runs[1][1:]
    assert runs[0][1] == [(15, 2.0 * 0.5 / 10)] * 3
    assert float((runs[0][0] - runs[1][0]).norm()) <= 0.5 * (1 + 1e-6)


def test_the_event_is_what_was_done(attach: Attach, network: nn.Module) -> None:
    """Sampling rate, noise and steps, and the noisy count where one is released."""
    rows = normal(9, 4).float()
    run = attach(network, rows, sample_rate=0.25, steps=7, noise_multiplier=1.5, clipping=Adaptive(count_noise=4.0))
    leaf = Adaptive(count_noise=4.0).leaf(1.5)
    assert isinstance(leaf, Joint)
    assert run.event == Repeated(Sampled(leaf, Poisson(0.25)), 7)
