"""The page that `privet account --plot` writes: complete, true to the guarantee, and on its own."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from typing import Any, cast

import plotly.graph_objects as go
import pytest

from privet.accounting import Profile
from privet.core.errors import InvalidInput
from privet.core.event import Event, Gaussian, Poisson, Repeated, Sampled, ShuffledEpoch
from privet.core.unit import Neighbours, Unit
from privet.report import Curves, Public, RunCard, curves_of, page, price_run
from privet.report.words import up

FIGURES = ["ladder", "attack", "growth", "profile", "loss"]
RUNS: dict[str, tuple[Event, float, Unit]] = {
    "poisson": (Repeated(Sampled(Gaussian(1.1), by=Poisson(0.01)), 500), 1e-5, Unit()),
    "one release": (Repeated(Gaussian(4.0), 1), 1e-6, Unit()),
    "shuffled": (
        Repeated(Sampled(Gaussian(6.0), by=ShuffledEpoch(10)), 4),
        1e-5,
        Unit(neighbours=Neighbours.ZERO_OUT),
    ),
    "two records": (Repeated(Sampled(Gaussian(2.0), by=Poisson(0.01)), 100), 1e-5, Unit(records=2)),
    "no noise": (Repeated(Gaussian(0.0), 3), 1e-5, Unit()),
    "no δ": (Repeated(Gaussian(4.0), 3), 0.0, Unit()),
    "far too little noise": (Repeated(Sampled(Gaussian(0.05), by=Poisson(0.1)), 100), 1e-5, Unit()),
    "hardly any loss": (Repeated(Sampled(Gaussian(1e6), by=Poisson(0.01)), 10), 1e-5, Unit()),
}


@cache
def made(name: str) -> tuple[RunCard, Curves, str]:
    """A card, its curves and its page."""
    event, delta, unit = RUNS[name]
    card = price_run(event, delta, unit=unit, conditions=("it is done <so>",), described=(("steps", "many"),))
    curves = curves_of(card)
    return card, curves, page(card, curves)


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text of those that are not scripts or styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        elif self._inside != "style":
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def specs_in(text: str) -> dict[str, Any]:
    """The figures as they stand in the page."""
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text, re.DOTALL)
    assert found
    return cast("dict[str, Any]", json.loads(found.group(1)))


@pytest.mark.parametrize("name", RUNS)
def test_the_page_needs_nothing_else(name: str) -> None:
    """Fails when the page loads anything from anywhere, or carries plotly.js not at all or twice."""
    _, _, text = made(name)
    elements = Elements(text)
    for tag in ("link", "img", "iframe", "object", "embed", "base", "form", "a"):
        assert elements.all(tag) == []
    assert [
        attributes for _, attributes in elements.found if {"src", "href", "srcset", "action"} & set(attributes)
    ] == []
    assert text.count("plotly.js v") == 1
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_the_page_forbids_itself_every_request() -> None:
    """Fails when the policy is missing, allows a host, or does not name exactly the scripts that the page carries."""
    _, _, text = made("poisson")
    elements = Elements(text)
    policy = next(str(meta["content"]) for meta in elements.all("meta") if meta.get("http-equiv"))
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert not re.search(r"https?:|\*|'self'|'unsafe-eval'|connect-src", policy)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes
    assert len(hashes) == 2


@pytest.mark.parametrize("name", RUNS)
def test_all_five_figures_are_there_in_words_and_numbers(name: str) -> None:
    """Fails when a figure is missing, has no text in its place, or cannot be reached with the keyboard."""
    _, _, text = made(name)
    elements = Elements(text)
    specs = specs_in(text)
    assert len(elements.all("figure")) == 5
    captions = re.findall(r'<figcaption id="(\w+)-words">(.+?)</figcaption>', text)
    assert [name for name, _ in captions] == FIGURES
    assert all(len(words) > 20 for _, words in captions)
    plots = {str(plot["id"]): plot for plot in elements.all("div") if plot.get("class") == "plot"}
    assert set(plots) == set(specs)
    identifiers = {attributes.get("id") for _, attributes in elements.found}
    for plot in plots.values():
        assert (plot["role"], plot["tabindex"]) == ("img", "0")
        assert {plot["aria-labelledby"], plot["aria-describedby"]} <= identifiers
    if name in ("poisson", "one release", "shuffled"):
        assert set(specs) == set(FIGURES)


@pytest.mark.parametrize("name", RUNS)
def test_the_curve_of_guarantees_is_drawn_in_steps(name: str) -> None:
    """Fails when a slanted line between two guarantees claims a δ that was not proven: δ falls with ε, so the earlier
    point's δ holds up to the next point, which plotly.js draws as horizontal first ("hv")."""
    _, _, text = made(name)
    specs = specs_in(text)
    if "profile" in specs:
        curve = specs["profile"]["data"][0]
        assert curve["line"]["shape"] == "hv"
        assert curve["x"] == sorted(curve["x"])


@pytest.mark.parametrize("name", RUNS)
def test_plotly_understands_the_figures(name: str) -> None:
    """Fails when a figure has a property that plotly.js does not know, or a value that it would not take."""
    _, _, text = made(name)
    for spec in specs_in(text).values():
        coloured = json.loads(re.sub(r'"var\(--[\w-]+\)"', '"#123456"', json.dumps(spec)))
        go.Figure(coloured)


