"""`privet mix`: shuffle reports between those who send them and those who count them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli import console
from privet.cli.numbers import WHOLE
from privet.cli.options import AsJson, DefaultDelta
from privet.cli.taught import TaughtCommand, TaughtGroup
from privet.cli.teach import help_of
from privet.core.errors import InvalidInput
from privet.core.guarantee import COMPUTATIONAL

if TYPE_CHECKING:
    from privet.local.shuffling import MixKey, MixPlan

__all__ = ["about", "collect", "compare", "key", "mix", "plan", "send", "serve"]

mix = typer.Typer(cls=TaughtGroup, no_args_is_help=True)

_Plan = Annotated[Path, typer.Argument(metavar="PLAN.toml", help="The public plan of the batch.")]
_Key = Annotated[Path, typer.Option("--key", metavar="FILE", help="The private key; it is deleted, as it serves once.")]
_Wait = Annotated[float, typer.Option(help="Seconds to wait for the batch.")]
_Host = Annotated[str | None, typer.Option(help="Whom to listen to, if not the plan's own address.")]
_COMPUTATIONAL = "nobody breaks the encryption of the layers, X25519 and ChaCha20-Poly1305 (a computational assumption)"
_DECADES = (2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0)


def about() -> None:
    """Shuffle randomised reports, so that nobody knows whose is whose: a crowd hides each of them better.

    What is a crowd worth?

    privet mix compare --reports 10000 --epsilon 1

    A key for a server or a collector, for one batch; its public half goes into the plan:

    privet mix key first.key
    """


def key(file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to keep the private half.")]) -> None:
    """Make a key for one server, or for the collector, and for one batch; prints the half that others need.

    privet mix key first.key
    """
    from privet.core.atomic_write import write_atomically
    from privet.local.shuffling import MixKey

    if file.exists():
        raise InvalidInput("file", f"{str(file)!r} exists", "give another name, so that no key is lost")
    made = MixKey.new()
    write_atomically(file, made.secret + "\n", "file", private=True)
    with console.after(f"the key {str(file)!r} was written"):
        console.line(made.public)


def plan(file: _Plan, as_json: AsJson = False) -> None:
    """Check a plan; show what the batch will cost each respondent, and on whom that rests.

    privet mix plan commute-mix.toml
    """
    from privet.local.shuffling import read_plan

    found = read_plan(file)
    with console.waiting("Pricing the batch …"):
        said = _document(found)
    if as_json:
        console.show_json({"privet": 1, "command": "mix plan"} | said)
        return
    console.line(f"{found.batch}: {_price(found)}", "bold green")
    if found.survey is not None:
        console.line(f"Only reports of the survey {found.survey.title!r} ({found.survey.digest}) are taken.", "dim")
    _show_trust(found)


def serve(file: _Plan, key: _Key, wait: _Wait = 3600.0, host: _Host = None) -> None:
    """Be one of the servers: wait for the whole batch, take a layer off, give it a new order, and pass it on.

    privet mix serve commute-mix.toml --key first.key
    """
    from privet.core import checked
    from privet.core.random import default_rng
    from privet.local.shuffling import MixServer, read_plan

    found, waits = read_plan(file), checked.positive("wait", wait)
    own = _read_key(key)
    place = found.place_of(own.public)
    if place == len(found.servers):
        raise InvalidInput("key", "is the collector's", "use: privet mix collect")
    server = MixServer(found, own, default_rng(), host=host)
    _spent(key)
    console.line(f"Server {place + 1} of {len(found.servers)} waits for {found.close_at:,} reports.", "bold")
    console.line(f"Its key is gone from {str(key)!r}; its order will never be written down.", "dim")
    counts = server.run(waits)
    console.line(f"Passed on: {counts}.", "bold green")


def send(
    file: _Plan,
    reports: Annotated[list[Path], typer.Argument(metavar="REPORTS.jsonl...", help="Files with one report a line.")],
) -> None:
    """Send reports, already randomised, each in layers of encryption of its own.

    All of them must be what the plan prices. The id of a survey's report stays behind: it would say whose it is.

    privet mix send commute-mix.toml my-report.jsonl
    """
    from privet.cli.mix_send import lines_of, send_all
    from privet.local.shuffling import read_plan

    found = read_plan(file)
    send_all(found, [line for path in reports for line in lines_of(path)], file.with_name(f"{file.name}.sent"))


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
    from privet.core import checked
    from privet.core.atomic_write import write_atomically
    from privet.core.random import Randomness, default_rng
    from privet.local.reports import named
    from privet.local.shuffling import MixServer, read_plan, shuffled_release

    found, waits = read_plan(file), checked.positive("wait", wait)
    if out.exists():
        raise InvalidInput("out", f"is {str(out)!r}, which exists", "give another name, so that nothing is lost")
    own = _read_key(key)
    if found.place_of(own.public) != len(found.servers):
        raise InvalidInput("key", "is a server's", "use: privet mix serve")
    server = MixServer(found, own, default_rng(), host=host)
    _spent(key)
    console.line(f"The collector waits for {found.minimum:,} reports or more.", "bold")
    counts = server.run(waits)
    release = shuffled_release(found, server.reports or (), randomness=Randomness.SECURE)
    kept = release.value
    if found.survey is not None:  # new ids, by which `privet survey` knows each report again
        kept = tuple(named(report, default_rng()) for report in kept)
    write_atomically(out, "".join(report.decode() + "\n" for report in kept), "out")
    with console.after(f"the reports {str(out)!r} were written"):
        console.line(f"{out}: {counts}; {_price(found)}", "bold green")
        _show_trust(found)


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
    from privet.local.shuffling.compare import cost_of_trust
    from privet.report import require_writable, write_page
    from privet.report.figures.trust import HEAD, row_of

    if plot is not None:
        require_writable(plot)
    delta = default_delta(reports) if delta is None else delta
    own = cost_of_trust(reports, epsilon=epsilon, delta=delta)
    around = {max(1, reports // 100), max(1, reports // 10), reports * 10, reports * 100} - {reports}
    costs = [cost_of_trust(n, epsilon=epsilon, delta=delta) for n in sorted(around)]
    rows = sorted([*costs, own], key=lambda each: each.reports)
    if plot is not None:
        write_page(plot, _page(reports, epsilon, delta))
    if as_json:
        document: dict[str, Any] = {"privet": 1, "command": "mix compare", "epsilon": epsilon, "delta": delta}
        console.show_json(document | {"rows": [asdict(each) for each in rows]})
        return
    console.line(f"A yes-or-no question at ε = {epsilon:g}, δ = {delta:g}: the error of its share", "bold")
    console.line()
    console.show_rows(HEAD, list(map(row_of, rows)), right=HEAD)
    console.line()
    console.bullets(
        (
            "± is one standard deviation of the noise, as a share of all respondents.",
            f"If the servers collude, a shuffled report has its own ε₀ alone: {own.local_epsilon:.2f} here.",
        )
    )
    if plot is not None:
        console.line(f"The page with the figure is {plot}; open it in a browser.", "bold")


def _page(reports: int, epsilon: float, delta: float) -> str:
    from privet.local.shuffling.compare import cost_of_trust
    from privet.report.figures.trust import trust
    from privet.report.frame import drawn, escaped, framed

    sizes = sorted({round(10**power) for power in _DECADES} | {reports})
    figure = trust([cost_of_trust(n, epsilon=epsilon, delta=delta) for n in sizes], epsilon, delta)
    body = [
        "<main>",
        '<header><p class="kind">The price of trust</p>',
        f"<h1>{escaped(f'ε = {epsilon:g}')} <small>at δ = {delta:g}</small></h1></header>",
        f'<section class="figures" aria-label="Figures">{drawn(figure)}</section>',
        "</main>",
    ]
    return framed("The price of trust", body, [figure], footer="Made by Privet, without any data.")


def _document(found: MixPlan) -> dict[str, Any]:
    from privet.core.codec import encode

    return {
        "batch": found.batch,
        "minimum": found.minimum,
        "honest": found.honest,
        "local_epsilon": found.epsilon,
        "survey": None if found.survey is None else found.survey.digest,
        "event": encode(found.event),
        "guarantee": encode(found.guarantee),
    }


def _price(found: MixPlan) -> str:
    from privet.report.words import up

    guarantee = found.guarantee
    return (
        f"ε ≤ {up(guarantee.epsilon.upper)} at δ = {guarantee.delta:g}, where one report alone is ε = {found.epsilon:g}"
    )


def _show_trust(found: MixPlan) -> None:
    console.heading("It holds if")
    console.bullets(tuple({COMPUTATIONAL: _COMPUTATIONAL}.get(text, text) for text in found.guarantee.assumptions))
    console.line(f"Where any of it fails, each report is still worth ε = {found.epsilon:g} by itself.", "dim")


def _read_key(path: Path) -> MixKey:
    from privet.local.shuffling import MixKey

    try:
        return MixKey.read(path.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        advice = "make one with: privet mix key; a key serves one batch, and is gone after that"
        raise InvalidInput("key", f"cannot be read from {str(path)!r}", advice) from None


def _spent(path: Path) -> None:
    """A key serves once: a batch that is mixed again, with one report changed, would give that report away."""
    try:
        path.unlink()
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InvalidInput(
            "key", f"cannot be deleted: {reason}", "put it where it can; it may serve once only"
        ) from None


mix.callback(help=help_of(about))(about)
for _command in (key, plan, serve, send, collect, compare):
    mix.command(_command.__name__, cls=TaughtCommand, help=help_of(_command))(_command)
