"""How fast the randomness is: normals beside torch's own, and exact discrete draws. Run: python -m benchmarks.randomness

The two generators of normals take turns in one process, so that a busy machine slows both; torch keeps its default
number of threads. Writes benchmarks/results/randomness.json.
"""

from __future__ import annotations

import json
import math
import platform
import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import torch

from privet.core.random import default_rng, discrete_gaussian, discrete_laplace

COMMAND = "python -m benchmarks.randomness"
RESULTS = Path(__file__).parent / "results" / "randomness.json"
NORMALS = 800_000
REPEATS = 41
LIMIT = 1.25
DRAWS = 200_000
# Measured elsewhere for OpenDP 0.16, in microseconds for one draw.
OPENDP = (11.0, 94.0)
SCALES: tuple[Fraction | float, ...] = (1e-3, 0.5, Fraction(5, 2), 3.7, 1000, 1e6, 1e9)


def seconds(call: Callable[[], object]) -> float:
    """The time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def interleaved(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """The times of each call, which take turns; the first round warms up and is not kept."""
    rounds = [{name: seconds(call) for name, call in calls.items()} for _ in range(repeats + 1)][1:]
    return {name: [each[name] for each in rounds] for name in calls}


def normals(dtype: torch.dtype) -> dict[str, object]:
    """Filling one tensor in place, by torch and from the secure stream."""
    rng, tensor = default_rng(), torch.empty(NORMALS, dtype=dtype)
    times = interleaved({"torch": tensor.normal_, "privet": lambda: rng.fill_normal(tensor, 1.0)}, REPEATS)
    ratios = [ours / theirs for ours, theirs in zip(times["privet"], times["torch"], strict=True)]
    medians = {name: statistics.median(each) for name, each in times.items()}
    return {
        "dtype": str(dtype).removeprefix("torch."),
        "count": NORMALS,
        "repeats": REPEATS,
        "torch_ms": 1e3 * medians["torch"],
        "privet_ms": 1e3 * medians["privet"],
        "ratio_of_medians": medians["privet"] / medians["torch"],
        "ratio_quartiles": statistics.quantiles(ratios, n=4),
    }


def discrete(name: str, scale: Fraction | float) -> dict[str, object]:
    """Many draws in one call, and one draw in one call."""
    rng, sampler = default_rng(), {"laplace": discrete_laplace, "gaussian": discrete_gaussian}[name]
    calls = {"many": lambda: sampler(scale, DRAWS, rng), "one": lambda: sampler(scale, None, rng)}
    medians = {name: statistics.median(each) for name, each in interleaved(calls, 7).items()}
    micro = 1e6 * medians["many"] / DRAWS
    return {
        "law": name,
        "scale": float(scale),
        "draws": DRAWS,
        "draws_per_second": DRAWS / medians["many"],
        "microseconds_a_draw": micro,
        "microseconds_for_a_single_draw": 1e6 * medians["one"],
        "times_faster_than_opendp": [each / micro for each in OPENDP],
    }


def bits() -> float:
    """The raw stream, in bytes a second."""
    rng = default_rng()
    return 2**24 / statistics.median(seconds(lambda: rng.bits(2**24)) for _ in range(9))


def main() -> None:
    """Measure, show and write down."""
    result = {
        "command": COMMAND,
        "processor_threads": torch.get_num_threads(),
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__},
        "stream_bytes_per_second": bits(),
        "limit": LIMIT,
        "normals": [normals(torch.float32), normals(torch.float64)],
        "opendp_microseconds_a_draw": OPENDP,
        "discrete": [discrete(name, scale) for name in ("laplace", "gaussian") for scale in SCALES],
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"stream {bits() / 1e9:.1f} GB/s; {torch.get_num_threads()} threads for torch, 1 for the stream")
    print(f"{'normals':>12} {'torch ms':>9} {'ours ms':>9} {'ratio':>6}   quartiles  (at most {LIMIT} in float32)")
    for row in (normals(torch.float32), normals(torch.float64)):
        print(row)
    assert math.isfinite(result["stream_bytes_per_second"])


if __name__ == "__main__":
    main()
