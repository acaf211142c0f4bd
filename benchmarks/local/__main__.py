"""Randomising and counting ten million answers, by every oracle, beside multi-freq-ldpy and pure-ldp.

Run: python -m benchmarks.local --peers PYTHON, PYTHON being an interpreter of an environment with both of them.

Times are the processor's, since other programs disturb them least. Of Privet, all is timed: randomise, aggregate,
estimate. The others are timed on as many answers as they do in about a second, and their time for ten million follows
in proportion; pure-ldp's estimates, made once, are left out. Memory is the peak of what is allocated besides the
answers. Writes benchmarks/results/local.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
import tracemalloc
from pathlib import Path

import numpy as np

from privet.core.random import default_rng
from privet.local import ORACLES, FrequencyOracle, collect_reports

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "local.json"
REPORTS = 10_000_000
DOMAIN = 1024
EPSILON = 1.0
WANTED = 5.0


def made(name: str) -> FrequencyOracle:
    """RAPPOR solves for all values at once, and is asked for fewer of them."""
    return ORACLES[name](128 if name == "Rappor" else DOMAIN, EPSILON)


def run(oracle: FrequencyOracle, count: int) -> tuple[float, float]:
    """Randomise, aggregate and estimate: seconds of the processor, and the peak of what was allocated, in megabytes.

    The peak is counted from after the answers were made, and only if allocations are being traced.
    """
    values = np.arange(count, dtype=np.int64) * 7 % oracle.domain
    if tracemalloc.is_tracing():
        tracemalloc.reset_peak()
    held = tracemalloc.get_traced_memory()[0]
    started = time.process_time()
    oracle.estimate(collect_reports(oracle, values, default_rng()))
    taken = time.process_time() - started
    return taken, (tracemalloc.get_traced_memory()[1] - held) / 2**20


def megabytes(oracle: FrequencyOracle, count: int) -> float:
    tracemalloc.start()
    found = run(oracle, count)[1]
    tracemalloc.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="an interpreter with multi-freq-ldpy and pure-ldp")
    given = parser.parse_args().peers
    command = [given, str(HERE / "peers.py"), str(DOMAIN), str(EPSILON)]
    peers: dict[str, dict[str, float]] = (
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) if given else {}
    )
    rows = []
    for name in ORACLES:
        oracle = made(name)
        run(oracle, 1000)  # what is made once
        seconds = run(oracle, REPORTS)[0]
        fewer, more = megabytes(oracle, 200_000), megabytes(oracle, 2_000_000)
        others = {library: each * REPORTS for library, each in peers.get(name, {}).items()}
        times = min(others.values()) / seconds if others else None
        rows.append(
            {
                "oracle": name,
                "domain": oracle.domain,
                "processor_seconds": seconds,
                "peak_megabytes_for_200_000": fewer,
                "peak_megabytes_for_2_000_000": more,
                "processor_seconds_of_others_for_as_many": others,
                "times_as_fast_as_the_fastest": times,
            }
        )
        said = "" if times is None else f"{times:.1f} times as fast as the fastest other"
        print(f"{name:20} {seconds:7.2f} s  {fewer:.1f} and {more:.1f} MB  {said}")
    document = {
        "command": "python -m benchmarks.local --peers PYTHON",
        "cores": os.cpu_count(),
        "load_when_started": os.getloadavg()[0],
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "reports": REPORTS,
        "epsilon": EPSILON,
        "wanted_times": WANTED,
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


main()
