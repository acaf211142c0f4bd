"""`privet mix`: shuffle reports between those who send them and those who count them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli import console
from privet.cli.groups import command_group
from privet.cli.numbers import WHOLE
from privet.cli.options import AsJson, DefaultDelta
from privet.core import COMPUTATIONAL, InvalidInput

if TYPE_CHECKING:
    from privet.local.shuffling import MixPlan

__all__ = ["about", "collect", "compare", "key", "mix", "plan", "send", "serve"]

_Plan = Annotated[Path, typer.Argument(metavar="PLAN.toml", help="The public plan of the batch.")]
_Key = Annotated[Path, typer.Option("--key", metavar="FILE", help="The private key; it is deleted, as it serves once.")]
_Wait = Annotated[float, typer.Option(help="Seconds to wait for the batch.")]
_Host = Annotated[str | None, typer.Option(help="Whom to listen to, if not the plan's own address.")]
_COMPUTATIONAL = "nobody breaks the encryption of the layers, X25519 and ChaCha20-Poly1305 (a computational assumption)"


def about() -> None:
    """Shuffle randomized reports, so that nobody knows whose is whose: a crowd hides each of them better.

    What is a crowd worth?

    privet mix compare --reports 10000 --epsilon 1

    A key for a server or a collector, for one batch; its public half goes into the plan:

    privet mix key first.key
    """


def key(file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to keep the private half.")]) -> None:
    """Make a key for one server, or for the collector, and for one batch; prints the half that others need.

    privet mix key first.key
    """
    from privet.local.shuffling import create_key_file

    created = create_key_file(file)
    with console.after(f"the key {str(file)!r} was written"):
        console.line(created.public)


def plan(file: _Plan, as_json: AsJson = False) -> None:
    """Check a plan; show what the batch will cost each respondent, and on whom that rests.

    privet mix plan commute-mix.toml
    """
    from privet.local.shuffling import read_plan

    batch = read_plan(file)
    with console.waiting("Pricing the batch …"):
        document = _document(batch)
    if as_json:
        console.show_json({"privet": 1, "command": "mix plan"} | document)
        return
    console.line(f"{batch.batch}: {_price(batch)}", "bold green")
    if batch.survey is not None:
        console.line(f"Only reports of the survey {batch.survey.title!r} ({batch.survey.digest}) are taken.", "dim")
    _show_trust(batch)


def serve(file: _Plan, key: _Key, wait: _Wait = 3600.0, host: _Host = None) -> None:
    """Be one of the servers: wait for the whole batch, take a layer off, give it a new order, and pass it on.

    privet mix serve commute-mix.toml --key first.key
    """
    from privet.core import checked
    from privet.core.random import default_rng
    from privet.local.shuffling import open_stop, read_plan

    batch, seconds = read_plan(file), checked.positive("wait", wait)
    server = open_stop(batch, key, default_rng(), is_collector=False, host=host)
    console.line(f"Server {server.place + 1} of {len(batch.servers)} waits for {batch.close_at:,} reports.", "bold")
    console.line(f"Its key is gone from {str(key)!r}; its order will never be written down.", "dim")
    counts = server.run(seconds)
    console.line(f"Passed on: {counts}.", "bold green")


def send(
    file: _Plan,
    reports: Annotated[list[Path], typer.Argument(metavar="REPORTS.jsonl...", help="Files with one report a line.")],
) -> None:
    """Send reports, already randomized, each in layers of encryption of its own.

    All of them must be what the plan prices. The id of a survey's report stays behind: it would say whose it is.

    privet mix send commute-mix.toml my-report.jsonl
    """
    from privet.local import report_lines
    from privet.local.shuffling import read_plan, send_reports

    lines = [line for path in reports for line in report_lines(path)]
    sent = send_reports(read_plan(file), lines, file.with_name(f"{file.name}.sent"))
    console.line(f"{sent}.", "bold green")


def collect(
    file: _Plan,
    key: _Key,
    out: Annotated[Path, typer.Option(metavar="FILE.jsonl", help="The reports are written here, in sorted order.")],
    wait: _Wait = 3600.0,
    host: _Host = None,
) -> None:
    """Be the collector: wait for the mixed batch, and write its reports and its guarantee.

    privet mix collect commute-mix.toml --key collector.key --out reports.jsonl
    """
    from privet.core import checked, write_atomically
    from privet.core.random import default_rng
    from privet.local.shuffling import collected_release, open_stop, read_plan

    batch, seconds = read_plan(file), checked.positive("wait", wait)
    if out.exists():
        raise InvalidInput("out", f"is {str(out)!r}, which exists", "give another name, so that nothing is lost")
    collector = open_stop(batch, key, default_rng(), is_collector=True, host=host)
    console.line(f"The collector waits for {batch.minimum:,} reports or more.", "bold")
    counts = collector.run(seconds)
    release = collected_release(collector, default_rng())
    write_atomically(out, "".join(report.decode() + "\n" for report in release.value), "out")
    with console.after(f"the reports {str(out)!r} were written"):
        console.line(f"{out}: {counts}; {_price(batch)}", "bold green")
        _show_trust(batch)


def compare(
    reports: Annotated[int, typer.Option(click_type=WHOLE, help="How many honest reports there are.")],
    epsilon: Annotated[float, typer.Option(help="The ε that all three models give.")],
    delta: DefaultDelta = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a page with the figure here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare what trust is worth: the error of a yes-or-no share with a curator, a shuffler, or nobody to trust.

    privet mix compare --reports 10000 --epsilon 1 --plot trust.html
    """
    from dataclasses import asdict

    from privet.accounting import default_delta
    from privet.local.shuffling import costs_around
    from privet.report import require_writable, trust_page, write_page
    from privet.report.figures import HEAD, row_of

    if plot is not None:
        require_writable(plot)
    delta = default_delta(reports) if delta is None else delta
    rows = costs_around(reports, epsilon=epsilon, delta=delta)
    if plot is not None:
        write_page(plot, trust_page(reports, epsilon=epsilon, delta=delta))
    if as_json:
        document: dict[str, Any] = {"privet": 1, "command": "mix compare", "epsilon": epsilon, "delta": delta}
        console.show_json(document | {"rows": [asdict(row) for row in rows]})
        return
    console.line(f"A yes-or-no question at ε = {epsilon:g}, δ = {delta:g}: the error of its share", "bold")
    console.line()
    console.show_rows(HEAD, list(map(row_of, rows)), right=HEAD)
    console.line()
    own = next(row.local_epsilon for row in rows if row.reports == reports)
    console.bullets(
        (
            "± is one standard deviation of the noise, as a share of all respondents.",
            f"If the servers collude, a shuffled report has its own ε₀ alone: {own:.2f} here.",
        )
    )
    console.page_written(plot, "figure")


def _document(plan: MixPlan) -> dict[str, Any]:
    from privet.core import encode

    return {
        "batch": plan.batch,
        "minimum": plan.minimum,
        "honest": plan.honest,
        "local_epsilon": plan.epsilon,
        "survey": None if plan.survey is None else plan.survey.digest,
        "event": encode(plan.event),
        "guarantee": encode(plan.guarantee),
    }


def _price(plan: MixPlan) -> str:
    from privet.report import up

    guarantee = plan.guarantee
    return (
        f"ε ≤ {up(guarantee.epsilon.upper)} at δ = {guarantee.delta:g}, where one report alone is ε = {plan.epsilon:g}"
    )


def _show_trust(plan: MixPlan) -> None:
    console.heading("It holds if")
    console.bullets(tuple({COMPUTATIONAL: _COMPUTATIONAL}.get(text, text) for text in plan.guarantee.assumptions))
    console.line(f"Where any of it fails, each report is still worth ε = {plan.epsilon:g} by itself.", "dim")


mix = command_group(about, key, plan, serve, send, collect, compare)
