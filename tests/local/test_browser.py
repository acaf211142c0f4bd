"""The questionnaire in a real browser: what it draws has the exact law, and a true answer never leaves the page."""

from __future__ import annotations

import io
import json
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zxingcpp
from scipy.stats import chi2

from privet.local import Duchi, GeneralizedRandomizedResponse, HadamardResponse, LocalHashing, Piecewise, live_endpoint
from privet.local.page import law_of as spoken
from privet.local.page import questionnaire_page
from privet.local.questionnaire import BudgetSharing, Questionnaire, SurveyQuestion
from privet.local.reports import Collection, ReportOutcome
from tests.local.laws import law_of

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="browserless: no chromium is installed")

DRAWS = 40_000
RARE = 1e-7
"""How often a true law fails a χ² test below: draws in a browser cannot be seeded."""
SURVEY = Questionnaire(
    "Commuting",
    3.0,
    (
        SurveyQuestion("fare", "Without a ticket?", ("no", "yes")),
        SurveyQuestion("street", "Which street?", tuple(f"street {i}" for i in range(30))),
        SurveyQuestion("minutes", "How long?", low=0.0, high=120.0),
    ),
)
PARTS: list[tuple[Any, float]] = [
    (GeneralizedRandomizedResponse(2, 1.0), 1),
    (GeneralizedRandomizedResponse(5, 2.0), 2),
    (HadamardResponse(5, 1.0), 3),
    (LocalHashing(7, 1.0), 5),
    (Duchi(1.0, 0.0, 4.0, 8), 1.5),
    (Piecewise(2.0, -2.0, 6.0, 8), 3.0),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


class Seen:
    """A page in a fresh profile, with every request it makes, what it posts, and what its console says."""

    def __init__(self, browser: Any, address: str, *, offline: bool = False) -> None:
        self.context = browser.new_context(offline=offline, accept_downloads=True)
        self.page = self.context.new_page()
        self.asked: list[tuple[str, str, str]] = []
        self.console: list[str] = []
        self.page.on(
            "request", lambda request: self.asked.append((request.method, request.url, request.post_data or ""))
        )
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.goto(address)
        self.asked.clear()

    def answer(self) -> str:
        """Fill in the form, and give the report that is shown."""
        filled(self.page)
        self.page.click("button[type=submit]")
        return report_in(self.page)


def filled(page: Any) -> None:
    page.check("input[name=fare][value='1']")
    page.check("input[name=street][value='17']")
    page.fill("input[name=minutes]", "37.625")


def report_in(page: Any) -> str:
    """The report, once it is shown."""
    page.wait_for_selector("#done:not([hidden])")
    return str(page.inner_text("#report"))


@pytest.fixture(scope="module")
def asking(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("page") / "survey.html"
    path.write_text(questionnaire_page(SURVEY), encoding="utf-8")
    return Seen(browser, path.as_uri()).page


def statistic(page: Any, law: dict[str, Any], value: float, expected: dict[Any, Any]) -> float:
    """χ² of many draws of the page's own function, against an exact law; infinite where one is impossible."""
    script = """([law, value, draws]) => {
        const found = {};
        for (let i = 0; i < draws; i++) { const r = randomized(law, value); found[r] = (found[r] || 0) + 1; }
        return found;
    }"""
    seen = Counter({int(key): count for key, count in page.evaluate(script, [law, value, DRAWS]).items()})
    if not set(seen) <= set(expected):
        return float("inf")
    wanted = np.array([float(weight) * DRAWS for weight in expected.values()])
    counts = np.array([seen[outcome] for outcome in expected])
    return float(((counts - wanted) ** 2 / wanted).sum())


@pytest.mark.parametrize(("part", "value"), PARTS, ids=lambda each: type(each).__name__)
def test_the_page_draws_the_exact_law(asking: Any, part: Any, value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the page randomises in another way than the library; χ², a false alarm in 10^7 runs."""
    expected = law_of(part, value, monkeypatch)
    assert statistic(asking, spoken(part), value, expected) < chi2.isf(RARE, len(expected) - 1)


@pytest.mark.parametrize(("part", "value"), PARTS, ids=lambda each: type(each).__name__)
def test_a_page_with_less_noise_would_be_seen(
    asking: Any, part: Any, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the test above could not tell a quarter of the noise (four times ε) from the law."""
    louder = replace(part, epsilon=4 * part.epsilon)
    law = spoken(part) | {key: text for key, text in spoken(louder).items() if key in ("limit", "start", "slope")}
    expected = law_of(part, value, monkeypatch)
    assert statistic(asking, law, value, expected) > chi2.isf(RARE, len(expected) - 1)


def test_the_page_takes_words_from_the_cryptographic_generator_alone(asking: Any) -> None:
    """Fails when the page draws from Math.random, or decides a coin on fewer than 64 bits."""
    asking.evaluate("() => { Math.random = () => { throw new Error('not for this'); }; }")
    for part, value in PARTS:
        asking.evaluate("([law, value]) => randomized(law, value)", [spoken(part), value])
    edge = """(limit) => {
        const real = crypto.getRandomValues.bind(crypto), said = [];
        for (const word of [BigInt(limit) - 1n, BigInt(limit)]) {
            crypto.getRandomValues = (row) => { row[0] = word; return row; };
            said.push(coin(limit));
        }
        crypto.getRandomValues = real;
        return said;
    }"""
    limit = GeneralizedRandomizedResponse(2, 1.0).limit
    assert asking.evaluate(edge, str(limit)) == [True, False]


def test_offline_nothing_is_asked_and_the_answer_is_gone(browser: Any, tmp_path: Path) -> None:
    """Fails when the page needs or makes any request, keeps the true answers, or makes a second report of them."""
    path = tmp_path / "survey.html"
    path.write_text(questionnaire_page(SURVEY), encoding="utf-8")
    seen = Seen(browser, path.as_uri(), offline=True)
    report = seen.answer()
    assert Collection(SURVEY).add(report) is ReportOutcome.ACCEPTED
    assert set(json.loads(report)) == {"privet", "survey", "id", "answers"}
    with seen.page.expect_download() as download:
        seen.page.click("#download")
    assert download.value.path().read_text(encoding="utf-8") == report + "\n"
    kept = seen.page.content() + seen.page.evaluate("JSON.stringify({...localStorage}) + document.cookie")
    assert "37.625" not in kept
    assert seen.page.query_selector("form") is None
    seen.page.reload()
    assert report_in(seen.page) == report
    assert [url for method, url, _ in seen.asked if not url.startswith(("blob:", path.as_uri()))] == []
    assert seen.console == []


def test_the_pages_own_policy_forbids_a_leak(browser: Any, tmp_path: Path) -> None:
    """Fails when a planted line of script, image or post in the page could carry an answer elsewhere."""
    path = tmp_path / "survey.html"
    path.write_text(questionnaire_page(SURVEY), encoding="utf-8")
    seen = Seen(browser, path.as_uri())
    tried = """async () => {
        new Image().src = "http://127.0.0.1:9/leak.png";
        try { await fetch("http://127.0.0.1:9/leak"); return "sent"; } catch { return "refused"; }
    }"""
    assert seen.page.evaluate(tried) == "refused"
    assert sum("Content Security Policy" in text for text in seen.console) >= 2


def test_a_sampled_report_holds_one_question(browser: Any, tmp_path: Path) -> None:
    """Fails when a page that draws one question reports another number of them; all three come up in 60 drawings but
    for one run in 10^10."""
    survey = Questionnaire("Commuting", 3.0, SURVEY.questions, BudgetSharing.SAMPLE)
    path = tmp_path / "survey.html"
    path.write_text(questionnaire_page(survey), encoding="utf-8")
    page = Seen(browser, path.as_uri()).page
    script = """() => Array.from({length: 60}, () => JSON.stringify(
        reportOn(JSON.parse(document.getElementById("survey").textContent), {fare: 1, street: 3, minutes: 5})))"""
    lines = page.evaluate(script)
    collection = Collection(survey)
    assert {collection.add(line) for line in lines} == {ReportOutcome.ACCEPTED}
    assert {name for line in lines for name in json.loads(line)["answers"]} == {"fare", "street", "minutes"}


def two_tabs(browser: Any, path: Path, script: str) -> list[Any]:
    """Two tabs of one browser in which nobody has answered yet, each with a script that runs before the page's own."""
    path.write_text(questionnaire_page(SURVEY), encoding="utf-8")
    context = browser.new_context()
    context.add_init_script(script)
    tabs = [context.new_page() for _ in range(2)]
    for tab in tabs:
        tab.bring_to_front()
        tab.goto(path.as_uri())
        filled(tab)
    return tabs


DEAF = "window.addEventListener('storage', (event) => event.stopImmediatePropagation());"
"""A tab that does not hear what the other one stores."""


def test_two_tabs_that_answer_make_one_report(browser: Any, tmp_path: Path) -> None:
    """Fails when a tab that was opened before the other answered draws a second report, which costs a second ε, or
    goes on asking: once where it hears of it, and once where it learns of it only as its own button is pressed."""
    for script in ("", DEAF):
        first, second = two_tabs(browser, tmp_path / "survey.html", script)
        first.click("button[type=submit]")
        report = report_in(first)
        if script:
            second.click("button[type=submit]")
        assert report_in(second) == report
        assert second.query_selector("form") is None
        second.reload()
        assert report_in(second) == report


LATE = """
    window.later = [];
    window.setTimeout = (go) => { window.later.push(go); };  // nothing is settled before the test says so
    const real = Storage.prototype.getItem;
    let asked = 0;  // once by the page as it opens, once by its button: neither sees what the other tab has stored
    Storage.prototype.getItem = function (key) { return asked++ < 2 ? null : real.call(this, key); };
"""
WATCHED = """
    window.lines = [];
    addEventListener("DOMContentLoaded", () => {
        const report = document.getElementById("report");
        new MutationObserver(() => window.lines.push(report.textContent)).observe(report, {childList: true});
    });
"""


# Without locks a tab that hears of nothing can only look again after a while, which is no promise.
@pytest.mark.parametrize(
    ("locks", "hears"), [(True, True), (True, False), (False, True)], ids=["locks", "locks, deaf", "no locks"]
)
def test_two_tabs_that_answer_at_once_show_one_report(browser: Any, tmp_path: Path, locks: bool, hears: bool) -> None:
    """Fails when two buttons that are pressed before either tab can know of the other show two reports, for a moment
    only, in a browser with locks or without (a page that came over plain HTTP has none)."""
    without = "Object.defineProperty(navigator, 'locks', {value: undefined});"
    script = WATCHED + ("" if locks else LATE + without) + ("" if hears else DEAF)
    tabs = two_tabs(browser, tmp_path / "survey.html", script)
    press = "() => { document.getElementById('questions').requestSubmit(); }"
    for tab in tabs:
        tab.evaluate(press)
    if not locks:
        # both have drawn, and what one of them stored is gone
        assert [tab.inner_text("#report") for tab in tabs] == ["", ""]
        for tab in tabs:
            tab.evaluate("() => { for (const go of window.later.splice(0)) go(); }")
    reports = {report_in(tab) for tab in tabs}
    assert len(reports) == 1
    assert {line for tab in tabs for line in tab.evaluate("window.lines")} == reports
    assert tabs[0].evaluate("Object.values({...localStorage})") == list(reports)


def read_code(page: Any) -> str:
    """What a telephone reads from the picture of the QR code."""
    from PIL import Image

    (found,) = zxingcpp.read_barcodes(Image.open(io.BytesIO(page.locator(".join svg").screenshot())))
    return str(found.text)


def test_a_room_answers_and_the_projector_follows(browser: Any, tmp_path: Path) -> None:
    """Fails when a report does not arrive, is sent before its sender has seen it, anything but the report is posted,
    the projector does not show it, its QR code leads elsewhere, or its page is wider than a telephone."""
    collection = Collection(SURVEY)
    with live_endpoint(collection, tmp_path / "out.jsonl", "127.0.0.1", 0, None, 0.95) as endpoint:
        thread = threading.Thread(target=endpoint.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            projector = Seen(browser, endpoint.address + "live")
            assert projector.page.query_selector(".join svg path") is not None
            assert "are 95 % intervals for the noise" in projector.page.inner_text(".sure")
            for person in range(2):
                seen = Seen(browser, endpoint.address)
                report = seen.answer()
                seen.page.wait_for_selector("#said:has-text('Nothing has been sent yet')")
                assert [method for method, _, _ in seen.asked if method != "GET"] == []  # it is seen before it is sent
                seen.page.click("#send")
                seen.page.wait_for_selector("#said:has-text('Sent')")
                posts = [(method, url, body) for method, url, body in seen.asked if method != "GET"]
                assert posts == [("POST", endpoint.address + "report", report)]
                assert all(url.startswith(endpoint.address) for _, url, _ in seen.asked)
                assert not any("37.625" in url + body for _, url, body in seen.asked)
                assert collection.reports == person + 1
                assert seen.console == []
                seen.page.reload()
                seen.page.click("#send")
                seen.page.wait_for_selector("#said:has-text('Sent')")
                assert seen.page.inner_text("#report") == report
                assert (collection.reports, collection.duplicates) == (person + 1, person + 1)
                projector.page.wait_for_selector(f"#count:has-text('{person + 1} answer')")
            assert len(projector.page.query_selector_all(".row")) == 33
            assert all(url.startswith(endpoint.address) for _, url, _ in projector.asked)
            assert projector.console == []
            assert read_code(projector.page) == endpoint.address
            for width in (1280, 375, 320):
                projector.page.set_viewport_size({"width": width, "height": 700})
                assert projector.page.evaluate("document.documentElement.scrollWidth") <= width
            assert read_code(projector.page) == endpoint.address
        finally:
            endpoint.shutdown()
            thread.join()
