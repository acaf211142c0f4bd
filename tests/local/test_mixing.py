"""The shuffler: real processes, what each of them sees, the order that comes out, and what is not let through."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from privet.cli.run import main
from privet.core import event
from privet.core.errors import InvalidInput
from privet.core.event import Shuffled
from privet.core.random import Randomness, SeededRng, default_rng
from privet.core.unit import Neighbours, Trust
from privet.local.questionnaire import Questionnaire, SurveyQuestion
from privet.local.reports import Collection, ReportOutcome, report_on, with_new_id
from privet.local.shuffling import (
    Batch,
    LayerOutcome,
    MixKey,
    MixPlan,
    MixRefused,
    MixServer,
    Stop,
    canonical_report,
    read_plan,
    seal,
    send,
    shuffled_release,
)
from privet.local.shuffling.onion import LAYER, padded, unpadded
from privet.local.shuffling.report_format import is_canonical_report
from privet.local.shuffling.server import posted

ROOT = Path(__file__).parents[2]
ENV = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def plan_of(minimum: int, servers: int = 2, **changes: Any) -> tuple[MixPlan, list[MixKey]]:
    keys = [MixKey.new() for _ in range(servers + 1)]
    stops = [
        Stop(f"http://127.0.0.1:{port}", key.public) for port, key in zip(free_ports(servers + 1), keys, strict=True)
    ]
    return MixPlan("test", 1.0, 1e-6, minimum, tuple(stops[:-1]), stops[-1], payload=64, **changes), keys


def written(plan: MixPlan, keys: list[MixKey], folder: Path) -> Path:
    """The plan as a file, and the keys beside it."""
    lines = ["privet = 1", f"batch = {plan.batch!r}", f"epsilon = {plan.epsilon}", f"delta = {plan.delta}"]
    lines += [f"minimum = {plan.minimum}", f"close-at = {plan.close_at}", f"payload = {plan.payload}"]
    for stop in plan.servers:
        lines += ["[[server]]", f"address = {stop.address!r}", f"key = {stop.key!r}"]
    lines += ["[collector]", f"address = {plan.collector.address!r}", f"key = {plan.collector.key!r}"]
    path = folder / "plan.toml"
    path.write_text("\n".join(lines))
    for place, key in enumerate(keys):
        (folder / f"{place}.key").write_text(key.secret)
    assert read_plan(path) == plan
    return path


def sealed(plan: MixPlan, report: bytes) -> bytes:
    return seal(report, [stop.key for stop in plan.stops], plan.payload, plan.name)


def started(path: Path, keys: list[MixKey]) -> list[subprocess.Popen[bytes]]:
    """A process for each stop, once all of them listen."""
    processes = []
    for place in range(len(keys)):
        command = [sys.executable, "-m", "tests.local.watched", str(path), str(path.parent / f"{place}.key")]
        processes.append(subprocess.Popen([*command, str(path.parent / f"{place}.json")], cwd=ROOT, env=ENV))
    for place in range(len(keys)):
        for _ in range(600):
            if (path.parent / f"{place}.json.ready").exists():
                break
            time.sleep(0.05)
    return processes


def seen(path: Path, keys: list[MixKey]) -> list[dict[str, Any]]:
    return [json.loads((path.parent / f"{place}.json").read_text()) for place in range(len(keys))]


def test_no_process_alone_knows_whose_report_is_whose(tmp_path: Path) -> None:
    """Catches a layer that is missing or opened twice, an order that is kept, senders that are passed on.

    The order is tested with a table of quarters: where a report arrived among 240, and where it left the last server.
    χ² with 9 degrees of freedom; a uniform order is called uneven once in a million runs.
    """
    plan, keys = plan_of(200, close_at=240)
    path = written(plan, keys, tmp_path)
    processes = started(path, keys)
    reports = [f"answer {number}" for number in range(240)]
    senders = [f"127.0.0.{10 + number}" for number in range(240)]
    for sender, report in zip(senders, reports, strict=True):
        assert send(plan, report.encode(), source=(sender, 0)) is LayerOutcome.ACCEPTED
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    first, second, collector = seen(path, keys)
    assert first["senders"] == senders  # whoever connects is known to the first server
    assert set(second["senders"]) == set(collector["senders"]) == {"127.0.0.1"}
    for server in (first, second):
        for layer in (*server["in"], *server["out"]):
            assert b"answer" not in bytes.fromhex(layer)
    assert collector["reports"] == sorted(reports)
    # nothing that one process saw is seen again two stops on, and all layers at one place look alike
    assert not set(first["in"]) & {*first["out"], *second["out"]}
    assert not set(first["out"]) & set(second["out"])
    assert first["out"] == second["in"] != second["out"] == collector["in"]
    for each in (first["in"], second["in"], collector["in"]):
        assert len({len(layer) for layer in each}) == 1
    opened = [keys[2].peel(bytes.fromhex(layer), plan.name) for layer in collector["in"]]
    left = [reports.index((unpadded(inner) or b"").decode()) for inner in opened if inner is not None]
    table = np.zeros((4, 4))
    for departed, arrived in enumerate(left):
        table[arrived // 60, departed // 60] += 1
    statistic = 239 / 240 * float(((table - 15.0) ** 2 / 15.0).sum())
    assert statistic < chi2.isf(1e-6, 9)


def test_every_order_is_as_likely() -> None:
    """Catches a shuffle with a bias: all 24 orders of four reports, 24,000 times; false alarm 1e-6, and seeded."""
    plan, keys = plan_of(4)
    rng, orders = SeededRng(11), list(permutations((b"a", b"b", b"c", b"d")))
    found: Counter[tuple[bytes, ...]] = Counter()
    batch = Batch(plan, keys[0])
    for _ in range(24_000):
        batch._inner = [b"a", b"b", b"c", b"d"]
        found[tuple(batch.close(rng))] += 1
    assert sum((found[order] - 1000) ** 2 / 1000 for order in orders) < chi2.isf(1e-6, 23)


def test_a_bad_inside_is_dropped_and_too_few_are_refused_everywhere(tmp_path: Path) -> None:
    """Catches a batch that goes on with fewer than the plan asks for, or whose refusal the first servers never hear."""
    plan, keys = plan_of(5)
    path = written(plan, keys, tmp_path)
    processes = started(path, keys)
    for number in range(4):
        send(plan, f"answer {number}".encode())
    # good outside, and nonsense for the second server
    nonsense = seal(b"no layer", [plan.servers[0].key], plan.length(1) - 4, plan.name)
    assert posted(plan.servers[0], "/report", nonsense, patience=10.0)[0] == 201
    assert [process.wait(60) for process in processes[:2]] == [1, 1]
    processes[2].terminate()
    processes[2].wait(60)
    for server in (json.loads((tmp_path / f"{place}.json").read_text()) for place in (0, 1)):
        assert "refused at stop 2: 4 reports kept" in server["refusal"]
        assert "1 dropped as bad" in server["refusal"]


def test_layers_that_do_not_open() -> None:
    """Catches a cipher without a tag, or one that is not bound to its key, its batch and its server."""
    plan, keys = plan_of(3)
    batch, layer = Batch(plan, keys[0]), sealed(plan, b"yes")
    assert len(layer) == plan.length(0) == 4 + 64 + 3 * LAYER
    other, _ = plan_of(3)
    bad = [
        b"",
        layer[:-1],
        layer + b"\0",
        layer[:40],
        bytes(len(layer)),  # an ephemeral key of low order
        *(layer[:at] + bytes([layer[at] ^ 1]) + layer[at + 1 :] for at in (0, 31, 32, 100, len(layer) - 1)),
        layer[:31] + bytes([layer[31] | 0x80]) + layer[32:],  # the same point, written differently
        sealed(other, b"yes"),
        seal(b"yes", [stop.key for stop in plan.stops], plan.payload, replace(plan, batch="another").name),
        seal(b"yes", [stop.key for stop in plan.stops], plan.payload, replace(plan, minimum=2, close_at=3).name),
    ]
    assert [batch.add(each) for each in bad] == [LayerOutcome.BAD] * len(bad)
    assert batch.add(layer) is LayerOutcome.ACCEPTED
    assert batch.counts.bad == len(bad)


def test_a_replay_counts_once() -> None:
    """Catches a batch in which an attacker multiplies one report until it stands out."""
    plan, keys = plan_of(3)
    batch, layers = Batch(plan, keys[0]), [sealed(plan, b"yes") for _ in range(3)]
    assert [batch.add(layer) for layer in (*layers, *layers, layers[0])].count(LayerOutcome.DUPLICATE) == 4
    assert (batch.counts.accepted, batch.counts.duplicates) == (3, 4)
    second, collector = Batch(plan, keys[1]), Batch(plan, keys[2])
    inner = batch.close(default_rng())
    second.add_all(b"".join([*inner, inner[0], b"left over"]))
    assert (second.counts.accepted, second.counts.duplicates, second.counts.bad) == (3, 1, 1)
    collector.add_all(b"".join(second.close(default_rng())))
    assert collector.close(default_rng()) == [b"yes"] * 3


def test_a_report_is_one_line() -> None:
    """Catches one sender who counts as many, and padding in which something is hidden."""
    for report in (b"", b"yes\nyes", b"yes\r", "yes\u2028yes".encode(), b"\xff"):
        with pytest.raises(InvalidInput, match="one line"):
            padded(report, 64)
        assert unpadded(len(report).to_bytes(4, "big") + report + bytes(64 - len(report))) is None
    assert unpadded(padded("naïve".encode(), 64)) == "naïve".encode()
    assert unpadded(padded(b"yes", 64)[:-1] + b"!") is None
    assert unpadded((100).to_bytes(4, "big") + bytes(64)) is None
    with pytest.raises(InvalidInput, match="65 bytes"):
        padded(b"y" * 65, 64)


def test_a_batch_is_taken_once_and_from_the_stop_before_only() -> None:
    """Catches a server that mixes whatever it is sent: a batch of an attacker, a second batch, a report by itself."""
    plan, keys = plan_of(2)
    with MixServer(plan, keys[2], default_rng()) as collector:
        inner = [seal(b"yes", [plan.collector.key], plan.payload, plan.name) for _ in range(2)]
        body = b"".join(inner)
        good = keys[1].signature(body, plan.name, plan.collector.key, sends=True)
        for signature in (b"", bytes(32), keys[0].signature(body, plan.name, plan.collector.key, sends=True)):
            assert collector.take_batch(body, signature)[0] == 403
        assert collector.take_batch(body[:-1], good)[0] == 403
        assert collector.take_batch(body, good) == (200, "")
        assert collector.reports == (b"yes", b"yes")
        assert collector.take_batch(body, good)[0] == 409


def test_the_first_server_waits_and_closes() -> None:
    """Catches a batch that is sent on before its minimum, or that takes a report after it was closed."""
    plan, keys = plan_of(3, close_at=4)
    with MixServer(plan, keys[0], default_rng()) as server:
        assert [server.take_report(sealed(plan, b"yes")) for _ in range(5)] == [201, 201, 201, 201, 409]
    with MixServer(plan, keys[0], default_rng()) as server:
        server.take_report(sealed(plan, b"yes"))
        with pytest.raises(MixRefused, match="1 reports kept"):
            server.run(0.05)
    with MixServer(plan, keys[1], default_rng()) as server, pytest.raises(MixRefused, match="no batch came"):
        server.run(0.05)


def test_the_release_says_what_it_rests_on() -> None:
    """Catches a release under another trust, with the batch's size for the honest reports, or of too few reports."""
    plan, _ = plan_of(1000, dishonest=100, categories=2, close_at=1100)
    reports = [b'{"answer": 1}', b'{"answer": 0}'] * 525
    release = shuffled_release(plan, reports, randomness=Randomness.SECURE)
    assert release.value == tuple(sorted(reports))
    assert release.unit.trust is Trust.SHUFFLED
    assert release.event == plan.event
    assert plan.event.reports == 900
    assert release.guarantee is not None
    assert release.guarantee.epsilon.upper < 0.2
    said = " ".join(release.guarantee.assumptions)
    assert "900 reports" in said
    assert "collude" in said
    assert "computational" in said
    with pytest.raises(MixRefused, match="999 reports"):
        shuffled_release(plan, reports[:999], randomness=Randomness.SECURE)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"minimum": 1}, "minimum"),
        ({"close_at": 2}, "close_at"),
        ({"dishonest": 3}, "dishonest"),
        ({"categories": 1}, "categories"),
        ({"payload": 0}, "payload"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"servers": ()}, "server"),
        ({"batch": " "}, "batch"),
    ],
    ids=str,
)
def test_a_plan_that_cannot_hold_is_refused(change: dict[str, Any], complaint: str) -> None:
    """Catches a plan with one server, without a crowd, or whose numbers contradict each other."""
    plan, _ = plan_of(3)
    with pytest.raises(InvalidInput, match=complaint):
        replace(plan, **change)
    with pytest.raises(InvalidInput, match="same at two stops"):
        replace(plan, collector=plan.servers[0])


