"""DP-SGD beside plain SGD and opacus: time of a full step, and memory.

Run: python -m benchmarks.dpsgd [--case NAME] [--seconds S]

Times: the engines take turns in one process, a few steps each, and medians are compared, so that whatever slows the
machine slows all of them; the first step of a turn does not count, since it finds another engine's numbers in the
caches. Memory: the highest resident size of a process that makes a few steps with one engine, less that of a process
which has only imported it. Writes benchmarks/results/dpsgd.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.dpsgd.engines import ENGINES, FOR_MEMORY, MICRO, sampling
from benchmarks.dpsgd.models import CASES, Case
from privet.training.native import loops

COMMAND = "python -m benchmarks.dpsgd"
RESULTS = Path(__file__).parents[1] / "results" / "dpsgd.json"
WARM, TURN, LEAST, MOST = 3, 4, 24, 240
FASTER = 1.5
"""How many times faster than opacus' best way a step is meant to be."""
MEMORY = 1.5
"""How much more memory than plain SGD a step is meant to take at most."""
MICRO_MEMORY = 1.2
"""The same in micro-batches of an eighth of the batch."""
SAMPLING = 0.05
"""How much of a step drawing and gathering a batch is meant to take at most."""


def times(case: Case, seconds: float) -> dict[str, list[float]]:
    """Seconds of each engine's steps, in turns; an engine that cannot do the case is left out."""
    steppers = {}
    for name, make in ENGINES.items():
        try:
            stepper = make(case)
            for _ in range(WARM):
                stepper()
        except (NotImplementedError, RuntimeError, ValueError) as problem:
            print(f"  {name}: {type(problem).__name__}: {str(problem)[:100]}", flush=True)
            continue
        steppers[name] = stepper
    found: dict[str, list[float]] = {name: [] for name in steppers}
    begun = time.perf_counter()
    while len(found["plain"]) < LEAST or (len(found["plain"]) < MOST and time.perf_counter() - begun < seconds):
        for name, stepper in steppers.items():
            stepper()
            for _ in range(TURN - 1):
                start = time.perf_counter()
                stepper()
                found[name].append(time.perf_counter() - start)
    return found


def sampling_seconds(case: Case) -> float:
    """What drawing and gathering a batch takes: the median, each time with nothing of it in a cache."""
    draw, others = sampling(case), torch.zeros(1 << 24)
    found = []
    for _ in range(LEAST):
        others.add_(1)
        start = time.perf_counter()
        draw()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def peak(place: int, engine: str) -> float:
    """MB above import that a process takes at most, for five steps of one engine."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.dpsgd", "--peak", str(place), engine],
        capture_output=True,
        text=True,
        check=False,
    )
    return float(done.stdout) if done.returncode == 0 else float("nan")


def resident(field: str) -> float:
    """MB of this process: `VmRSS` now, `VmHWM` at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def processor() -> str:
    """What the system calls it, and which vectors it has."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    name, flags = (next(line for line in lines if line.startswith(field)) for field in ("model name", "flags"))
    wide = "AVX-512" if "avx512f" in flags.split() else "AVX2" if "avx2" in flags.split() else "neither"
    return f"{name.partition(':')[2].strip()}, {wide}"


def measure_peak(place: int, engine: str) -> None:
    """Print the MB: the child of `peak`."""
    import opacus  # noqa: F401

    import privet.training  # noqa: F401

    Path("/proc/self/clear_refs").write_text("5")  # the highest size counts from here
    imported = resident("VmRSS")
    stepper = FOR_MEMORY[engine](CASES[place])
    for _ in range(5):
        stepper()
    print(resident("VmHWM") - imported)


def row(place: int, case: Case, seconds: float, *, memory: bool) -> dict[str, Any]:
    """All figures of one case."""
    print(f"{case.name}, batch {case.batch}", flush=True)
    found = times(case, seconds)
    medians = {name: statistics.median(each) for name, each in found.items()}
    ratios = {name: each / medians["plain"] for name, each in medians.items()}
    others = [each for name, each in medians.items() if name.startswith("opacus")]
    drawing = sampling_seconds(case) / medians["privet"]
    result = {
        "case": case.name,
        "batch": case.batch,
        "steps": len(found["plain"]),
        "milliseconds": {name: round(1e3 * each, 3) for name, each in medians.items()},
        "ratio_to_plain": {name: round(each, 3) for name, each in ratios.items()},
        "goal": case.goal,
        "meets_goal": ratios["privet"] <= case.goal,
        "times_faster_than_best_opacus": round(min(others) / medians["privet"], 2) if others else None,
        "is_enough_faster": bool(others) and min(others) / medians["privet"] >= FASTER,
        "share_of_sampling": round(drawing, 4),
        "meets_sampling": drawing <= SAMPLING,
    }
    if memory:
        peaks = {engine: round(peak(place, engine), 1) for engine in FOR_MEMORY}
        result["peak_mb_above_import"] = peaks
        result["memory_ratio"] = round(peaks["privet"] / peaks["plain"], 2)
        result["meets_memory"] = peaks["privet"] <= MEMORY * peaks["plain"]
        result["memory_ratio_with_micro_batches"] = round(peaks[MICRO] / peaks["plain"], 2)
        result["meets_micro_memory"] = peaks[MICRO] <= MICRO_MEMORY * peaks["plain"]
    print(
        "  " + ", ".join(f"{name} {each:.2f}×" for name, each in ratios.items()),
        f"(goal {case.goal}), sampling {drawing:.1%}",
        flush=True,
    )
    return result


def main() -> None:
    """Measure all cases, or the named one, and write the results."""
    parser = argparse.ArgumentParser(prog=COMMAND)
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    parser.add_argument("--seconds", type=float, default=25.0, help="how long to measure each case")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--peak", nargs=2, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        measure_peak(int(options.peak[0]), options.peak[1])
        return
    chosen = [(place, case) for place, case in enumerate(CASES) if options.case in case.name]
    rows = [row(place, case, options.seconds, memory=not options.no_memory) for place, case in chosen]
    if options.case:
        return
    report = {
        "command": COMMAND,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "processor": processor(),
        "compiled_loops": loops.processor(),
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")
    print(f"wrote {RESULTS.name}")


if __name__ == "__main__":
    main()
