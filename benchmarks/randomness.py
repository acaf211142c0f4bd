"""How fast the randomness is: normals beside torch's own, and exact discrete draws.

Run: python -m benchmarks.randomness

The two generators of normals take turns in one process, so that a busy machine slows both; torch keeps its default
number of threads. Writes benchmarks/results/randomness.json.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import torch

from privet.core.random import default_rng, discrete_gaussian, discrete_laplace

COMMAND = "python -m benchmarks.randomness"
RESULTS = Path(__file__).parent / "results" / "randomness.json"
COUNT = 800_000
REPEATS = 101
LIMIT = 1.25
DRAWS = 200_000
# Measured for OpenDP 0.16, in microseconds a draw, on two cores of the same kind.
OPENDP = (11.0, 94.0)
SCALES: tuple[Fraction | float, ...] = (1e-3, 0.5, Fraction(5, 2), 3.7, 1000, 1e6, 1e9)


@dataclass(frozen=True)
class Normals:
    """Filling one tensor in place, by torch and from the secure stream: medians, in milliseconds.

    The processor's time of all threads, besides the time on the wall, is what other programs disturb least.
    """

    dtype: str
    count: int
    repeats: int
    torch_ms: float
    privet_ms: float
    ratio: float
    ratio_quartiles: tuple[float, float]
    torch_processor_ms: float
    privet_processor_ms: float
    processor_ratio: float


@dataclass(frozen=True)
class Discrete:
    """Exact draws: many in one call, and one in one call."""

    law: str
    scale: float
    draws_per_second: float
    microseconds_a_draw: float
    microseconds_for_one_alone: float
    times_faster_than_opendp: tuple[float, float]


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """The seconds of one call: on the wall, and of the processor in all threads."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - processor


def interleaved(
    first: Callable[[], object], second: Callable[[], object], repeats: int
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """The times of two calls that take turns; the first round warms up and is not kept."""
    rounds = [(timed(first), timed(second)) for _ in range(repeats + 1)][1:]
    return [each[0] for each in rounds], [each[1] for each in rounds]


def median(times: list[tuple[float, float]], which: int = 0) -> float:
    """The middle of the times on the wall (0) or of the processor (1)."""
    return statistics.median(each[which] for each in times)


def normals(dtype: torch.dtype) -> Normals:
    """Time both ways of drawing `COUNT` normals."""
    rng, tensor = default_rng(), torch.empty(COUNT, dtype=dtype)
    theirs, ours = interleaved(tensor.normal_, lambda: rng.fill_normal(tensor, 1.0), REPEATS)
    low, _, high = statistics.quantiles([mine[0] / peer[0] for peer, mine in zip(theirs, ours, strict=True)], n=4)
    return Normals(
        dtype=str(dtype).removeprefix("torch."),
        count=COUNT,
        repeats=REPEATS,
        torch_ms=1e3 * median(theirs),
        privet_ms=1e3 * median(ours),
        ratio=median(ours) / median(theirs),
        ratio_quartiles=(low, high),
        torch_processor_ms=1e3 * median(theirs, 1),
        privet_processor_ms=1e3 * median(ours, 1),
        processor_ratio=median(ours, 1) / median(theirs, 1),
    )


def discrete(law: str, scale: Fraction | float) -> Discrete:
    """Time one sampler at one scale."""
    rng = default_rng()

    def draw(size: int | None) -> object:
        return discrete_laplace(scale, size, rng) if law == "laplace" else discrete_gaussian(scale, size, rng)

    many, one = (median(times) for times in interleaved(lambda: draw(DRAWS), lambda: draw(None), 9))
    micro = 1e6 * many / DRAWS
    return Discrete(law, float(scale), DRAWS / many, micro, 1e6 * one, (OPENDP[0] / micro, OPENDP[1] / micro))


def stream() -> float:
    """The raw secure stream, in gigabytes a second."""
    rng = default_rng()
    return 2**24 / 1e9 / median([timed(lambda: rng.bits(2**24)) for _ in range(9)])


def main() -> None:
    """Measure, show and write down."""
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else None  # others at work make the times worth little
    speed = stream()
    rows = [normals(torch.float32), normals(torch.float64)]
    draws = [discrete(law, scale) for law in ("laplace", "gaussian") for scale in SCALES]
    print(f"secure stream {speed:.1f} GB/s; torch has {torch.get_num_threads()} threads, the stream uses one\n")
    print(
        f"{COUNT} normals   torch ms  privet ms   ratio   quartiles      of processor time  (float32: at most {LIMIT})"
    )
    for row in rows:
        low, high = row.ratio_quartiles
        print(
            f"{row.dtype:>14} {row.torch_ms:10.2f} {row.privet_ms:10.2f} {row.ratio:7.2f}   {low:.2f} to {high:.2f}"
            f"   {row.processor_ratio:.2f}"
        )
    print("\ndiscrete       scale   draws/s    µs/draw   one alone, µs   times OpenDP's speed (11 to 94 µs a draw)")
    for draw in draws:
        low, high = draw.times_faster_than_opendp
        print(
            f"{draw.law:>8} {draw.scale:11g} {draw.draws_per_second:9.3g} {draw.microseconds_a_draw:10.2f}"
            f" {draw.microseconds_for_one_alone:15.0f}   {low:.0f} to {high:.0f}"
        )
    record = {
        "command": COMMAND,
        "cores": os.cpu_count(),
        "load_when_started": busy,
        "torch_threads": torch.get_num_threads(),
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__},
        "stream_gigabytes_per_second": speed,
        "limit_of_the_float32_ratio": LIMIT,
        "normals": [asdict(row) for row in rows],
        "draws_in_one_call": DRAWS,
        "opendp_microseconds_a_draw": OPENDP,
        "discrete": [asdict(draw) for draw in draws],
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
