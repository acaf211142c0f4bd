"""Model inversion on digits, where it is known what must come out: about the mean of each class."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from privet.attacks.gradients import match_gradient, shared_gradient
from privet.attacks.inversion import Descent, invert
from privet.attacks.likeness import correlation, total_variation
from privet.attacks.target import Access, target
from privet.core.errors import InvalidInput
from privet.data import named
from privet.ensemble.seeding import generator, initial_weights


@pytest.fixture(scope="module")
def trained() -> tuple[nn.Module, Tensor]:
    """A softmax regression on digits, and the means of their classes."""
    digits = named("digits").train
    rows, labels = torch.from_numpy(digits.x).float()[:, None] / 16, torch.from_numpy(digits.y)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    model.load_state_dict(initial_weights(model, generator("privet", "inversion")))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(100):
        optimizer.zero_grad()
        torch.autograd.backward(F.cross_entropy(model(rows), labels))
        optimizer.step()
    optimizer.zero_grad()
    return model, torch.stack([rows[labels == each].mean(0) for each in range(10)])


def alike(pictures: Tensor, means: Tensor) -> Tensor:
    """[pictures, classes]: correlations, less what all classes have in common."""
    apart, common = pictures - pictures.mean(0), means - means.mean(0)
    return torch.tensor([[correlation(one, other) for other in common] for one in apart])


def test_each_class_comes_out_as_itself(trained: tuple[nn.Module, Tensor]) -> None:
    """Fails when the slope's sign, the labels' order or the bounds are wrong."""
    model, means = trained
    before = [each.clone() for each in model.parameters()]
    found = invert(target(model, 10), (1, 8, 8))
    likeness = alike(found.pictures, means)
    assert (likeness.argmax(1) == torch.arange(10)).all()
    assert likeness.diag().mean() > 0.5
    assert (found.confidences >= 0.99).all()
    assert found.pictures.min() >= 0
    assert found.pictures.max() <= 1
    assert found.queries == 10 * (found.steps + 1)
    assert all((one == other).all() for one, other in zip(before, model.parameters(), strict=True))
    assert model.training
    assert all(each.grad is None for each in model.parameters())
    said = model(found.pictures).softmax(1).gather(1, found.labels[:, None])[:, 0]
    assert torch.allclose(said, found.confidences, atol=1e-5)


class Claiming:
    """A target of one's own that says it is a white box."""

    classes, access = 2, Access.WEIGHTS

    def __init__(self, module: object) -> None:
        if module is not None:
            self.module = module

    def scores(self, inputs: Tensor) -> Tensor:
        """Of nothing."""
        return torch.zeros(len(inputs), 2)

    labels = scores


@pytest.mark.parametrize("module", [None, nn.Linear(2, 2), lambda: "weights"])
@pytest.mark.parametrize("access", [Access.WEIGHTS, Access.SCORES])
def test_a_white_box_without_a_network_is_refused(module: object, access: Access) -> None:
    """Fails when a target that has no network to give, or something else, ends in a traceback."""
    claiming: Any = Claiming(module)
    claiming.access = access
    attacks: list[Any] = [
        lambda: shared_gradient(claiming, torch.zeros(1, 2), torch.tensor([0])),
        lambda: match_gradient(claiming, (torch.zeros(2, 2), torch.zeros(2)), (2,)),
    ]
    if access is Access.WEIGHTS:
        attacks.append(lambda: invert(claiming, (2,)))
    for each in attacks:
        with pytest.raises(InvalidInput, match=r"^target (has access = .* module\(\)|shows scores and no gradients)"):
            each()


def test_scores_are_enough(trained: tuple[nn.Module, Tensor]) -> None:
    """Fails when slopes that are measured differ from those that are computed, or questions are not counted."""
    model, _ = trained
    method = Descent(steps=20, learning_rate=0.05)
    white = invert(target(model, 10), (1, 8, 8), labels=[7, 3], method=method)
    black = invert(target(model, 10, Access.SCORES), (1, 8, 8), labels=[7, 3], method=method)
    assert torch.allclose(white.pictures, black.pictures, atol=1e-3)
    assert (white.pictures - 0.5).abs().max() > 0.1
    assert black.labels.tolist() == [7, 3]
    assert black.queries == 2 * (black.steps + 1) * (1 + 2 * 64)


def test_denoising_makes_pictures_smooth(trained: tuple[nn.Module, Tensor]) -> None:
    """Fails when the penalty or the blur does nothing, or when the start is not where the search begins."""
    seen = target(trained[0], 10)
    rough = total_variation(invert(seen, (1, 8, 8)).pictures)
    assert total_variation(invert(seen, (1, 8, 8), method=Descent(smooth=0.5)).pictures) < 0.9 * rough
    assert total_variation(invert(seen, (1, 8, 8), method=Descent(blur=0.4)).pictures) < 0.9 * rough
    begun = torch.rand(1, 8, 8, generator=generator("privet", "begun"))
    steps: list[tuple[int, int]] = []
    tiny = Descent(steps=2, learning_rate=1e-6)
    found = invert(seen, (1, 8, 8), labels=[0], method=tiny, start=begun, progress=lambda *told: steps.append(told))
    assert torch.allclose(found.pictures[0], begun, atol=1e-4)
    assert steps == [(1, 2), (2, 2)]


def test_what_cannot_be_inverted_is_refused(trained: tuple[nn.Module, Tensor]) -> None:
    """Fails when labels alone, a wrong shape, no class or NaN give a picture."""
    model, _ = trained
    with pytest.raises(InvalidInput, match="target shows labels alone"):
        invert(target(model, 10, Access.LABELS), (1, 8, 8))
    with pytest.raises(InvalidInput, match=r"shape is \(1, 9, 9\), and the model does not take it"):
        invert(target(model, 10), (1, 9, 9))
    with pytest.raises(InvalidInput, match=r"shape is \(1, 9, 9\), and the model does not take it"):
        invert(target(model, 10, Access.SCORES), (1, 9, 9))
    with pytest.raises(InvalidInput, match="labels are not classes below 10"):
        invert(target(model, 10), (1, 8, 8), labels=[10])
    with pytest.raises(InvalidInput, match="start has the shape"):
        invert(target(model, 10), (1, 8, 8), start=torch.zeros(8, 8))
    line = nn.Linear(64, 10)
    nn.init.constant_(line.weight, float("nan"))
    with pytest.raises(InvalidInput, match="target answers with NaN"):
        invert(target(nn.Sequential(nn.Flatten(), line), 10), (1, 8, 8))