@pytest.mark.parametrize("address", ["", "https://a:1", "http://a", "http://a:0", "http://a:99999", "http://a:1/x", 7])
def test_an_address_that_is_none(address: Any) -> None:
    """Catches a plan whose stops nobody could reach."""
    with pytest.raises(InvalidInput, match="address"):
        Stop(address, MixKey.new().public)


def test_a_key_shows_nothing() -> None:
    """Catches a private key in a traceback or a log."""
    key = MixKey.new()
    assert key.secret not in repr(key)
    assert key.secret != key.public
    for bad in ("", "zz", key.secret[:-2], key.secret + "00"):
        with pytest.raises(InvalidInput, match="64 hexadecimal digits"):
            MixKey.read(bad)


def test_the_commands(tmp_path: Path) -> None:
    """Catches commands that do not fit together: keys, a plan, three processes, reports in and the same reports out."""

    def privet(*words: object) -> list[str]:
        return [sys.executable, "-m", "privet", "mix", *map(str, words)]

    def said(*words: object, code: int = 0) -> str:
        ran = subprocess.run(privet(*words), cwd=tmp_path, env=ENV, capture_output=True, text=True, check=False)
        assert ran.returncode == code, ran.stderr
        return ran.stdout + ran.stderr

    plan, keys = plan_of(6)
    path = written(plan, keys, tmp_path)
    made = said("key", "new.key").strip()
    assert MixKey.read((tmp_path / "new.key").read_text()).public == made
    assert (tmp_path / "new.key").stat().st_mode & 0o077 == 0
    assert "do not all collude" in said("plan", path)
    assert "no stop in the plan" in said("serve", path, "--key", "new.key", code=2)
    assert "collector's" in said("serve", path, "--key", "2.key", code=2)
    last = subprocess.Popen(privet("collect", path, "--key", "2.key", "--out", "out.jsonl"), cwd=tmp_path, env=ENV)
    others = [
        subprocess.Popen(privet("serve", path, "--key", f"{place}.key"), cwd=tmp_path, env=ENV) for place in (0, 1)
    ]
    (tmp_path / "mine.jsonl").write_text("\n".join(f'{{"answer": {number % 2}}}' for number in range(6)))
    assert "6 of 6 reports" in said("send", path, "mine.jsonl")
    assert [process.wait(60) for process in (*others, last)] == [0, 0, 0]
    assert (tmp_path / "out.jsonl").read_text() == '{"answer": 0}\n' * 3 + '{"answer": 1}\n' * 3
    assert not list(tmp_path.glob("[012].key"))  # each of them served once, and is gone
    assert "cannot be read" in said("serve", path, "--key", "0.key", code=2)


