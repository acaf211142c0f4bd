"""Rows of any data set by their numbers: the same rows whatever holds them, and nothing that samples by itself."""

from __future__ import annotations

import os
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)

from privet.core.errors import InvalidInput
from privet.training.data import Rows

N = 12
X = torch.arange(N * 6, dtype=torch.float32).reshape(N, 2, 3) + 1
Y = torch.arange(N) + 1
# From Python 3.12 on, forking beside other threads (torch has some) is warned of.
quiet = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


class Pair(NamedTuple):
    """A row, or a batch, with names."""

    x: torch.Tensor
    y: torch.Tensor


class Listed(Dataset[Any]):
    """A map-style data set whose rows have a tensor, a number and a text."""

    def __init__(self, rows: int = N) -> None:
        self.rows = rows
        self.read: list[int] = []

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> Any:
        assert type(index) is int
        self.read.append(index)
        return {"x": X[index], "y": index + 1, "name": f"row {index}", "by": os.getpid()}


class Many(Dataset[Any]):
    """A data set that reads many rows at once, and only so."""

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> Any:
        raise AssertionError("read one by one")

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [(X[index], index + 1) for index in indices]


def leaves(value: Any) -> Iterator[torch.Tensor]:
    """All tensors of a batch."""
    if isinstance(value, torch.Tensor):
        yield value
    else:
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)


IN_MEMORY: dict[str, tuple[Callable[[], Any], Callable[[npt.NDArray[np.int64]], Any]]] = {
    "tensor": (lambda: X, lambda i: X[i]),
    "array": (X.numpy, lambda i: X[i]),
    "tuple": (lambda: (X, Y), lambda i: (X[i], Y[i])),
    "arrays": (lambda: (X.numpy(), Y.numpy()), lambda i: (X[i], Y[i])),
    "dict": (lambda: {"x": X, "y": Y.numpy()}, lambda i: {"x": X[i], "y": Y[i]}),
    "named": (lambda: Pair(X, Y), lambda i: Pair(X[i], Y[i])),
    "nested": (lambda: {"in": (X, [Y, X]), "out": Y}, lambda i: {"in": (X[i], [Y[i], X[i]]), "out": Y[i]}),
    "data set": (lambda: TensorDataset(X, Y), lambda i: (X[i], Y[i])),
    "one column": (lambda: TensorDataset(X), lambda i: (X[i],)),
}
in_memory = pytest.mark.parametrize(("make", "expected"), IN_MEMORY.values(), ids=IN_MEMORY)


def same(left: Any, right: Any) -> None:
    """The same structure, types and values."""
    assert type(left) is type(right)
    if isinstance(left, torch.Tensor):
        assert left.dtype == right.dtype
        assert torch.equal(left, right)
    elif isinstance(left, dict):
        assert list(left) == list(right)
        for key in left:
            same(left[key], right[key])
    elif isinstance(left, (tuple, list)):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            same(one, other)
    else:
        assert left == right


# --- in memory -----------------------------------------------------------------------------------------------------


@in_memory
@given(indices=st.lists(st.integers(0, N - 1), min_size=1, max_size=20))
def test_a_batch_is_the_rows_of_these_numbers(
    make: Callable[[], Any], expected: Callable[[Any], Any], indices: list[int]
) -> None:
    """Catches a wrong order, a lost structure, and columns gathered with different numbers."""
    rows = Rows.of(make())
    assert len(rows) == N
    same(rows.batch(np.array(indices)), expected(np.array(indices)))


@in_memory
def test_the_placeholder_is_one_row_of_zeros(make: Callable[[], Any], expected: Callable[[Any], Any]) -> None:
    """Catches an empty batch that crashes, or that shows somebody's row (no row here has a zero in it)."""
    rows, real = Rows.of(make()), expected(np.array([0]))
    for blank in (rows.placeholder(), rows.batch([]), rows.batch(np.empty(0, dtype=np.int64))):
        for zero, one in zip(leaves(blank), leaves(real), strict=True):
            assert (zero.shape, zero.dtype, zero.device) == (one.shape, one.dtype, one.device)
            assert not zero.any()
        assert type(blank) is type(real)
    for zero in leaves(rows.placeholder()):
        zero += 1  # whoever writes into one does not write into the next
    assert not any(zero.any() for zero in leaves(rows.placeholder()))


