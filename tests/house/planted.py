"""Bad files, at least one for each check, which the checks must reject; and one good tree, which they must accept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Planted:
    """One bad file: the check that must object, where the file goes, what it says, and a part of the objection."""

    check: str
    place: str
    source: str
    complaint: str
    beside: Mapping[str, str] = field(default_factory=dict)
    """Other files that the mistake needs."""


_ROOMS = "imports go one way between rooms"
_PACKAGES = "rooms are entered through packages"
_CYCLES = "no import cycles"
_STRINGS = "no room in a string"
_EXPORTS = "__all__ is what is exported"
_RANDOM = "no global randomness"
_OUTPUT = "no print, no input"
_SIZES = "no file over 450 lines"
_NAMES = "file names say something"
_EXCEPTS = "no blind except"
_KWARGS = "no **kwargs in public"
_DOCSTRINGS = "public names have docstrings"
_GUARANTEES = "a Release states its Guarantee"
_COMMANDS = "commands compute nothing"
_CLASSES = "class names are unique"

BAD = (
    Planted(
        _CLASSES,
        "core/x.py",
        "class A:\n    class B: ...\n\nclass B: ...",
        "`B` is a class in core/x.py:4 and core/x.py:2",
    ),
    Planted(_ROOMS, "core/x.py", "from privet.accounting import epsilon", "`core` may not import `accounting`"),
    Planted(_ROOMS, "core/x.py", "def f():\n    import privet.ledger", "x.py:2: `core` may not import `ledger`"),
    Planted(_ROOMS, "core/x.py", "if TYPE_CHECKING:\n    from privet import report", "may not import `report`"),
    Planted(_ROOMS, "query/x.py", "from privet.local.y import z", "`query` may not import `local`"),
    Planted(_ROOMS, "pate/x.py", "from ..federated import rounds", "`pate` may not import `federated`"),
    Planted(_ROOMS, "core/x.py", "import_module('privet.cli')", "`core` may not import `cli`"),
    Planted(_ROOMS, "core/x.py", "importlib.import_module('..cli', 'privet.core')", "`core` may not import `cli`"),
    Planted(_ROOMS, "cli/x.py", "from privet import Ledger", "through the front door"),
    Planted(_ROOMS, "cli/x.py", "import privet", "through the front door"),
    Planted(_ROOMS, "attic/x.py", "", "`attic` is not a room"),
    Planted(_ROOMS, "loose.py", "", "`loose` is not a room"),
    Planted(_PACKAGES, "query/x.py", "from privet.core.event import Event", "x.py:1: imports `privet.core.event`"),
    Planted(_PACKAGES, "query/x.py", "def f():\n    import privet.core.event", "x.py:2: imports `privet.core.event`"),
    Planted(_PACKAGES, "query/x.py", "if TYPE_CHECKING:\n    from privet.core.unit import Unit", "`privet.core.unit`"),
    Planted(_PACKAGES, "cli/__init__.py", "from privet.runs.plan import RunPlan", "a module inside `runs`"),
    Planted(
        _PACKAGES,
        "query/x.py",
        "from privet.core import hidden",
        "`privet.core` does not offer `hidden`",
        {"core/__init__.py": "from privet.core.x import hidden, shown as shown\n__all__ = ['listed']"},
    ),
    Planted(
        _CYCLES,
        "core/x.py",
        "from privet.core.y import b",
        "privet.core.x → privet.core.y → privet.core.x: import each other",
        {"core/y.py": "def b():\n    from privet.core import x"},
    ),
    Planted(
        _CYCLES,
        "query/x.py",
        "import privet.query.y",
        "privet.query.x → privet.query.y → privet.query.z → privet.query.x",
        {"query/y.py": "from privet.query.z import c", "query/z.py": "from privet.query.x import a"},
    ),
    Planted(_STRINGS, "core/x.py", "RENDERER = 'privet.report.notebook:table'", "names the room `report`"),
    Planted(_STRINGS, "core/x.py", "files('privet.data')", "names the room `data`"),
    Planted(_EXPORTS, "core/x.py", "x = 1", "has no literal `__all__`"),
    Planted(_EXPORTS, "core/x.py", "__all__ = [name for name in dir()]", "has no literal `__all__`"),
    Planted(_EXPORTS, "core/x.py", "__all__ = []\n\ndef forgotten(): ...", "`forgotten` is public and missing"),
    Planted(_EXPORTS, "core/x.py", "__all__ = []\ntry:\n    LIMIT: int = 1\nfinally:\n    pass", "`LIMIT` is public"),
    Planted(_EXPORTS, "core/x.py", "__all__ = ['ghost']", "names `ghost`, which is not defined"),
    Planted(_EXPORTS, "core/x.py", "__all__ = ['a', 'a']\na = 1", "names `a` twice"),
    Planted(_EXPORTS, "core/__init__.py", "from privet.core.x import y\n__all__ = []", "`y` is public and missing"),
    Planted(_EXPORTS, "core/__init__.py", "from privet.core.x import y as y\n__all__ = ['y']", "and for other rooms"),
    Planted(_EXPORTS, "core/__init__.py", "from .x import y\n__all__: list[str] = []", "`y` is public and missing"),
    Planted(_RANDOM, "core/x.py", "import numpy as np\nnp.random.default_rng()", "uses `numpy.random.default_rng`"),
    Planted(_RANDOM, "core/x.py", "from numpy.random import default_rng", "imports `numpy.random.default_rng`"),
    Planted(_RANDOM, "core/x.py", "from numpy import random as r", "imports `numpy.random`"),
    Planted(_RANDOM, "core/x.py", "def f():\n    import random\n    return random.random()", "imports `random`"),
    Planted(_RANDOM, "core/x.py", "import torch\ntorch.manual_seed(0)", "uses `torch.manual_seed`"),
    Planted(_RANDOM, "core/x.py", "import torch as t\nt.randn(3)", "`torch.randn` draws from torch's global"),
    Planted(_RANDOM, "core/x.py", "from torch import normal\nnormal(0.0, 1.0, (3,))", "`torch.normal` draws"),
    Planted(_RANDOM, "core/x.py", "def f(x):\n    return x.zero_().normal_()", "`normal_` draws from torch's"),
    Planted(_RANDOM, "core/x.py", "import torch\ntorch.nn.init.zeros_(w)", "`torch.nn.init.zeros_` draws"),
    Planted(_RANDOM, "core/x.py", "from scipy import stats\nstats.norm.rvs(size=3)", "`rvs` draws from numpy's"),
    Planted(_OUTPUT, "core/x.py", "def f():\n    print('spent')", "x.py:2: calls `print`"),
    Planted(_OUTPUT, "core/x.py", "name = input('name? ')", "calls `input`"),
    Planted(_OUTPUT, "cli/x.py", "from rich import print\nprint('spent')", "calls `rich.print`"),
    Planted(_OUTPUT, "core/x.py", "import sys\nsys.stdout.write('spent')", "calls `sys.stdout.write`"),
    Planted(_SIZES, "core/x.py", "x = 1\n" * 501, "501 lines"),
    Planted(_NAMES, "core/utils.py", "", "`utils` says nothing"),
    Planted(_NAMES, "core/noise_helper.py", "", "`helper` says nothing"),
    Planted(_NAMES, "core/common/x.py", "", "`common` says nothing"),
    Planted(_NAMES, "core/base.py", "", "`base` says nothing"),
    Planted(_NAMES, "core/managers.py", "", "`managers` says nothing"),
    Planted(_EXCEPTS, "core/x.py", "try:\n    f()\nexcept:\n    pass", "bare `except`"),
    Planted(_EXCEPTS, "core/x.py", "try:\n    f()\nexcept Exception:\n    pass", "catches `Exception`"),
    Planted(_EXCEPTS, "core/x.py", "try:\n    f()\nexcept (OSError, BaseException):\n    pass", "`BaseException`"),
    Planted(_EXCEPTS, "core/x.py", "import contextlib\nwith contextlib.suppress(Exception):\n    f()", "`Exception`"),
    Planted(_KWARGS, "core/x.py", "def price(event, **options): ...", "`price` takes `**options`"),
    Planted(_KWARGS, "core/x.py", "class Plan:\n    def __init__(self, **kwargs): ...", "`__init__` takes `**kwargs`"),
    Planted(_DOCSTRINGS, "core/x.py", "x = 1", "the module has no docstring"),
    Planted(_DOCSTRINGS, "core/x.py", "'''Doc.'''\ndef price(): ...", "`price` has no docstring"),
    Planted(_DOCSTRINGS, "core/x.py", "'''Doc.'''\nclass Plan: ...", "`Plan` has no docstring"),
    Planted(
        _DOCSTRINGS, "core/x.py", "class Plan:\n    '''Doc.'''\n    def step(self): ...", "`step` has no docstring"
    ),
    Planted(_GUARANTEES, "core/x.py", "def count() -> Release[int]:\n    '''Counts.'''", "`count` returns a Release"),
    Planted(_GUARANTEES, "core/x.py", "def ask() -> 'list[Release[int]]': ...", "`ask` returns a Release"),
    Planted(_GUARANTEES, "core/x.py", "class M:\n    def run(self) -> core.Release | None: ...", "`run` returns a"),
    Planted(_GUARANTEES, "core/x.py", "class Release:\n    def map(self) -> Self: ...", "`map` returns a Release"),
    Planted(_COMMANDS, "cli/x.py", "import numpy as np", "x.py:1: imports `numpy`"),
    Planted(_COMMANDS, "cli/x.py", "def f():\n    from torch import nn", "x.py:2: imports `torch.nn`"),
    Planted(_COMMANDS, "cli/x.py", "if TYPE_CHECKING:\n    import numpy.typing", "imports `numpy.typing`"),
    Planted(_COMMANDS, "cli/deep/x.py", "import_module('torch')", "imports `torch`"),
)

# What the checks must leave alone: each file comes close to a rule and keeps to it.
GOOD = {
    "__init__.py": '"""The front door may show any room."""\n\nfrom privet.cli import main\n\n__all__ = ["main"]\n',
    "core/__init__.py": '"""Records."""\n\nimport json\n\nfrom privet.core import x as x\n\n__all__: list[str] = []\n',
    "core/x.py": '''"""Randomness that is passed in, a private name, a type variable, and an inner function."""

from typing import Any, TypeVar

import torch

__all__ = ["Plan", "draw"]

T = TypeVar("T")
_LIMIT = 3


class Plan:
    """A plan."""

    def __init__(self) -> None:
        self.input = 1


def draw(rng: Any, generator: torch.Generator) -> Any:
    """Draws from what it was given."""

    def inner(*args: Any, **kwargs: Any) -> Any:
        return rng.random(*args, **kwargs)

    return inner(torch.randn(3, generator=generator))


def _hidden(**kwargs: Any) -> "Release[int]":
    try:
        return kwargs["x"]
    except KeyError as Exception_:
        raise Exception_ from None
''',
    "cli/__init__.py": '"""Verbs."""\n\nfrom privet.core import x\n\n__all__ = ["main", "x"]\n\n\n'
    'def main() -> "Release[int]":\n    """Runs.\n\n    Guarantee:\n        None is needed.\n    """\n',
}
