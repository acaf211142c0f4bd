"""`privet audit`: evidence beside a guarantee, of a run or of a mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli import console
from privet.cli.numbers import WHOLE
from privet.core import InvalidInput, checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privet.core import Evidence, Guarantee
    from privet.report import Canaries, RunCard, Shareable

__all__ = ["audit"]

_WHAT = "The folder of a run; or gaussian, laplace, discrete-gaussian, discrete-laplace, randomized-response, …"
_TRIALS = "How often to draw, on each of two inputs."
_EPSILON = "The ε of the mechanism, in place of its noise; 1, if left out."
_DELTA = "The δ of the claim; for Gaussian noise 1e-5, if left out, and 0 for others."
_REPORT = "Write a page with the evidence and figures here."
_LADDER = "Try the run's plan on embedded digits, before five adversaries who see more and more."
_SURE = "How sure lower bounds are to be; 0.95 for all of a report's together, if left out."
_MECHANISM, _RUN = "A mechanism", "A run"
_SINGLE = 0.95
_MANY = 1000
_CANARIES = f"Where the plan is tried again: how many there are; {_MANY}, if left out."


def audit(
    what: Annotated[str, typer.Argument(metavar="RUN|MECHANISM", help=_WHAT)],
    confidence: Annotated[float | None, typer.Option(help=_SURE)] = None,
    scale: Annotated[float | None, typer.Option(help="Of Laplace noise.", rich_help_panel=_MECHANISM)] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Of Gaussian noise: its deviation.", rich_help_panel=_MECHANISM)
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help=_EPSILON, rich_help_panel=_MECHANISM)] = None,
    delta: Annotated[float | None, typer.Option(help=_DELTA, rich_help_panel=_MECHANISM)] = None,
    categories: Annotated[
        int | None, typer.Option(click_type=WHOLE, help="Of randomized-response.", rich_help_panel=_MECHANISM)
    ] = None,
    trials: Annotated[int | None, typer.Option(click_type=WHOLE, help=_TRIALS, rich_help_panel=_MECHANISM)] = None,
    ladder: Annotated[bool, typer.Option("--ladder", help=_LADDER, rich_help_panel=_RUN)] = False,
    canaries: Annotated[int | None, typer.Option(click_type=WHOLE, help=_CANARIES, rich_help_panel=_RUN)] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help=_REPORT)] = None,
) -> None:
    """Set evidence beside a guarantee: a lower bound on ε, from attacks, that holds with a stated confidence.

    Of a run that was trained with --audit, its canaries are counted again: made-up rows that were put in by fair coins.
    With --ladder, and of a run without canaries, its plan is tried again on embedded digits before adversaries who see
    more and more: labels, scores, weights, every gradient. That audits the code, and not that run.
    Of a mechanism, outputs on two neighbouring inputs are told apart. Ends with 1 where evidence that assumes nothing
    exceeds the guarantee; where it rests on assumptions, that is an alarm, in yellow, and proves nothing by itself.

    privet audit runs/readmission

    privet audit laplace --scale 1 --trials 100000

    privet audit gaussian --epsilon 1 --delta 1e-5 --report gaussian.html
    """
    from privet.cli.exit_codes import FAILED
    from privet.mechanisms import auditable
    from privet.report import require_writable

    if confidence is not None:
        checked.confidence("confidence", confidence)
    if report is not None:
        require_writable(report, "report")
    named = auditable()
    if what in named and not Path(what).is_dir():
        for name, given in (("ladder", ladder), ("canaries", canaries is not None)):
            if given:
                raise InvalidInput(name, f"is for runs, and {what} is a mechanism", "leave it out")
        sure = _SINGLE if confidence is None else confidence
        refuted = _mechanism(what, scale, sigma, epsilon, delta, categories, trials, sure, report)
    else:
        own = {"scale": scale, "sigma": sigma, "epsilon": epsilon, "delta": delta}
        for name, value in (own | {"categories": categories, "trials": trials}).items():
            if value is not None:
                raise InvalidInput(name, f"is for mechanisms, and {what!r} is none", f"use one of: {', '.join(named)}")
        if not Path(what).is_dir():
            problem = f"is {what!r}, which is neither the folder of a run nor a mechanism"
            raise InvalidInput("run", problem, f"use one of: {', '.join(named)}; or name a folder")
        refuted = _run(Path(what), confidence, canaries, report, ladder=ladder)
    if refuted:
        raise typer.Exit(FAILED)


def _mechanism(
    name: str,
    scale: float | None,
    sigma: float | None,
    epsilon: float | None,
    delta: float | None,
    categories: int | None,
    trials: int | None,
    confidence: float,
    report: Path | None,
) -> bool:
    """Whether evidence exceeds what the mechanism claims."""
    from privet.mechanisms import TrialSettings
    from privet.runs import audit_mechanism

    if scale is not None and sigma is not None:
        raise InvalidInput("scale", "and --sigma are of different mechanisms", "leave one of them out")
    noise = ("scale", scale) if scale is not None else None if sigma is None else ("sigma", sigma)
    with console.waiting("Drawing …"):
        result = audit_mechanism(name, TrialSettings(epsilon, delta, noise, categories, trials), confidence=confidence)
    _show(result.title, result.guarantee, [each.value for each in result.evidence])
    _page(report, result.card, result.evidence, (), f"the mechanism {name}")
    return result.refuted


def _run(run: Path, confidence: float | None, canaries: int | None, report: Path | None, *, ladder: bool) -> bool:
    from privet.runs import audit_run

    with console.progress_bar("Auditing …") as progress:
        result = audit_run(run, ladder=ladder, canaries=canaries, confidence=confidence, on_page=progress)
    if not result.is_of_the_run and not ladder:
        console.line(
            "This run has no canaries, so its plan was tried again on other rows that had some. That", "yellow"
        )
        console.line("audits the code that made the run, and not the run. See: privet train … --audit", "yellow")
    evidence = [each.value for each in result.evidence]
    _show(result.title, result.guarantee, evidence, (*result.powerless, *result.remarks))
    what = f"the run {run.name}" if result.is_of_the_run else result.title.removeprefix("of ")
    _page(report, result.card, result.evidence, result.canaries, what, result.remarks)
    if result.is_on_the_report:
        console.line(f"{run}/report.html has it, too.")
    if result.breaks_signature:
        console.line("The run was signed before; its card is another one now: privet card sign", "yellow")
    return result.refuted


def _show(told: str, guarantee: Guarantee, evidence: Sequence[Evidence], remarks: Sequence[str] = ()) -> None:
    """ε as it is claimed, and as it was found; `remarks` say how it was counted."""
    from privet.report import Verdict, down, evidence_warnings, headline, up, verdict_of, worst_verdict

    stands = worst_verdict(evidence, guarantee)
    console.line(f"Audit {told}", "bold")
    console.line(f"claimed: {headline(guarantee)}", stands.style)
    rows = [
        (
            each.attack,
            down(each.epsilon),
            up(guarantee.epsilon.upper),
            f"{100 * each.confidence:g} %",
            f"{each.trials:,}",
            "REFUTED" if verdict_of(each, guarantee) is Verdict.REFUTES else verdict_of(each, guarantee).value,
            "; ".join(each.assumptions) or "nothing",
        )
        for each in evidence
    ]
    head = ("attack", "ε at least", "ε at most", "confidence", "trials", "the guarantee", "assumes")
    console.show_rows(head, rows, right=head[1:5], spare=("assumes", "trials"))
    for remark in remarks:
        console.line(remark, "dim")
    for alarm in evidence_warnings(evidence, guarantee):
        console.line(alarm, "bold yellow")
    if stands is Verdict.REFUTES:
        console.line("Evidence lies above the guarantee: what was done is not what was priced.", "bold red")


def _page(
    report: Path | None,
    card: RunCard,
    evidence: Sequence[Shareable[Evidence]],
    canaries: Sequence[Shareable[Canaries]],
    what: str,
    remarks: Sequence[str] = (),
) -> None:
    if report is None:
        return
    from privet.report import audit_page, curves_of, write_page

    with console.progress_bar("Drawing the page …") as progress:
        curves = curves_of(card, progress=progress, whole=False)
        page = audit_page(card, curves, evidence, what=what, canaries=canaries, remarks=remarks)
        write_page(report, page, "report")
    console.line(f"The page is {report}; open it in a browser.", "bold")
