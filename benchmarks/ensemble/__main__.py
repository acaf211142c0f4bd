"""Teachers for MNIST, all at once, beside a loop of scikit-learn's ridge regressions in the same process.

Run: python -m benchmarks.ensemble [--threads 1] [--cache FOLDER]

Teachers are ridge regressions on scattering features, which are made first and not timed. Both ways get the same
shards, the same ±1 labels and the same penalty, and take turns; medians are compared, and their votes. README.md here
says how the penalty was chosen. The data lie where PRIVET_DATA says, or in ../shared/data. Writes
benchmarks/results/ensemble.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import sklearn
import torch
from sklearn.linear_model import Ridge as OtherRidge
from torch import Tensor

from privet.data import Images, named
from privet.ensemble import Ridge, Shards, shards, train, votes
from privet.training.models import Pictures

COMMAND = "python -m benchmarks.ensemble"
RESULTS = Path(__file__).parents[1] / "results" / "ensemble.json"
COUNTS, TURNS, PENALTY, CLASSES = (250, 1000), 3, 0.1, 10


@dataclass(frozen=True)
class Turn:
    """Seconds to train, seconds to vote, and the votes."""

    training: float
    voting: float
    votes: npt.NDArray[np.int64]


def ours(x: Tensor, y: npt.NDArray[np.int64], asked: Tensor, of: Shards) -> Turn:
    """All at once."""
    begun = time.perf_counter()
    found = train(Ridge(PENALTY), x, y, of, classes=CLASSES)
    trained = time.perf_counter()
    cast = votes(found, asked)
    return Turn(trained - begun, time.perf_counter() - trained, cast.astype(np.int64))


def others(x: Tensor, y: npt.NDArray[np.int64], asked: Tensor, of: Shards) -> Turn:
    """The same, by one fit of scikit-learn after the other."""
    rows, questions, wanted = x.numpy(), asked.numpy(), (2 * np.eye(CLASSES, dtype=np.float32)[y] - 1)
    begun = time.perf_counter()
    found = [OtherRidge(alpha=PENALTY).fit(rows[own], wanted[own]) for own in of.members]
    trained = time.perf_counter()
    cast = np.stack([each.predict(questions).argmax(1) for each in found], axis=1)
    return Turn(trained - begun, time.perf_counter() - trained, cast)


def measure(x: Tensor, asked: Tensor, train_set: Images, test_set: Images, teachers: int) -> dict[str, Any]:
    """Both ways in turns."""
    of = shards(train_set, teachers)
    turns = [(ours(x, train_set.y, asked, of), others(x, train_set.y, asked, of)) for _ in range(TURNS)]
    training, other_training = (statistics.median(turn[way].training for turn in turns) for way in (0, 1))
    voting, other_voting = (statistics.median(turn[way].voting for turn in turns) for way in (0, 1))
    mine, theirs = turns[0][0].votes, turns[0][1].votes
    counts = np.stack([(mine == label).sum(1) for label in range(CLASSES)], axis=1)
    single = (mine == test_set.y[:, None]).mean(0)
    sizes = np.bincount(of.of, minlength=teachers)
    return {
        "teachers": teachers,
        "rows_of_a_teacher": {"fewest": int(sizes.min()), "most": int(sizes.max())},
        "train_seconds": round(training, 3),
        "vote_seconds": round(voting, 3),
        "sklearn_train_seconds": round(other_training, 3),
        "sklearn_vote_seconds": round(other_voting, 3),
        "times_as_fast_in_training": round(other_training / training, 2),
        "times_as_fast_in_voting": round(other_voting / voting, 2),
        "votes_as_sklearn": round(float((mine == theirs).mean()), 6),
        "teacher_accuracy": round(100 * float(single.mean()), 2),
        "worst_and_best_teacher": [round(100 * float(each), 2) for each in (single.min(), single.max())],
        "plurality_accuracy": round(100 * float((counts.argmax(1) == test_set.y).mean()), 2),
        "share_of_questions_with_four_fifths_of_the_votes": round(float((counts.max(1) >= 0.8 * teachers).mean()), 4),
    }


def main() -> None:
    """Measure every number of teachers, print a line for each, and keep the numbers."""
    parser = argparse.ArgumentParser(prog=COMMAND)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "privet-features")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    data_dir = os.environ.get("PRIVET_DATA") or Path(__file__).parents[3] / "shared" / "data"
    mnist = named("mnist", data_dir)
    assert isinstance(mnist.train, Images)
    assert isinstance(mnist.test, Images)
    front = Pictures(28, 28)
    rows, questions = (front.cached(torch.from_numpy(part.x), asked.cache) for part in (mnist.train, mnist.test))
    load = os.getloadavg()[0]
    found = []
    with import_module("threadpoolctl").threadpool_limits(asked.threads):
        for teachers in COUNTS:
            found.append(measure(rows, questions, mnist.train, mnist.test, teachers))
            print(json.dumps(found[-1], indent=1), flush=True)
    report = {
        "command": COMMAND,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "sklearn": sklearn.__version__,
        "threads": asked.threads,
        "cores": os.cpu_count(),
        "load_when_started": round(load, 2),
        "data": "MNIST, 60,000 training pictures for teachers, 10,000 test pictures as questions",
        "penalty": PENALTY,
        "rows": found,
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
