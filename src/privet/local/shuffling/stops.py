"""Take part in a batch from files: a key that serves once, a server or collector, and the reports that arrive."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from privet.core import InvalidInput, Release, write_atomically
from privet.core.random import Randomness, Rng
from privet.local.reports import with_new_id
from privet.local.shuffling.mix import MixRefused
from privet.local.shuffling.onion import MixKey
from privet.local.shuffling.plan import ONE_IN_A_CROWD, MixPlan
from privet.local.shuffling.report_format import is_canonical_report
from privet.local.shuffling.server import MixServer

__all__ = ["collected_release", "create_key_file", "open_stop", "shuffled_release"]


def create_key_file(path: Path) -> MixKey:
    """Make a key for one stop and one batch, and write its private half to a file that only its owner can read.

    Args:
        path: The file to write.

    Raises:
        InvalidInput: The file exists or cannot be written.
    """
    if path.exists():
        raise InvalidInput("file", f"{str(path)!r} exists", "give another name, so that no key is lost")
    key = MixKey.new()
    write_atomically(path, key.secret + "\n", "file", private=True)
    return key


def open_stop(plan: MixPlan, key_file: Path, rng: Rng, *, is_collector: bool, host: str | None = None) -> MixServer:
    """Open a server or the collector of a batch, and delete its key file; `MixServer.run` then takes part.

    A key serves once: a batch that is mixed again, with one report changed, would give that report away.

    Args:
        plan: The public plan of the batch.
        key_file: The file with the private key.
        rng: The randomness of the order.
        is_collector: Whether the key must be the collector's; it must be a server's otherwise.
        host: The address to listen on, if not the plan's own.

    Raises:
        InvalidInput: The key cannot be read or deleted, or belongs to another stop.
    """
    key = _read_key(key_file)
    if (plan.place_of(key.public) == len(plan.servers)) is not is_collector:
        role, command = ("a server's", "serve") if is_collector else ("the collector's", "collect")
        raise InvalidInput("key", f"is {role}", f"use: privet mix {command}")
    server = MixServer(plan, key, rng, host=host)
    _delete_key(key_file)
    return server


def collected_release(server: MixServer, rng: Rng) -> Release[tuple[bytes, ...]]:
    """Return the reports that arrived at a collector, sorted; those of a survey get new ids, which link to nobody.

    Args:
        server: The collector, after `run`.
        rng: The randomness of the ids.

    Raises:
        MixRefused: There are too few reports, or others than the plan prices.

    Guarantee: that of `shuffled_release`; the ids are drawn without looking at the reports.
    """
    release = shuffled_release(server.plan, server.reports or (), randomness=Randomness.SECURE)
    if server.plan.survey is None:
        return release
    return release.map(lambda reports: tuple(with_new_id(report, rng) for report in reports))


def shuffled_release(plan: MixPlan, reports: Sequence[bytes], *, randomness: Randomness) -> Release[tuple[bytes, ...]]:
    """Return the multiset of the reports of a batch, sorted, as a release.

    Args:
        plan: The public plan of the batch.
        reports: What arrived at the collector.
        randomness: That of the reports and of the servers' orders.

    Raises:
        MixRefused: There are too few reports, or others than the plan prices.

    Guarantee: `plan.event` for one person whose answer becomes any other one (replace), under shuffled trust: (ε, δ) as
    in `plan.guarantee`, by the privacy blanket (Balle, Bell, Gascón & Nissim 2019; proof in
    `privet.accounting.laws.shuffled`). It assumes that `plan.honest` of the reports at least are honest: one from each
    person, by the plan's randomizer; that the servers mix as they should, and do not all collude; and it is
    computational, as it rests on encryption. Where any of that fails, each report is still worth the plan's own ε by
    itself (local trust). `randomness` is that of the reports and of the servers' orders.
    """
    if len(reports) < plan.minimum:
        problem = f"the batch {plan.batch!r} has {len(reports):,} reports, and the plan asks for {plan.minimum:,}"
        raise MixRefused(f"{problem}; a smaller crowd hides less than was promised, so nothing is released")
    strange = sum(not is_canonical_report(plan, report) for report in reports)
    if strange:
        raise MixRefused(f"{strange:,} reports of the batch {plan.batch!r} are not what its plan prices")
    return Release.of(
        tuple(sorted(reports)),
        plan.event,
        unit=ONE_IN_A_CROWD,
        source=plan.batch,
        randomness=randomness,
        guarantee=plan.guarantee,
    )


def _read_key(path: Path) -> MixKey:
    try:
        return MixKey.read(path.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        advice = "make one with: privet mix key; a key serves one batch, and is gone after that"
        raise InvalidInput("key", f"cannot be read from {str(path)!r}", advice) from None


def _delete_key(path: Path) -> None:
    try:
        path.unlink()
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InvalidInput(
            "key", f"cannot be deleted: {reason}", "put it where it can; it may serve once only"
        ) from None