@pytest.mark.parametrize("name", RUNS)
def test_the_page_says_what_the_guarantee_says(name: str) -> None:
    """Fails when a number on the page is not the guarantee's own, rounded up."""
    card, curves, text = made(name)
    guarantee = card.guarantee.value
    upper = guarantee.epsilon.upper
    shown = " ".join(Elements(text).text)
    assert f"δ = {guarantee.delta:g}" in shown
    if math.isinf(upper):
        assert "ε = ∞" in shown
        assert "no guarantee" in shown
        return
    assert f"ε ≤ {up(upper)}" in shown
    for sentence in card.meaning.value.sentences:
        assert sentence.replace(" %", "\u00a0%") in shown
    own = curves.counts.index(curves.own_count), curves.deltas.index(guarantee.delta)
    assert curves.by_delta[own[1]][own[0]] == upper
    specs = specs_in(text)
    if "ladder" in specs:
        assert min(specs["ladder"]["data"][0]["x"]) == upper
    mark = specs["growth"]["data"][-1]
    assert (mark["x"], mark["y"]) == ([curves.own_count], [upper])
    seen = specs["attack"]["data"][-1]
    assert seen["y"] == [attack.true_positive_rate for attack in card.meaning.value.attacks]


def test_the_curves_are_the_accountants_own() -> None:
    """Fails when δ(ε), ε against steps or the attacker's limit are computed otherwise than by the certified curves."""
    card, curves, _ = made("poisson")
    event = cast("Repeated", card.event.value)
    profile = Profile(event)
    stated = card.guarantee.value
    for each, delta in curves.profile:
        least = stated.delta if each >= stated.epsilon.upper else 1.0
        assert delta == min(profile.delta(each), least)
    for row in curves.by_delta:
        assert list(row) == sorted(row)
    first = Profile(Repeated(event.event, curves.counts[0]))
    assert curves.by_delta[1][0] == first.epsilon(curves.deltas[1])
    assert all(fpr <= tpr <= 1 for fpr, tpr in curves.roc)


def test_the_loss_is_a_density_with_delta_in_its_tail() -> None:
    """Fails when the density does not add up to 1, or its tail to the plain tail and to δ (trapezia: within 3 %)."""
    card, curves, _ = made("one release")
    loss, delta = curves.loss, card.guarantee.value.delta
    assert loss is not None
    points = list(zip(loss.losses, loss.density, strict=True))

    def area(points: list[tuple[float, float]]) -> float:
        return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))

    beyond = [(x, y) for x, y in points if x >= loss.epsilon]
    assert area(points) == pytest.approx(1, rel=0.03)
    assert area(beyond) == pytest.approx(loss.tail, rel=0.1)
    assert area([(x, -y * math.expm1(loss.epsilon - x)) for x, y in beyond]) == pytest.approx(delta, rel=0.03)
    # One Gaussian release of noise multiplier 4: the loss is normal with mean 1/32 and deviation 1/4.
    assert loss.tail == pytest.approx(0.5 * math.erfc((loss.epsilon - 1 / 32) * 4 / math.sqrt(2)), rel=0.01)


def test_text_cannot_leave_its_element() -> None:
    """Fails when a text with markup in it becomes markup, on the page or in the figures' data."""
    card, curves, _ = made("one release")
    evil = "</script><script>alert(1)</script>"
    text = page(replace(card, conditions=Public((evil,)), described=Public(((evil, evil),))), curves)
    assert evil not in text
    assert len(re.findall(r"<script\b", text.split("<footer>")[0])) == 0


def test_what_is_neither_public_nor_paid_for_is_refused() -> None:
    """Fails when a field that was not declared public reaches a shareable page."""
    card, curves, _ = made("one release")
    with pytest.raises(InvalidInput, match="notes is neither Public nor a Release"):
        page(replace(card, notes=cast("Any", ("the mean age is 41",))), curves)


def test_light_and_dark_have_the_same_colours() -> None:
    """Fails when a colour that a figure names is missing in one of the two schemes."""
    style = files("privet.report").joinpath("page.css").read_text(encoding="utf-8")
    light, dark = (
        set(re.findall(r"(--[\w-]+):", part)) for part in style.split("@media (prefers-color-scheme: dark)")[:2]
    )
    used = set(re.findall(r"var\((--[\w-]+)\)", made("poisson")[2].split("<script>", maxsplit=1)[0]))
    assert used <= light
    assert light == dark


CONTRASTS = [("--ink", 7.0), ("--soft", 4.5), ("--one", 4.5), ("--two", 4.5), ("--three", 4.5), ("--mark", 4.5)]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("name", "least"), CONTRASTS)
def test_colours_can_be_told_from_the_ground(scheme: int, name: str, least: float) -> None:
    """Fails when text or a line has less contrast than the web's guidelines (WCAG 2.1, 1.4.3) ask for."""
    style = files("privet.report").joinpath("page.css").read_text(encoding="utf-8")
    part = style.split("@media (prefers-color-scheme: dark)")[scheme]

    def brightness(variable: str) -> float:
        found = re.search(rf"{variable}: #(\w\w)(\w\w)(\w\w)", part)
        assert found
        shares = [int(channel, 16) / 255 for channel in found.groups()]
        linear = [share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for ground in ("--paper", "--card"):
        bright, dim = sorted((brightness(name), brightness(ground)), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= least
