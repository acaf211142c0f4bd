"""CONTRIBUTING says how many files each addition takes: here one of each kind is added."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_HEAD = "from __future__ import annotations\n\nfrom dataclasses import dataclass\n"


@dataclass(frozen=True)
class Addition:
    """One thing as CONTRIBUTING adds it: a file of its own, and one row (with its import) in the table of the room."""

    room: str
    table: str
    row: str
    imported: str
    content: str
    contract: str
    least: int
    """How many contract tests must find it, at least."""


ADDITIONS = {
    "toy-noise": Addition(
        "mechanisms",
        "MECHANISMS",
        '"toy-noise": MechanismEntry(ToyNoise, _letters, _LETTERS),',
        "ToyNoise",
        _HEAD
        + '''
from privet.mechanisms.grid import NoiseGrid
from privet.mechanisms.laplace import LaplaceNoise
from privet.mechanisms.reach import Reach


@dataclass(frozen=True)
class ToyNoise(LaplaceNoise):
    """Laplace noise on a grid of its own."""

    whole = False

    @staticmethod
    def grid_of(reach: Reach) -> NoiseGrid:
        return NoiseGrid.for_noise(reach, "l1", fine=64)
''',
        "tests/mechanisms/test_contract.py",
        40,
    ),
    "toy-votes": Addition(
        "pate",
        "AGGREGATORS",
        '"toy-votes": lambda noise, shape, teachers: ToyVotes(noise),',
        "ToyVotes",
        _HEAD
        + '''
from privet.core.event import Event
from privet.core.random import Rng
from privet.core.unit import Unit
from privet.pate.aggregator import NoisyArgmax
from privet.pate.gnmax import GNMax
from privet.pate.tails import Reals
from privet.pate.votes import Counts


@dataclass(frozen=True)
class ToyVotes(NoisyArgmax):
    """GNMax by another name."""

    sigma: float

    def vote(self, unit: Unit, labels: int) -> Event:
        return GNMax(self.sigma).vote(unit, labels)

    def log_ahead(self, gaps: Counts) -> Reals:
        return GNMax(self.sigma).log_ahead(gaps)

    def given_missed(self, log_q: Reals, order: float) -> Reals:
        return GNMax(self.sigma).given_missed(log_q, order)

    def noise(self, shape: tuple[int, ...], rng: Rng) -> Counts:
        return GNMax(self.sigma).noise(shape, rng)
''',
        "tests/pate/test_contract.py",
        7,
    ),
    "toy-response": Addition(
        "local",
        "ORACLES",
        '"toy-response": ToyResponse,',
        "ToyResponse",
        _HEAD
        + '''from fractions import Fraction

import numpy as np
import numpy.typing as npt

from privet.core.random import Rng
from privet.local.oracle import NumberOracle
from privet.mechanisms.coins import WORD, Integers, coins, growth, threshold


@dataclass(frozen=True)
class ToyResponse(NumberOracle):
    """Randomized response in which every answer is reported as the next one."""

    @property
    def limit(self) -> int:
        return threshold(growth(self.epsilon) / (self.domain - 1))

    @property
    def keep(self) -> Fraction:
        return Fraction(self.limit, WORD)

    @property
    def other(self) -> Fraction:
        return (1 - self.keep) / (self.domain - 1)

    @property
    def outputs(self) -> int:
        return self.domain

    def randomize(self, values: npt.ArrayLike, rng: Rng) -> Integers:
        held = self.checked_values(values)
        truth = coins(self.limit, held.size, rng)
        others = rng.below(self.domain - 1, held.size)
        others += others >= held
        return (np.where(truth, held, others) + 1) % self.domain

    def _supports(self, counts: Integers) -> Integers:
        return np.roll(counts, -1)
''',
        "tests/local/test_oracles.py",
        15,
    ),
    "toy margin": Addition(
        "attacks",
        "MEMBERSHIP_ATTACKS",
        '"toy margin": MembershipAttack(lambda view: toy_margin(view.outputs, view.pool.labels)),',
        "toy_margin",
        "from __future__ import annotations\n"
        '''
import numpy as np
from torch import Tensor

from privet.attacks.counting import Reals


def toy_margin(outputs: Tensor, labels: Tensor) -> Reals:
    """How far the score of the true class is above the mean of all."""
    own = outputs.gather(1, labels[:, None])[:, 0]
    return np.asarray((own - outputs.mean(1)).double().numpy())
''',
        "tests/attacks/test_contract.py",
        3,
    ),
    "toy-majority": Addition(
        "runs/methods",
        "METHOD_TABLE",
        '"toy-majority": TOY_MAJORITY,',
        "TOY_MAJORITY",
        (ROOT / "tests" / "runs" / "majority.py")
        .read_text(encoding="utf-8")
        .replace('"majority"', '"toy-majority"')
        .replace("MAJORITY", "TOY_MAJORITY"),
        "tests/runs/test_method_contract.py",
        1,
    ),
}


def file_of(addition: Addition) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", addition.imported).lower()


def module_of(addition: Addition) -> str:
    return f"privet.{addition.room.replace('/', '.')}.{file_of(addition)}"


def add(addition: Addition, package: Path) -> set[Path]:
    """Write what CONTRIBUTING asks for into a copy of the package; the files that were touched."""
    own, table = package / addition.room / f"{file_of(addition)}.py", package / addition.room / "table.py"
    content = addition.content if addition.content.startswith('"""') else f'"""An addition."""\n\n{addition.content}'
    own.write_text(content, encoding="utf-8")
    text = table.read_text(encoding="utf-8")
    start = re.compile(rf"^{addition.table}: .* = {{$", re.MULTILINE)
    assert len(start.findall(text)) == 1, f"{addition.table} is no dict with one row a line"
    text = start.sub(lambda found: f"{found.group()}\n    {addition.row}", text)
    line = f"from {module_of(addition)} import {addition.imported}\n"
    table.write_text(text.replace("\nfrom privet.", f"\n{line}from privet.", 1), encoding="utf-8")
    return {own, table}


