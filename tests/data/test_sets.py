"""Named sets: what is loaded, what is refused, and what a download must be."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import numpy as np
import pytest

from privet.core.errors import InvalidInput
from privet.data import Images, Table, named
from privet.data.idx import read_idx


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the parent's name)
        """Nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder on this machine."""
    server = HTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_digits_need_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the default set asks for a folder, or its public split is another one than last time."""
    monkeypatch.delenv("PRIVET_DATA", raising=False)
    digits = named("digits")
    assert isinstance(digits.train, Images)
    assert (len(digits.train), len(digits.test), digits.train.peak) == (1453, 344, 16)
    assert digits.train.x.max() == 16
    assert (digits.train.rows, len(digits.train.classes)) == (1453, 10)


def test_mnist(data_dir: Path) -> None:
    """Fails when pictures or labels are read shifted, turned or mixed up."""
    mnist = named("mnist", data_dir)
    assert isinstance(mnist.train, Images)
    assert mnist.train.x.shape == (60_000, 28, 28)
    assert len(mnist.test) == 10_000
    assert mnist.train.y[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert int(mnist.train.x[0, 5, 12]) == 3  # the first pixel of the first five that is not black
    assert not mnist.train.x[0, :5].any()


def test_adult(data_dir: Path) -> None:
    """Fails when rows are lost, or a value of the documentation is misspelt and counts as `other`.

    2,799 rows have no workclass or occupation in all, and 583 no country, as the set's documentation counts them.
    """
    adult = named("adult", data_dir)
    assert isinstance(adult.train, Table)
    assert (len(adult.train), len(adult.test)) == (32_561, 16_281)
    assert adult.train.y is not None
    assert np.bincount(adult.train.y).tolist() == [24_720, 7_841]
    places = {column.name: place for place, column in enumerate(adult.train.schema.features)}
    other = {
        name: int((adult.train.x[:, places[name]] == size).sum()) for name, size in (("race", 5), ("education", 16))
    }
    assert other == {"race": 0, "education": 0}
    assert int((adult.train.x[:, places["workclass"]] == 8).sum()) == 1836
    assert int((adult.train.x[:, places["native-country"]] == 41).sum()) == 583
    assert not np.isnan(adult.train.x).any()


def test_a_download_is_the_published_file(data_dir: Path, tmp_path: Path) -> None:
    """Fails when a download is not asked for, not compared, not converted, or leaves half a file behind."""
    raw, mine = tmp_path / "raw", tmp_path / "mine"
    raw.mkdir()
    for part, name, dot, start in (
        ("train", "adult.data", "", ""),
        ("test", "adult.test", ".", "|1x3 Cross validator\n"),
    ):
        lines = gzip.decompress((data_dir / "adult" / f"{part}.csv.gz").read_bytes()).decode().splitlines()[1:]
        text = start + "".join(line.replace(",", ", ") + dot + "\n" for line in lines) + "\n"
        (raw / name).write_text(text)
    with served(raw) as address:
        with pytest.raises(InvalidInput, match=r"has no adult/train.csv.gz; put it there, or allow the download"):
            named("adult", mine, mirror=address)
        fetched, local = named("adult", mine, download=True, mirror=address), named("adult", data_dir)
        np.testing.assert_array_equal(fetched.train.x, local.train.x)
        np.testing.assert_array_equal(fetched.test.x, local.test.x)
        (raw / "adult.test").write_text("changed\n")
        (mine / "adult" / "test.csv.gz").unlink()
        with pytest.raises(InvalidInput, match="is not the published file"):
            named("adult", mine, download=True, mirror=address)
        assert [path.name for path in (mine / "adult").iterdir()] == ["train.csv.gz"]
        with pytest.raises(InvalidInput, match="failed"):
            named("fashion-mnist", mine, download=True, mirror=address)


def test_any_packing_of_mnist_will_do(data_dir: Path, tmp_path: Path) -> None:
    """Fails when the checksums written down are not those of the published pictures, however they are packed."""
    with served(data_dir / "mnist") as address:
        fetched = named("mnist", tmp_path, download=True, mirror=address)
    assert len(fetched.train) == 60_000


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a wrong name, an absent folder or another kind of address is not answered with what to do."""
    monkeypatch.delenv("PRIVET_DATA", raising=False)
    with pytest.raises(InvalidInput, match="use one of: digits, mnist, fashion-mnist, adult"):
        named("minst")
    with pytest.raises(InvalidInput, match="data_dir is not given, and mnist needs it"):
        named("mnist")
    monkeypatch.setenv("PRIVET_DATA", str(tmp_path))
    with pytest.raises(InvalidInput, match="has no mnist/train-images"):
        named("mnist")
    with pytest.raises(InvalidInput, match="begins with https://"):
        named("mnist", download=True, mirror="ftp://example.org")


IDX = b"\x00\x00\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (2, 3, 4)) + bytes(range(24))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (IDX[:-1], "not as long as its header says"),
        (IDX + b"\0", "not as long as its header says"),
        (b"\x00\x00\x0d\x03" + IDX[4:], "does not begin as an IDX file"),
        (b"\x00\x00\x08\x01" + IDX[4:], "does not begin as an IDX file"),
        (IDX[:9], "does not begin as an IDX file"),
        (b"", "does not begin as an IDX file"),
        (IDX[:4] + b"\xff" * 12, "more than 2 GiB"),
        (gzip.compress(IDX, mtime=0)[:-6], "cut off or changed"),
    ],
)
def test_damaged_pictures(content: bytes, said: str, tmp_path: Path) -> None:
    """Fails when a damaged file is read as pictures, or ends in a traceback."""
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InvalidInput, match=said):
        read_idx(tmp_path / "x", 3)


def test_pictures_packed_or_not(tmp_path: Path) -> None:
    """Fails when the good file of the test above would be refused too, or is read in another order."""
    for content in (IDX, gzip.compress(IDX, mtime=0)):
        (tmp_path / "x").write_bytes(content)
        assert read_idx(tmp_path / "x", 3).tolist() == np.arange(24).reshape(2, 3, 4).tolist()
