"""Writes `opendp.json`: what OpenDP says about noise and choices. Run by hand, where OpenDP (277 MB) is installed.

    python -m tests.mechanisms.record_opendp

It needs nothing of Privet. OpenDP states what neighbouring answers at a given distance cost: ε for Laplace noise and
for choices, ρ of zCDP for Gaussian noise.
"""

from __future__ import annotations

import json
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["FILE", "main"]

FILE = Path(__file__).with_name("opendp.json")
SCALES = (0.5, 1.0, 2.5, 7.0, 40.0)


def main() -> None:
    """Ask OpenDP and write down what it says."""
    dp: Any = import_module("opendp.prelude")
    dp.enable_features("contrib")
    number = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    flat = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    long = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    scores = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    counted = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(monotonic=True, T=int)
    found: dict[str, Any] = {"opendp": version("opendp"), "rows": []}
    for scale in SCALES:
        rows: dict[str, list[tuple[float, float]]] = {
            "laplace": [(moved, dp.m.make_laplace(*number, scale=scale).map(moved)) for moved in (1, 2, 3)],
            "laplace vector": [(moved, dp.m.make_laplace(*flat, scale=scale).map(moved)) for moved in (1, 2)],
            "gaussian": [(moved, dp.m.make_gaussian(*number, scale=scale).map(moved)) for moved in (1, 2)],
            "gaussian vector": [(2**0.5, dp.m.make_gaussian(*long, scale=scale).map(2**0.5))],
            "noisy max": [(1, dp.m.make_noisy_max(*scores, dp.max_divergence(), scale=scale).map(1))],
            "noisy max, monotone": [(1, dp.m.make_noisy_max(*counted, dp.max_divergence(), scale=scale).map(1))],
        }
        found["rows"] += [
            {"what": what, "scale": scale, "moved": moved, "cost": cost}
            for what, costs in rows.items()
            for moved, cost in costs
        ]
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