@pytest.mark.timeout(120)
def test_additions_take_a_file_and_a_row(tmp_path: Path) -> None:
    """Fails when a new mechanism, aggregator, oracle, membership attack or method of training takes more than its own
    file and one row to be found by the contract tests of its room, or when they do not pass for it."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "conftest.py", "mechanisms", "pate", "local", "attacks", "runs", "cli", "data"):
        source, target = ROOT / "tests" / name, tmp_path / "tests" / name
        target.parent.mkdir(exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for addition in ADDITIONS.values():
        assert len(add(addition, tmp_path / "src" / "privet")) == 2
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", "-v", "--no-header"]
    chosen = ["-k", "toy", *dict.fromkeys(addition.contract for addition in ADDITIONS.values())]
    paths = os.pathsep.join([str(tmp_path / "src"), str(tmp_path)])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *chosen], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    for name, addition in ADDITIONS.items():
        passed = [line for line in done.stdout.splitlines() if addition.contract in line and name in line]
        assert len([line for line in passed if "PASSED" in line]) >= addition.least, name


@pytest.mark.parametrize("name", ADDITIONS)
def test_contributing_names_the_files_of_an_addition(name: str) -> None:
    """Fails when CONTRIBUTING does not name the two files that the test above touches."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    room = ADDITIONS[name].room
    assert f"`src/privet/{room}/<name>.py`" in text
    assert f"`{ADDITIONS[name].table}` in `src/privet/{room}/table.py`" in text


RULE = '''"""An addition."""

from __future__ import annotations

from privet.training.engine.contributions import Contribution
from privet.training.engine.incoming_gradient import IncomingGradient

__all__ = ["maximum"]


def maximum(incoming: IncomingGradient) -> Contribution:
    """The larger of self and other; other is the parameter."""
    is_larger = incoming.saved("other") > incoming.saved("self")
    return incoming.broadcast(incoming.gradient * is_larger)
'''
RULE_ROW = '        "MaximumBackward0": OperationRule(toy_maximum.maximum, {1}),\n'
CASE = """    yield Case(
        "toy maximum",
        described(
            lambda m, x: m.layer(torch.maximum(x, m.floor)),
            floor=lambda: nn.Parameter(torch.zeros(4)),
            layer=lambda: nn.Linear(4, 3),
        ),
        (normal(EXAMPLES, 4),),
    )
"""


@pytest.mark.timeout(120)
def test_a_layer_rule_takes_a_file_a_row_and_a_case(tmp_path: Path) -> None:
    """Fails when a rule for an operation takes more than its file, a row of the table and a model that uses it."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    rules, models = tmp_path / "src" / "privet" / "training" / "rules", tmp_path / "tests" / "training" / "models.py"
    (rules / "toy_maximum.py").write_text(RULE, encoding="utf-8")
    for path, before, after in (
        (rules / "table.py", "normalization\n", "normalization, toy_maximum\n"),
        (rules / "table.py", '        "MmBackward0"', f'{RULE_ROW}        "MmBackward0"'),
        (models, "def linear() -> Iterator[Case]:\n", f"def linear() -> Iterator[Case]:\n{CASE}"),
    ):
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1, before
        path.write_text(text.replace(before, after), encoding="utf-8")
    paths = os.pathsep.join([str(tmp_path / "src"), str(tmp_path)])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-k", "toy"]
    done = subprocess.run(
        [*command, "tests/training/test_exactness.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "passed" in done.stdout


def test_contributing_names_the_files_of_a_layer_rule() -> None:
    """Fails when CONTRIBUTING does not name the three files that the test above touches."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for path in (
        "src/privet/training/rules/<name>.py",
        "src/privet/training/rules/table.py",
        "tests/training/models.py",
    ):
        assert f"`{path}`" in text