@in_memory
def test_tensors_are_gathered_with_one_call_each(
    make: Callable[[], Any], expected: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a fall-back to reading row by row, which is a hundred times slower."""
    rows, calls = Rows.of(make()), []
    plain = torch.Tensor.index_select

    def counted(self: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
        calls.append(len(index))
        return plain(self, dim, index)

    monkeypatch.setattr(torch.Tensor, "index_select", counted)
    rows.batch([3, 1, 4])
    assert calls == [3] * len(list(leaves(expected(np.array([0])))))


@pytest.mark.parametrize(
    "dtype",
    [torch.bool, torch.uint8, torch.int16, torch.int64, torch.float16, torch.bfloat16, torch.float64, torch.complex64],
)
def test_types_are_kept(dtype: torch.dtype) -> None:
    """Catches a gather or a placeholder that widens what it holds."""
    column = torch.ones(5, 2).to(dtype)
    rows = Rows.of(column)
    assert rows.batch([1, 2]).dtype == rows.placeholder().dtype == dtype


def test_batches_are_copies_without_a_history() -> None:
    """Catches a model that writes into the data set through its batch, and gradients that reach into the data."""
    data = torch.ones(4, 2, requires_grad=True)
    batch = Rows.of(data).batch([0, 1])
    assert not batch.requires_grad
    batch.zero_()
    assert bool(data.detach().all())


def test_arrays_of_any_layout_and_mapped_files_are_read_in_place(tmp_path: Path) -> None:
    """Catches reversed, read-only and mapped arrays that warn (an error here), crash or come out wrong."""
    array = np.arange(20.0).reshape(10, 2)
    same(Rows.of(array[::-1]).batch([0]), torch.tensor([[18.0, 19.0]], dtype=torch.float64))
    same(Rows.of(array[::2]).batch([1]), torch.tensor([[4.0, 5.0]], dtype=torch.float64))
    frozen = array.copy()
    frozen.flags.writeable = False
    same(Rows.of(frozen).batch([1]), torch.tensor([[2.0, 3.0]], dtype=torch.float64))
    np.save(tmp_path / "x.npy", array)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    same(Rows.of({"x": mapped}).batch([9]), {"x": torch.tensor([[18.0, 19.0]], dtype=torch.float64)})


# --- subsets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "indices", [[5, 2, 9, 7], range(8, 1, -2), torch.tensor([5, 2, 9, 7]), np.array([-1, 0, 3, 4])]
)
def test_a_subset_of_tensors_stays_in_memory(indices: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a subset whose numbers are forgotten, so that rows come that were left out."""
    subset = Subset(TensorDataset(X, Y), indices)
    inner = Subset(subset, [3, 1, 0])
    expected = [subset[1], subset[3], inner[0], inner[2]]
    outer, deeper = Rows.of(subset), Rows.of(inner)
    monkeypatch.setattr(Subset, "__getitems__", None)
    monkeypatch.setattr(Subset, "__getitem__", None)  # from here on nothing is read one by one
    got = [*zip(*outer.batch([1, 3]), strict=True), *zip(*deeper.batch([0, 2]), strict=True)]
    same(got, expected)
    assert (len(outer), len(deeper)) == (4, 3)


def test_a_subset_that_repeats_rows_is_refused() -> None:
    """Catches oversampling: a person whose row is there three times would be protected as three people."""

    class Own(Subset[Any]):
        def __getitems__(self, indices: list[int]) -> list[Any]:
            return [self.dataset[self.indices[index]] for index in indices]

    with pytest.raises(InvalidInput, match="repeats rows"):
        Rows.of(Own(Listed(), [3, 3]))
    for data in (TensorDataset(X, Y), Listed()):
        for repeated in ([1, 2, 1], [0, -N]):
            with pytest.raises(InvalidInput, match="repeats rows"):
                Rows.of(Subset(data, repeated))
        with pytest.raises(InvalidInput, match="beyond"):
            Rows.of(Subset(data, [N]))
        with pytest.raises(InvalidInput, match="whole numbers"):
            Rows.of(Subset(data, [True, False]))
        with pytest.raises(InvalidInput, match="no rows"):
            Rows.of(Subset(data, []))


def test_a_data_set_that_changes_its_rows_is_read_row_by_row() -> None:
    """Catches the fast path taken for a subclass: its augmentation, or its redaction, would be skipped silently."""

    class Redacted(TensorDataset):
        def __getitem__(self, index: Any) -> tuple[torch.Tensor, ...]:
            return (self.tensors[0][index] * 0,)

    class Doubled(Subset[Any]):
        def __getitems__(self, indices: list[int]) -> list[Any]:
            return [(x * 2, y) for x, y in super().__getitems__(indices)]

    for data in (Redacted(X), Subset(Redacted(X), [4, 5])):
        (batch,) = Rows.of(data).batch([0, 1])
        assert batch.shape == (2, 2, 3)
        assert not batch.any()
    x, y = Rows.of(Doubled(TensorDataset(X, Y), [4, 5])).batch([1])
    assert torch.equal(x, 2 * X[5:6])
    assert torch.equal(y, Y[5:6])


# --- other data sets -----------------------------------------------------------------------------------------------


def test_rows_of_a_map_style_data_set_are_collated() -> None:
    """Catches NumPy numbers handed to a data set that wants ints, a wrong order, and texts that get lost."""
    data = Listed()
    batch = Rows.of(data).batch(np.array([7, 2]))
    assert data.read[-2:] == [7, 2]
    assert torch.equal(batch["x"], X[[7, 2]])
    assert (batch["y"].tolist(), batch["name"]) == ([8, 3], ["row 7", "row 2"])
    same(Rows.of([(X[i], Y[i]) for i in range(N)]).batch([4]), [X[4:5], Y[4:5]])
    same(Rows.of(ConcatDataset([TensorDataset(X), TensorDataset(X)])).batch([N + 1]), [X[1:2]])


def test_many_rows_are_read_at_once_where_that_is_offered() -> None:
    """Catches a data set on disk that is asked for its rows one by one."""
    rows = Rows.of(Many())
    x, y = rows.batch([3, 0])
    assert torch.equal(x, X[[3, 0]])
    assert y.tolist() == [4, 1]


def test_the_placeholder_of_a_map_style_data_set_has_nothing_of_a_row() -> None:
    """Catches a text or a number of the first row that stays in the blank one."""
    blank = Rows.of(Listed()).batch([])
    assert blank["name"] == [""]
    for name in ("x", "y", "by"):
        assert not blank[name].any()
    assert blank["x"].shape == (1, 2, 3)


def gathered(rows: list[Any]) -> Any:
    """A collate function that pads, and returns kinds of its own."""
    return OrderedDict(n=len(rows), x=torch.stack([row["x"] for row in rows]), tags=np.array([3.5]), extra=(None, 2.5))


def test_a_collate_function_is_used_and_its_batches_blanked() -> None:
    """Catches a collate function that is passed and forgotten, also beside tensors in memory."""
    rows = Rows.of(Listed(), collate_fn=gathered)
    assert (rows.batch([1, 2])["n"], type(rows.batch([1]))) == (2, OrderedDict)
    blank = rows.placeholder()
    assert type(blank) is OrderedDict
    assert (blank["n"], blank["tags"].tolist(), blank["extra"]) == (0, [0.0], (None, 0.0))
    for data in ({"x": X}, [{"x": row} for row in X]):
        assert torch.equal(Rows.of(data, collate_fn=gathered).batch([3, 1])["x"], X[[3, 1]])
    doubled = Rows.of(TensorDataset(X), collate_fn=lambda rows: torch.stack([2 * row for (row,) in rows]))
    assert torch.equal(doubled.batch([3, 1]), 2 * X[[3, 1]])
    assert Rows.of(Listed(), collate_fn=lambda rows: defaultdict(list, x=X[:1])).placeholder()["x"].shape == (1, 2, 3)


def test_what_cannot_be_blanked_is_refused_at_once() -> None:
    """Catches a failure that waits for the first empty batch, in the middle of a paid run."""
    with pytest.raises(InvalidInput, match=r"collate_fn .* object"):
        Rows.of(Listed(), collate_fn=lambda rows: object())
    with pytest.raises(InvalidInput, match="collate_fn is needed"):
        Rows.of([object(), object()])


# --- what is refused -----------------------------------------------------------------------------------------------


def test_a_loader_is_refused_with_what_was_found_in_it() -> None:
    """Catches opacus#813: a weighted sampler whose rate was taken from the loader's length, ε far off, no warning."""
    data = TensorDataset(X, Y)
    weighted = DataLoader(data, batch_size=4, sampler=WeightedRandomSampler([1.0] * N, 4), drop_last=True)
    with pytest.raises(InvalidInput) as refusal:
        Rows.of(weighted)
    for word in ("WeightedRandomSampler", "batch_size=4", "drop_last=True", "loader.dataset", "let the plan sample"):
        assert word in str(refusal.value)
    assert "collate_fn" not in str(refusal.value)
    with pytest.raises(InvalidInput, match=r"RandomSampler.*collate_fn=loader\.collate_fn"):
        Rows.of(DataLoader(data, shuffle=True, collate_fn=gathered))
    with pytest.raises(InvalidInput, match="batch_sampler=BatchSampler"):
        Rows.of(DataLoader(data, batch_sampler=BatchSampler(range(N), 2, drop_last=False)))
    assert torch.equal(Rows.of(weighted.dataset).batch([1])[1], Y[1:2])


def test_what_has_no_row_numbers_is_refused() -> None:
    """Catches a stream of rows that is taken for a data set of which rows can be drawn."""

    class Endless(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            yield 1

    class Unsized(Dataset[Any]):
        def __getitem__(self, index: int) -> Any:
            return index

    for data in (Endless(), DataLoader(Endless()), Subset(Endless(), [0]), Unsized(), iter([1]), 5, None):
        with pytest.raises(InvalidInput, match=r"^dataset "):
            Rows.of(data)


@pytest.mark.parametrize(
    "data",
    [
        torch.empty(0, 3),
        np.empty((0, 3)),
        (torch.empty(0, 3), torch.empty(0)),
        TensorDataset(torch.empty(0, 3)),
        [],
        (),
        {},
        (X, Y[:-1]),
        {"x": X, "y": [Y, Y[:-1]]},
        torch.tensor(1.0),
        (X, torch.tensor(1.0)),
        (X, "labels"),
        {"x": X, "y": [1, 2, 3]},
        tuple((X[i], i) for i in range(3)),
        np.array(["a", "b"]),
        np.array([None, 1]),
        X.to_sparse(),
        {"a": {"b": None}},
    ],
)
def test_what_has_no_rows_or_not_as_many_everywhere_is_refused(data: Any) -> None:
    """Catches columns that are paired wrongly, and a data set without anybody in it; no number of rows is told."""
    with pytest.raises(InvalidInput, match=r"^dataset ") as refusal:
        Rows.of(data)
    assert str(N) not in str(refusal.value)


def test_a_table_with_named_columns_is_told_what_to_give() -> None:
    """Catches a bare KeyError for objects that have a length but read columns instead of rows."""

    class Table:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, column: str) -> Any:
            return {"age": [1, 2, 3]}[column]

    with pytest.raises(InvalidInput, match="dict of arrays"):
        Rows.of(Table())


@pytest.mark.parametrize("indices", [[N], [-1], [0.5], [True], ["a"]])
def test_numbers_that_are_no_rows_are_refused(indices: Any) -> None:
    """Catches -1 read as the last row, and a fraction cut to a row."""
    for data in (X, Listed()):
        with pytest.raises(InvalidInput, match="indices"):
            Rows.of(data).batch(indices)
