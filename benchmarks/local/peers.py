"""What other people's libraries need for a report; run by their own interpreter, since they pin other packages.

`python peers.py DOMAIN EPSILON` prints JSON: for each oracle and library, seconds of the processor for each report.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

Offer = tuple[str, str, Callable[[list[int]], Any]]
"""An oracle, the library's own name for what it does, and a run over answers."""


def multi_freq(domain: int, epsilon: float) -> Iterator[Offer]:
    """multi-freq-ldpy: compiled clients, called once for each person, and aggregators over lists."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    d, e = domain, epsilon
    library = "multi-freq-ldpy"
    yield "RandomizedResponse", library, lambda v: GRR_Aggregator_MI([GRR_Client(x, d, e) for x in v], d, e)
    yield "SymmetricUnary", library, lambda v: UE_Aggregator_MI([UE_Client(x, d, e, False) for x in v], e, False)
    yield "OptimizedUnary", library, lambda v: UE_Aggregator_MI([UE_Client(x, d, e, True) for x in v], e, True)
    yield "LocalHashing", library, lambda v: LH_Aggregator_MI([LH_Client(x, d, e, True) for x in v], d, e, True)


def pure(domain: int, epsilon: float) -> Iterator[Offer]:
    """pure-ldp: one object for the clients and one for the server, a call for each person."""
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
    from pure_ldp.frequency_oracles.local_hashing import FastLHClient, FastLHServer, LHClient, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    # Their estimates are left out: they are made once, however many reports there are, and some take half a second.
    def both(client: Any, server: Any) -> Callable[[list[int]], Any]:
        def run(values: list[int]) -> None:
            for value in values:
                server.aggregate(client.privatise(value + 1))

        return run

    d, e = domain, epsilon
    hadamard, few = HadamardResponseServer(e, d), FastLHServer(e, d, 1000, use_olh=True)
    yield "RandomizedResponse", "pure-ldp", both(DEClient(e, d), DEServer(e, d))
    yield "SymmetricUnary", "pure-ldp", both(UEClient(e, d), UEServer(e, d))
    yield "OptimizedUnary", "pure-ldp", both(UEClient(e, d, use_oue=True), UEServer(e, d, use_oue=True))
    yield "LocalHashing", "pure-ldp", both(LHClient(e, d, use_olh=True), LHServer(e, d, use_olh=True))
    # A heuristic: hashes are 1,000 fixed ones, so that its error does not go to 0 with the number of reports.
    yield "LocalHashing", "pure-ldp, fast, 1,000 hashes", both(FastLHClient(e, d, 1000, use_olh=True), few)
    yield "HadamardResponse", "pure-ldp", both(HadamardResponseClient(e, d, hadamard.get_hash_funcs()), hadamard)


def seconds(run: Callable[[list[int]], Any], domain: int) -> float:
    """The processor's time for each report, which other programs disturb least: the best of three, once compiled."""

    def timed(count: int) -> float:
        values = [i * 7 % domain for i in range(count)]
        started = time.process_time()
        run(values)
        return time.process_time() - started

    timed(20)
    count = min(200_000, max(500, int(500 / timed(500))))
    return min(timed(count) for _ in range(3)) / count


def main() -> None:
    domain, epsilon = int(sys.argv[1]), float(sys.argv[2])
    found: dict[str, dict[str, float]] = {}
    for offers in (multi_freq, pure):
        for name, library, run in offers(domain, epsilon):
            found.setdefault(name, {})[library] = seconds(run, domain)
    print(json.dumps(found))


main()
