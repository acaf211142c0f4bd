"""A data set as numbered rows: whoever draws the row numbers decides the batches, and nobody else.

Tensors in memory are gathered with one call each. Other data sets are read row by row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset, default_collate

from privet.core import InvalidInput
from privet.training.coupling import check_collate
from privet.training.sampling.protocol import Indices

__all__ = ["Collate", "Rows", "spread"]

Collate: TypeAlias = Callable[[list[Any]], Any]
"""Makes one batch of a list of rows."""


def spread(rows: int, most: int = 32) -> list[int]:
    """Return the numbers of a few rows from all over a data set, which may be sorted.

    Args:
        rows: Number of rows of the data set.
        most: Largest number of rows to return.

    >>> spread(100, 4), spread(3)
    ([0, 25, 50, 75], [0, 1, 2])
    """
    few = min(rows, most)
    return [row * rows // few for row in range(few)]


class Rows:
    """Uniform access to a data set by row numbers; made with `Rows.of`.

    >>> rows = Rows.of((torch.arange(8.0).reshape(4, 2), torch.arange(4)))
    >>> len(rows), rows.batch([3, 0])
    (4, (tensor([[6., 7.], [0., 1.]]), tensor([3, 0])))
    >>> rows.batch([])
    (tensor([[0., 0.]]), tensor([0]))
    """

    def __init__(self, source: _Columns | _Samples) -> None:
        self._source = source
        # Made at once, so that a row that cannot be blanked shows before training and not in the first empty batch.
        self._blank = source.blank()

    @staticmethod
    def of(dataset: Any, *, collate_fn: Collate | None = None, may_be_empty: bool = False) -> Rows:
        """Return uniform access to a data set.

        These are accepted:

        - a tensor or an array, whose first dimension counts the rows; a tuple or a dict of them, also nested; a
          `TensorDataset`; a `Subset` of one. They stay in memory, and a batch has the same structure;
        - any data set with `__len__` and `__getitem__` (including a list of rows). Its rows are made into a batch by
          `collate_fn`, or by torch's `default_collate`.

        Args:
            dataset: The data set, with at least one row.
            collate_fn: Function that makes a batch of rows, as in torch's `DataLoader`.
            may_be_empty: Whether tensors may have no rows, where the number of rows is private.

        Raises:
            InvalidInput: It is a `DataLoader`, which samples by itself, or has no rows, or cannot be read in any order.
        """
        _sampled_by_nobody(dataset)
        base, where = _unwrapped(dataset)
        _no_columns(base)
        source: _Columns | _Samples
        if where is None and isinstance(base, (tuple, Mapping)):
            source = _Columns(_columns(base))
            if collate_fn is not None:
                source = _Samples(source, collate_fn)
        elif collate_fn is None and (_plain(base, TensorDataset) or isinstance(base, (torch.Tensor, np.ndarray))):
            source = _Columns(_columns(base.tensors if isinstance(base, TensorDataset) else base), where)
        else:
            source = _Samples(dataset, collate_fn or default_collate)
        if not len(source) and not (may_be_empty and isinstance(source, _Columns)):
            raise InvalidInput("dataset", "has no rows", "give a data set with at least one row")
        return Rows(source)

    def __len__(self) -> int:
        return len(self._source)

    @property
    def in_memory(self) -> bool:
        """Whether the rows are the given tensors, so that reading a row again gives the same values."""
        return isinstance(self._source, _Columns)

    def stored(self, indices: Sequence[int]) -> Any:
        """Return rows as they are in memory; None if rows are made when they are read, and may differ each time.

        Args:
            indices: Numbers of the rows.
        """
        if isinstance(self._source, _Columns):
            return self._source.batch(_chosen(indices, len(self)))
        held = self._source.dataset
        return [held[index] for index in indices] if type(held) in (list, tuple, _Columns) else None

    def check(self, indices: npt.ArrayLike) -> None:
        """Refuse a `collate_fn` that mixes rows; torch's own does not.

        Args:
            indices: Numbers of the rows to try it on.

        Raises:
            InvalidInput: A row of a batch depends on other rows.
        """
        if isinstance(self._source, _Samples) and self._source.collate_fn is not default_collate:
            check_collate(self._source.read, _chosen(indices, len(self)).tolist())

    def batch(self, indices: npt.ArrayLike) -> Any:
        """Return the rows of these numbers, in this order; the placeholder if there are none.

        Args:
            indices: Numbers of the rows.
        """
        chosen = _chosen(indices, len(self))
        return self._source.batch(chosen) if len(chosen) else self.placeholder()

    def placeholder(self) -> Any:
        """Return a batch of one blank row: the structure, types and shapes of a real one, with zeros and empty texts.

        An empty batch is a step like any other, but a model cannot be run on no rows. The outputs for this row must not
        be counted. Its shapes are those of the first row; it has no values of the data.
        """
        return _mapped(_zeroed, self._blank)


@dataclass(frozen=True, eq=False)
class _Columns:
    """Tensors in memory, in any nesting of tuples, lists and dicts, and the rows of them that there are."""

    columns: Any
    where: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(next(_leaves(self.columns)) if self.where is None else self.where)

    def batch(self, indices: Indices) -> Any:
        at = torch.from_numpy(indices)
        if self.where is not None:
            at = self.where.index_select(0, at)
        return _mapped(lambda column: column.index_select(0, at.to(column.device)), self.columns)

    def blank(self) -> Any:
        return _mapped(lambda column: column.new_zeros((1, *column.shape[1:])), self.columns)

    def __getitem__(self, index: int) -> Any:
        return _mapped(lambda column: column[index], self.columns)


@dataclass(frozen=True, eq=False)
class _Samples:
    """Rows read one by one, or many at once where the data set offers it, and made into batches."""

    dataset: Any
    collate_fn: Collate

    def __len__(self) -> int:
        return len(self.dataset)

    def batch(self, indices: Indices) -> Any:
        return self.read(indices.tolist())

    def blank(self) -> Any:
        try:
            return _mapped(_zeroed, self.read([0]))
        except (KeyError, IndexError) as error:
            problem = f"is a {type(self.dataset).__name__} that cannot be read at row 0"
            advice = "rows are numbered from 0 on; give the columns of a table as a dict of arrays"
            raise InvalidInput("dataset", problem, advice) from error
        except TypeError as error:
            if self.collate_fn is not default_collate:
                raise
            problem = "is needed: torch's default_collate cannot make a batch of these rows"
            raise InvalidInput("collate_fn", problem, "pass a function from a list of rows to tensors") from error

    def read(self, indices: list[int]) -> Any:
        """A batch of these rows."""
        many = getattr(self.dataset, "__getitems__", None)
        rows = many(indices) if callable(many) else [self.dataset[index] for index in indices]
        try:
            return self.collate_fn(rows)
        except (RuntimeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            problem = "cannot make one batch of several rows" if len(rows) > 1 else "cannot make a batch of a row"
            advice = "rows of unequal length must be padded there (Hugging Face: data_collator=)"
            raise InvalidInput("collate_fn", problem, advice) from error


def _sampled_by_nobody(dataset: Any) -> None:
    """Refuse what decides by itself which rows come, and what cannot be asked for a row."""
    if isinstance(dataset, DataLoader):
        found = [type(dataset.sampler).__name__, f"batch_size={dataset.batch_size}", f"drop_last={dataset.drop_last}"]
        if dataset.batch_size is None and dataset.batch_sampler is not None:
            found = [f"batch_sampler={type(dataset.batch_sampler).__name__}"]
        collate = ", collate_fn=loader.collate_fn" if dataset.collate_fn is not default_collate else ""
        problem = (
            f"is a DataLoader ({', '.join(found)}), which draws batches by itself; the guarantee is computed for the "
            "sampling of the plan, and the loader's would be another one"
        )
        raise InvalidInput("dataset", problem, f"pass loader.dataset{collate}, and let the plan sample")
    if isinstance(dataset, IterableDataset):
        problem = "is an IterableDataset, which has no length and no row numbers, so its rows cannot be sampled"
        raise InvalidInput("dataset", problem, "give a data set with __len__ and __getitem__, or load it into tensors")
    if not (hasattr(type(dataset), "__len__") and hasattr(type(dataset), "__getitem__")):
        problem = f"is a {type(dataset).__name__}, which lacks __len__ or __getitem__"
        raise InvalidInput("dataset", problem, "give tensors, or a data set that is read by row numbers")


def _no_columns(dataset: Any) -> None:
    """Refuse a list of columns, which would be read as a list of so many rows. Rows of one shape are rows."""
    if not isinstance(dataset, list) or not all(isinstance(each, (torch.Tensor, np.ndarray)) for each in dataset):
        return
    shapes = {tuple(each.shape) for each in dataset}
    if len(shapes) > 1 and len({shape[:1] for shape in shapes}) == 1 and all(shapes):
        problem = f"is a list of {len(dataset)} tensors of equal length, and a list is read as a list of rows"
        raise InvalidInput("dataset", problem, "give a tuple of columns: (X, Y), not [X, Y]")


def _plain(dataset: Any, kind: type[Any]) -> bool:
    """Whether rows are read as `kind` reads them; a subclass may augment or replace them on the way."""
    names = ("__getitem__", "__getitems__")
    return isinstance(dataset, kind) and all(getattr(type(dataset), n, None) is getattr(kind, n, None) for n in names)


def _unwrapped(dataset: Any) -> tuple[Any, torch.Tensor | None]:
    """What a `Subset` of a `Subset` … is a part of, and which rows of it there are."""
    base, where, plain = dataset, None, True
    while isinstance(base, Subset):
        _sampled_by_nobody(base.dataset)
        here = torch.from_numpy(_positions(base))
        where = here if where is None else here.index_select(0, where)
        base, plain = base.dataset, plain and _plain(base, Subset)
    return (base if plain else dataset), where


def _positions(subset: Subset[Any]) -> Indices:
    array, size = np.asarray(subset.indices), len(subset.dataset)  # type: ignore[arg-type]  # it was checked to have a length
    if array.size and array.dtype.kind not in "iu":
        raise InvalidInput("dataset", "is a Subset whose indices are not whole numbers")
    positions = array.astype(np.int64).reshape(-1)
    positions[positions < 0] += size
    if positions.size and not 0 <= positions.min() <= positions.max() < size:
        raise InvalidInput("dataset", "is a Subset with indices beyond its data set")
    if len(np.unique(positions)) < len(positions):
        problem = "is a Subset that repeats rows: each copy would be protected as if it were somebody else's"
        raise InvalidInput("dataset", problem, "use every row once; weigh rows in the loss, or pass groups")
    return positions


def _chosen(indices: npt.ArrayLike, rows: int) -> Indices:
    array = np.asarray(indices)
    if array.size and array.dtype.kind not in "iu":
        raise InvalidInput("indices", f"has the type {array.dtype}", "give row numbers")
    chosen = np.array(array, dtype=np.int64).reshape(-1)
    if chosen.size and not 0 <= chosen.min() <= chosen.max() < rows:
        raise InvalidInput("indices", "has a number that is no row's", "rows are numbered from 0 on")
    return chosen


def _columns(value: Any) -> Any:
    """The same structure, with a checked tensor for each array; all of one length."""
    columns = _mapped(_column, value)
    lengths = {len(column) for column in _leaves(columns)}
    if not lengths:
        raise InvalidInput("dataset", "has no columns", "give tensors whose first dimension counts the rows")
    if len(lengths) > 1:
        raise InvalidInput("dataset", "has columns of different lengths", "row i is the i-th entry of every column")
    return columns


def _column(value: Any) -> torch.Tensor:
    column = _tensor(value) if isinstance(value, np.ndarray) else value
    if not isinstance(column, torch.Tensor):
        problem = f"has a {type(value).__name__} among its columns"
        raise InvalidInput(
            "dataset", problem, "give tensors or arrays; if this is a tuple of rows, give a list of them"
        )
    if column.dim() == 0 or column.layout is not torch.strided or column.is_nested:
        problem = "has a column without rows (a scalar), or a sparse or nested one"
        raise InvalidInput("dataset", problem, "give dense tensors whose first dimension counts the rows")
    return column.detach()


def _tensor(array: npt.NDArray[Any]) -> torch.Tensor:
    """The array's memory as a tensor, files mapped into memory included."""
    if any(stride < 0 for stride in array.strides):
        array = np.ascontiguousarray(array)
    try:
        with warnings.catch_warnings():
            # Rows are only ever copied out, so that memory which may not be written does no harm.
            warnings.filterwarnings("ignore", "The given NumPy array is not writ", UserWarning)
            return torch.from_numpy(array)
    except TypeError:
        problem = f"has a column of the type {array.dtype}, which is not a type of torch's"
        raise InvalidInput("dataset", problem, "encode it as numbers, or give a list of rows") from None


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def _mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """The same tuples, named tuples, lists and dicts, with every leaf changed."""
    if isinstance(value, Mapping):
        changed = {key: _mapped(change, each) for key, each in value.items()}
        try:
            return type(value)(changed)  # type: ignore[call-arg]  # most kinds are made so; others become a dict
        except TypeError:
            return changed
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(change, each) for each in value))
    if isinstance(value, (tuple, list)):
        return (tuple if isinstance(value, tuple) else list)(_mapped(change, each) for each in value)
    return change(value)


_EMPTY: Sequence[Any] = (False, 0, 0.0, "", b"", None)


def _zeroed(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.zeros_like(value, requires_grad=False)
    if isinstance(value, (np.ndarray, np.generic)):
        return np.zeros_like(value)[()]
    for empty in _EMPTY:
        if type(value) is type(empty):
            return empty
    problem = f"makes a batch with a {type(value).__name__} in it, of which no blank copy can be made for empty batches"
    raise InvalidInput("collate_fn", problem, "return tensors, numbers and texts in tuples, lists and dicts")