SURVEY = Questionnaire(
    "Commuting",
    2.0,
    (SurveyQuestion("fare", "Free ride?", ("no", "yes")), SurveyQuestion("minutes", "How long?", low=0, high=9)),
)


def lines_of(survey: Questionnaire, people: int) -> list[bytes]:
    rng, answers = SeededRng(5), {"fare": 1, "minutes": 4.0, "smoker": 0}
    return [json.dumps(report_on(survey, answers, rng)).encode() for _ in range(people)]


def test_a_report_is_what_the_plan_prices() -> None:
    """Catches three answers of ε = 2 sent under a plan that prices one of ε = 1, by the sender and by the collector."""
    (line,) = lines_of(SURVEY, 1)
    for without, _ in (plan_of(3), plan_of(3, categories=2)):
        with pytest.raises(InvalidInput, match="plan names none"):
            send(without, line)  # before anything listens
        assert not is_canonical_report(without, line)
    coin, _ = plan_of(3, categories=2)
    assert canonical_report(coin, b' {"answer":1} ') == b'{"answer": 1}'
    for bad in (
        b"1",
        b'{"answer": 2}',
        b'{"answer": true}',
        b'{"answer": 1, "id": "me"}',
        b"yes",
        b"\xff",
        b"[" * 10**5,
    ):
        with pytest.raises(InvalidInput, match="2 categories"):
            canonical_report(coin, bad)
    plan, keys = plan_of(2)
    asked = replace(plan, epsilon=2.0, survey=SURVEY, payload=200)
    with pytest.raises(InvalidInput, match="epsilon is 1, and one report of the survey 'Commuting' has 2"):
        replace(plan, survey=SURVEY)
    with pytest.raises(InvalidInput, match="beside a survey"):
        replace(asked, categories=2)
    other = lines_of(replace(SURVEY, epsilon=4.0), 1)[0]
    for bad in (other, b'{"answer": 1}', b"yes", line[:-1]):
        with pytest.raises(InvalidInput, match="none of the plan's survey"):
            send(asked, bad)
    # whoever does not check still gets nothing past the collector, which drops what it has no price for
    collector = Batch(asked, keys[2])
    for each in (other, line, canonical_report(asked, line) + b" "):
        layer = seal(each, [asked.collector.key], asked.payload, asked.name)
        assert collector.add(layer) is LayerOutcome.BAD
    layer = seal(canonical_report(asked, line), [asked.collector.key], asked.payload, asked.name)
    assert collector.add(layer) is LayerOutcome.ACCEPTED
    with pytest.raises(MixRefused, match="1 reports of the batch 'test' are not what"):
        shuffled_release(asked, [canonical_report(asked, line), other], randomness=Randomness.SEEDED)
    assert asked.name != replace(plan, epsilon=2.0, payload=200).name
    assert asked.event == Shuffled(event.Pure(2.0, Neighbours.REPLACE), 2)
    smoking = Questionnaire("Smoking", 2.0, (SurveyQuestion("smoker", "Do you?", ("no", "yes")),))
    assert replace(asked, survey=smoking).event == Shuffled(event.RandomizedResponse(2.0), 2)


