"""Data sets by name: scikit-learn's digits, MNIST, Fashion-MNIST and UCI Adult, each with a part held out for tests.

All of them are published, so that their sizes, classes and bounds are public; their rows are treated as private all the
same, for they stand for data that are.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import numpy as np

from privet.core import InvalidInput, MissingExtra
from privet.data.download import Remote, fetch
from privet.data.idx import read_idx
from privet.data.read import read
from privet.data.schema import Schema
from privet.data.split import held_out
from privet.data.table import Images, Table

__all__ = ["NAMES", "Named", "adult_schema", "named"]

_IMAGES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist"
_FASHION = "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion"
_ADULT = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"
_REMOTES = {
    "mnist": tuple(
        Remote(f"{_MNIST}/{name}.gz", digest, unpacked=True)
        for name, digest in zip(
            _IMAGES,
            (
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
            strict=True,
        )
    ),
    "fashion-mnist": tuple(
        Remote(f"{_FASHION}/{name}.gz", digest)
        for name, digest in zip(
            _IMAGES,
            (
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
            strict=True,
        )
    ),
    "adult": (
        Remote(f"{_ADULT}/adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
        Remote(f"{_ADULT}/adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
    ),
}
_FASHION_CLASSES = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
_DIGITS = tuple("0123456789")


@dataclass(frozen=True)
class Named:
    """A named data set, with training and test rows."""

    name: str
    train: Table | Images
    test: Table | Images
    """Published as test rows, so that using them has no privacy cost; for digits, a fifth of the rows."""


def named(
    name: str, data_dir: str | os.PathLike[str] | None = None, *, download: bool = False, mirror: str | None = None
) -> Named:
    """Load one of the data sets in `NAMES`; `digits` needs no files.

    Args:
        name: One of `NAMES`.
        data_dir: The directory of the files; by default the one that the environment variable PRIVET_DATA names.
        download: Whether to download missing files into `data_dir`. A download must have the published SHA-256.
        mirror: Another address to download the files from.

    Returns:
        The data set, with its training and test rows.

    Raises:
        InvalidInput: The name is unknown, no directory is given, a file is missing and may not be downloaded, or a
            download fails or differs from the published file.
    """
    if name not in _LOADERS:
        raise InvalidInput("name", f"is {name!r}", f"use one of: {', '.join(_LOADERS)}, or the path of a file")
    loader = _LOADERS[name]
    if loader is None:
        return _digits()
    place = data_dir if data_dir is not None else os.environ.get("PRIVET_DATA") or None
    if place is None:
        raise InvalidInput("data_dir", f"is not given, and {name} needs it", "name a folder, or set PRIVET_DATA")
    folder = Path(place) / name
    absent = [file for file in _FILES[name] if not (folder / file).is_file()]
    if absent and not download:
        problem = f"has no {name}/{absent[0]}"
        raise InvalidInput("data_dir", problem, "put it there, or allow the download")
    for file, remote in zip(_FILES[name], _REMOTES[name], strict=True):
        if file in absent:
            fetch(remote, folder / file, mirror=mirror, convert=_adult_csv if name == "adult" else bytes)
    return loader(folder)


def adult_schema() -> Schema:
    """Return the schema of UCI Adult, from its public documentation."""
    text = (resources.files(__package__) / "adult.toml").read_text(encoding="utf-8")
    return Schema.from_toml(text)


def _digits() -> Named:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingExtra("scikit-learn", "train") from None
    found = load_digits()
    every = Images(found.images.astype(np.uint8), found.target.astype(np.int64), _DIGITS, None, peak=16)
    held = held_out(every, 0.2, key="digits")
    return Named("digits", every.take(~held, int((~held).sum())), every.take(held, int(held.sum())))


def _pictures(name: str, classes: tuple[str, ...]) -> Callable[[Path], Named]:
    def load(folder: Path) -> Named:
        files = [folder / file for file in _FILES[name]]
        return Named(name, _images(files[0], files[1], classes), _images(files[2], files[3], classes))

    return load


def _images(images: Path, labels: Path, classes: tuple[str, ...]) -> Images:
    x, y = read_idx(images, 3), read_idx(labels, 1).astype(np.int64)
    if len(x) != len(y):
        raise InvalidInput("data_dir", f"has {len(x)} pictures and {len(y)} labels", "get the files again")
    return Images(x, y, classes, len(x)).take(y < len(classes), len(x))


def _adult(folder: Path) -> Named:
    schema = adult_schema()
    train, test = (read(folder / file, schema) for file in _FILES["adult"])
    return Named("adult", train, replace(test, schema=replace(schema, rows=len(test))))


def _adult_csv(content: bytes) -> bytes:
    """The published form (no header, blanks after commas, dots after the classes of the test part) as a gzipped CSV."""
    names = [column.name for column in adult_schema().columns]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(names)
    for line in content.decode("ascii").splitlines():
        cells = [cell.strip() for cell in line.rstrip(".").split(",")]
        if len(cells) == len(names):
            writer.writerow(cells)
    return gzip.compress(out.getvalue().encode(), mtime=0)


_FILES = {
    "mnist": tuple(f"{name}.gz" for name in _IMAGES),
    "fashion-mnist": tuple(f"{name}.gz" for name in _IMAGES),
    "adult": ("train.csv.gz", "test.csv.gz"),
}
_LOADERS: dict[str, Callable[[Path], Named] | None] = {
    "digits": None,
    "mnist": _pictures("mnist", _DIGITS),
    "fashion-mnist": _pictures("fashion-mnist", _FASHION_CLASSES),
    "adult": _adult,
}
NAMES = tuple(_LOADERS)
"""The names that `named` knows."""
