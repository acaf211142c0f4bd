"""No hidden randomness: whatever is drawn comes from an `Rng` that was passed in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import Module, aliases, dotted, imports, modules, resolved

# Whole modules whose every function draws from, or sets, a state that the process shares.
_BANNED = ("random", "numpy.random", "torch.random", "torch.distributions")
_BANNED_NAMES = frozenset(
    {
        "torch.default_generator",
        "torch.initial_seed",
        "torch.manual_seed",
        "torch.seed",
        "torch.set_rng_state",
        "torch.cuda.manual_seed",
        "torch.cuda.manual_seed_all",
    }
)
# Puts the shared state back as it was, for calls of a user's model that draw from it.
_HARMLESS = frozenset({"torch.random.fork_rng"})
# Functions and tensor methods of torch that draw from the shared generator unless they are given one.
_TORCH_DRAWS = frozenset(
    f"torch.{name}"
    for name in (
        "bernoulli",
        "binomial",
        "multinomial",
        "normal",
        "poisson",
        "rand",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "randperm",
    )
)
_TENSOR_DRAWS = frozenset(
    {"bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_", "uniform_"}
)


def global_randomness(package: Path) -> list[str]:
    """Complaints about the random module, numpy.random, SciPy's `rvs` and torch's draws without a generator."""
    return [complaint for module in modules(package) for complaint in _of_module(module)]


def _of_module(module: Module) -> Iterator[str]:
    for node, name in imports(module):
        if _is_banned(name):
            yield f"{module.at(node)}: imports `{name}`, whose state is global; take an `Rng`"
    names = aliases(module)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            name = resolved(node, names)
            # Only the attribute right below the module: the longer chains above it hold this one.
            below = name.rpartition(".")[0] in _BANNED and dotted(node).partition(".")[0] in names
            if (below and name not in _HARMLESS) or name in _BANNED_NAMES:
                yield f"{module.at(node)}: uses `{name}`, whose state is global; take an `Rng`"
        elif isinstance(node, ast.Call):
            name = resolved(node.func, names)
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            given = any(keyword.arg == "generator" for keyword in node.keywords)
            if not given and (name in _TORCH_DRAWS or name.startswith("torch.nn.init.") or method in _TENSOR_DRAWS):
                yield f"{module.at(node)}: `{name or method}` draws from torch's global generator; pass `generator=`"
            if method == "rvs":
                yield f"{module.at(node)}: `rvs` draws from numpy's global generator; take an `Rng`"


def _is_banned(name: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in _BANNED)