def test_the_id_of_a_report_stays_behind() -> None:
    """Catches an id, or another order of words, by which the collector knows whose report this is."""
    plan, _ = plan_of(2)
    asked = replace(plan, epsilon=2.0, survey=SURVEY, payload=200)
    (line,) = lines_of(SURVEY, 1)
    read = json.loads(line)
    sent = canonical_report(asked, line)
    assert read["id"].encode() not in sent
    assert json.loads(sent)["answers"] == read["answers"]
    assert (
        canonical_report(asked, json.dumps(dict(reversed(read.items())), indent=0).replace("\n", "").encode()) == sent
    )
    assert is_canonical_report(asked, sent)
    collection, rng = Collection(SURVEY), SeededRng(6)
    assert collection.add(sent) is ReportOutcome.REFUSED  # without an id nobody would see that it came twice
    assert [collection.add(with_new_id(sent, rng)) for _ in range(2)] == [ReportOutcome.ACCEPTED] * 2


def test_a_survey_is_sent_through_the_mix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a batch of a survey that cannot be estimated, or that takes an id with it; and lines that get lost
    without a word where the batch closes before all are sent."""
    plan, keys = plan_of(20)
    path = written(replace(plan, epsilon=2.0, payload=200), keys, tmp_path)
    assert main(["survey", "design", str(tmp_path / "commute.toml"), "--draft"]) == 0
    path.write_text('survey = "commute.toml"\n' + path.read_text())
    found = read_plan(path)
    assert found.survey is not None
    rng, answers = SeededRng(5), {"fare": 1, "transport": 2, "minutes": 40.0}
    lines = [json.dumps(report_on(found.survey, answers, rng)) for _ in range(30)]
    for name, some in (("all", lines), ("some", lines[:12]), ("rest", lines[12:]), ("twice", lines[:1] * 2)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(some) + "\n")
    capsys.readouterr()

    def said(name: str, code: int) -> str:
        assert main(["mix", "send", str(path), str(tmp_path / f"{name}.jsonl")]) == code
        shown = capsys.readouterr()
        return shown.out + shown.err

    assert "are 30, and the batch closes at 20; nothing was sent" in said("all", 2)
    assert "line 2 of" in said("twice", 2)
    processes = [
        subprocess.Popen([sys.executable, "-m", "privet", "mix", *words], cwd=tmp_path, env=ENV)
        for words in (
            ["collect", str(path), "--key", "2.key", "--out", "out.jsonl"],
            ["serve", str(path), "--key", "1.key"],
            ["serve", str(path), "--key", "0.key"],
        )
    ]
    assert "12 of 12 reports" in said("some", 0)
    assert "lines 1 to 12 of" in (again := said("some", 2))
    assert "were sent before" in again
    refusal = said("rest", 2)
    assert "8 of 18 reports are on their way to 'test'; not taken: lines 9 to 18 of" in refusal
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    arrived = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert not {each["id"] for each in arrived} & {json.loads(line)["id"] for line in lines}
    answered = sorted(json.dumps(json.loads(line)["answers"], sort_keys=True) for line in lines[:20])
    assert sorted(json.dumps(each["answers"], sort_keys=True) for each in arrived) == answered
    assert main(["survey", "estimate", str(tmp_path / "commute.toml"), str(tmp_path / "out.jsonl")]) == 0
    assert "20 reports" in capsys.readouterr().out


def test_a_word_that_means_nothing_in_a_plan_is_named(tmp_path: Path) -> None:
    """Catches a misspelt word that is left out in silence, and two servers that cannot both listen."""
    plan, keys = plan_of(3)
    path = written(plan, keys, tmp_path)
    whole = path.read_text()
    path.write_text(whole.replace("[collector]", '[collector]\nadress = "x"'))
    with pytest.raises(InvalidInput, match="adress means nothing"):
        read_plan(path)
    path.write_text("minimun = 3\n" + whole)
    with pytest.raises(InvalidInput, match="minimun means nothing"):
        read_plan(path)
    first, second = plan.servers
    with pytest.raises(InvalidInput, match="address is the same at two stops"):
        replace(plan, servers=(first, replace(second, address=first.address + "/")))


def test_batch_code_of_one_batch_is_none_of_another() -> None:
    """Catches a key that does not depend on the batch: what was sent in one could be sent again in the next."""
    first, second = MixKey.new(), MixKey.new()
    codes = [first.signature(b"reports", batch, second.public, sends=True) for batch in (b"monday", b"tuesday")]
    assert codes[0] != codes[1]
    assert second.signature(b"reports", b"monday", first.public, sends=False) == codes[0]


def test_mix_plan_needs_two_servers() -> None:
    """Catches a plan with one server, which knows the order of the reports: the guarantee rests on two."""
    with pytest.raises(InvalidInput, match="server is there 1 times"):
        plan_of(10, servers=1)
