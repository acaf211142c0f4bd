"""Writes `oracles.json`: what independent libraries say of 220 settings. Run by hand: minutes, not seconds.

    python -m tests.accounting.record_oracles

An oracle that fails or takes over ten seconds is recorded as such, and counted by the test that reads the file.
"""

from __future__ import annotations

import json
import math
import signal
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

from privet.accounting.canonical import CountedEvent
from privet.accounting.renyi import epsilon as renyi_epsilon
from privet.core.event import Gaussian, Poisson
from privet.core.random import SeededRng
from privet.core.unit import Unit

__all__ = ["FILE", "main"]

FILE = Path(__file__).with_name("oracles.json")
SETTINGS = 220
SECONDS = 10


def settings() -> list[tuple[float, float, int, float]]:
    """σ 0.3–50, rate 1e-5–1, steps 1–1e6, δ 1e-3–1e-12, all log-uniform, where Rényi's ε is at most 100."""
    rng = SeededRng(2026)
    found: list[tuple[float, float, int, float]] = []
    while len(found) < SETTINGS:
        u = rng.uniform(4).tolist()
        sigma, rate = 0.3 * (50 / 0.3) ** u[0], 10 ** (-5 * u[1])
        steps, delta = round(10 ** (6 * u[2])), 10 ** (-3 - 9 * u[3])
        part = CountedEvent(Gaussian(sigma), Poisson(rate), steps)
        if renyi_epsilon([part], delta, Unit()) <= 100:
            found.append((sigma, rate, steps, delta))
    return found


def dp_accounting_pld(sigma: float, rate: float, steps: int, delta: float) -> dict[str, float]:
    """Google's privacy-loss distributions at their default grid: pessimistic."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(sigma))
    accountant = PLDAccountant()
    accountant.compose(event, steps)
    return {"upper": float(accountant.get_epsilon(delta))}


def prv(sigma: float, rate: float, steps: int, delta: float) -> dict[str, float]:
    """Microsoft's PRV accountant: a lower bound, an estimate and an upper bound."""
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    mechanism = PoissonSubsampledGaussianMechanism(sampling_probability=rate, noise_multiplier=sigma)
    accountant = PRVAccountant(
        prvs=[mechanism], max_self_compositions=[steps], eps_error=0.01, delta_error=delta / 1000
    )
    low, _estimate, up = accountant.compute_epsilon(delta=delta, num_self_compositions=[steps])
    return {"lower": float(low), "upper": float(up)}


def opacus_rdp(sigma: float, rate: float, steps: int, delta: float) -> dict[str, float]:
    """Opacus's Rényi accountant."""
    from opacus.accountants import RDPAccountant

    accountant = RDPAccountant()
    accountant.history = [(sigma, rate, steps)]
    return {"upper": float(accountant.get_epsilon(delta=delta))}


ORACLES: dict[str, Callable[[float, float, int, float], dict[str, float]]] = {
    "dp_accounting_pld": dp_accounting_pld,
    "prv": prv,
    "opacus_rdp": opacus_rdp,
}


class TooLong(BaseException):
    """The oracle ran out of time."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise TooLong


def asked(
    oracle: Callable[[float, float, int, float], dict[str, float]], setting: tuple[float, float, int, float]
) -> Any:
    """The oracle's answer, or the word for why there is none."""
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = oracle(*setting)
    except TooLong:
        return "too long"
    except (ArithmeticError, ValueError, RuntimeError, MemoryError, IndexError, AssertionError) as error:
        return f"failed: {type(error).__name__}"
    finally:
        signal.alarm(0)
    return answer if all(math.isfinite(value) for value in answer.values()) else "failed: not finite"


def main() -> None:
    """Ask every oracle about every setting."""
    rows = []
    for number, setting in enumerate(settings()):
        sigma, rate, steps, delta = setting
        answers = {name: asked(oracle, setting) for name, oracle in ORACLES.items()}
        rows.append({"sigma": sigma, "rate": rate, "steps": steps, "delta": delta, "oracles": answers})
        sys.stderr.write(f"\r{number + 1}/{SETTINGS}")
    packages = {name: version(name) for name in ("dp-accounting", "prv-accountant", "opacus")}
    FILE.write_text(json.dumps({"versions": packages, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
