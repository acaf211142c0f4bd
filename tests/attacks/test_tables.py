"""Attribute inference: what is known of everybody is no leak; what is known of members alone is."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from privet.attacks import Access, Attribute, Pool, attributes, infer_attribute, target
from privet.core.errors import InvalidInput

ROWS = 1500
SECRET = Attribute((3,), torch.tensor([[0.0], [1.0]]), torch.tensor([0.5, 0.5]))


def people(seed: int, tie: float = 0.9, rows: int = ROWS) -> tuple[Tensor, Tensor]:
    """Three open columns and a secret bit; the label is the bit but for some noise."""
    drawn = torch.Generator().manual_seed(seed)
    secret = (torch.rand(rows, generator=drawn) < 0.5).float()
    table = torch.cat([torch.randn(rows, 3, generator=drawn), secret[:, None]], dim=1)
    kept = torch.rand(rows, generator=drawn) < tie
    return table, torch.where(kept, secret, 1 - secret).long()


class Population(nn.Module):
    """Knows that the label follows from the bit, and nothing of any row."""

    def forward(self, rows: Tensor) -> Tensor:
        return torch.stack([torch.zeros(len(rows)), 4 * rows[:, 3] - 2], dim=1)


class Remembering(nn.Module):
    """Knows every member's own row: it is sure of the label where bit and row fit, and guesses elsewhere."""

    def __init__(self, rows: Tensor, labels: Tensor) -> None:
        super().__init__()
        self.known = {tuple(row): int(label) for row, label in zip(rows.tolist(), labels.tolist(), strict=True)}

    def forward(self, rows: Tensor) -> Tensor:
        sure = [self.known.get(tuple(row)) for row in rows.tolist()]
        told = [[0.0, 0.0] if label is None else [5.0 * (label == each) for each in (0, 1)] for label in sure]
        return torch.tensor(told)


def test_population_inference_is_not_called_a_leak() -> None:
    """Fails when what outsiders suffer as well is put down to membership, or the baseline without a model is left out:
    the label alone tells the bit nine times in ten, with the model or without it."""
    pool = Pool.of(people(0), people(1))
    found = attributes(target(Population(), 2, Access.SCORES), pool, SECRET, reference=people(2))
    assert found.members.lower > 0.85
    assert found.outsiders.lower > 0.85
    assert found.leaked.lower < 0 < found.leaked.upper
    assert found.imputed.upper >= found.members.lower
    by_labels = attributes(target(Population(), 2, Access.LABELS), pool, SECRET)
    assert by_labels.members.value == pytest.approx(found.members.value)
    assert by_labels.imputed.upper < 0.6


def test_what_a_model_remembers_of_members_is_a_leak() -> None:
    """Fails when members and outsiders are mixed up, the other value is put in the wrong column, or likelihoods are."""
    members = people(3, tie=0.5)
    found = attributes(
        target(Remembering(*members), 2, Access.SCORES),
        Pool.of(members, people(4, tie=0.5)),
        SECRET,
        reference=people(5, 0.5),
    )
    assert found.members.value == 1
    assert found.outsiders.upper < 0.6
    assert found.leaked.lower > 0.4
    assert found.imputed.upper < 0.6


def test_the_prior_decides_where_the_model_says_nothing() -> None:
    """Fails when the prior is left out, or is not a logarithm beside one; and where values take several places."""
    rare = Attribute((1, 2), torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([1.0, 3.0]))
    rows = torch.tensor([[9.0, 1.0, 0.0], [9.0, 0.0, 1.0]])
    silent = nn.Linear(3, 2)
    nn.init.zeros_(silent.weight)
    found = infer_attribute(target(silent, 2), rows, torch.tensor([0, 1]), rare).exp()
    torch.testing.assert_close(found, torch.tensor([[0.25, 0.75], [0.25, 0.75]]).double())
    assert rare.truth(rows).tolist() == [0, 1]
    assert rare.put(rows, 0)[1].tolist() == [9.0, 1.0, 0.0]


def test_what_is_no_column_is_refused() -> None:
    """Fails when a value that is not named, or a prior without one, gives an answer."""
    pool = Pool.of(people(0), people(1))
    odd = Attribute((3,), torch.tensor([[0.0], [2.0]]), torch.tensor([0.5, 0.5]))
    with pytest.raises(InvalidInput, match="values lack one that a row has"):
        attributes(target(Population(), 2), pool, odd)
    with pytest.raises(InvalidInput, match="prior is not one positive number"):
        Attribute((3,), torch.tensor([[0.0], [1.0]]), torch.tensor([1.0, 0.0]))
    with pytest.raises(InvalidInput, match="give 2 or more, a row for each"):
        Attribute((3,), torch.tensor([[0.0]]), torch.tensor([1.0]))
