"""Whatever an agent puts into its words, the server goes on and the API stays JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hostile_words import (
    LARGE,
    ODD,
    RUN,
    TEXTS,
    hung_up,
    let_in,
    packed,
    readable,
    say,
    spoilt,
    words,
)
from tests.support.server_app import ServerApp, server_app
from vramscope_protocol.messages import (
    Event,
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerApp]:
    """A server of its own for each test."""
    with server_app(tmp_path) as started:
        yield started


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_words_of_a_registration(server: ServerApp, text: str) -> None:
    agent = spoilt(server, text)
    is_in = let_in(agent) and say(agent)
    agent.close()
    readable(server, RUN)
    names = [run["name"] for run in server.get("/api/v1/runs") if run["id"] == RUN]
    # Taken as it is, or not at all.
    assert names == ([agent.run.name] if is_in else [])


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_each_word_of_a_registration_alone(server: ServerApp, text: str) -> None:
    whole = spoilt(server, text)
    taken = 0
    for part, name in (
        *(("run", name) for name in ("name", "user", "script")),
        *(
            ("rank", name)
            for name in (
                "host", "launcher", "job", "life", "devices", "software", "commands",
                "user_commands",
            )
        ),
    ):  # fmt: skip
        agent = server.agent(run="train")
        setattr(getattr(agent, part), name, getattr(getattr(whole, part), name))
        taken += let_in(agent) and say(agent)
        agent.close()
    assert taken or text in (LARGE, TEXTS["NUL"])
    readable(server, RUN)


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_words_of_every_message(server: ServerApp, text: str) -> None:
    kept = 0
    for number in range(len(words("", 0))):
        with server.agent() as agent:
            server.post(f"/api/v1/runs/{RUN}/commands", {"name": "stats", "id": "c1"})
            kept += say(agent, words(text, time.time_ns())[number])
    assert kept, "the server hung up on everything"
    readable(server, RUN)


@pytest.mark.parametrize("name", ODD)
def test_values_that_json_has_not(server: ServerApp, name: str) -> None:
    value = ODD[name]()
    now_ns = time.time_ns()
    for body in (
        {"type": "event", "seq": 1, "time_ns": now_ns, "kind": "mark", "data": value},
        {"type": "event", "seq": 1, "time_ns": now_ns, "kind": "mark", "data": {"x": value}},
        {
            "type": "command_update", "seq": 1, "id": "c1", "state": "done", "time_ns": now_ns,
            "receipt": {"state": "done", "before": {"x": value}, "result": value},
        },
    ):  # fmt: skip
        with server.agent() as agent:
            server.post(f"/api/v1/runs/{RUN}/commands", {"name": "stats", "id": "c1"})
            agent.wire.send(packed(body))
            say(agent)
    readable(server, RUN)


def test_half_characters_and_broken_bytes(server: ServerApp) -> None:
    """What no text is ends the connection that sent it, and no other."""
    from vramscope_protocol.codec import encode

    marker = b"MARKER"
    good = encode(Event(1, time.time_ns(), "mark", 1, marker.decode(), {"a": marker.decode()}))
    for bad in (b"\xed\xa0\x80\xed\xa0", b"\xff\xfe\xff\xfe\xff\xfe", b"\xc0\xaf\xc0\xaf\xc0\xaf"):
        agent = server.agent()
        with agent:
            agent.wire.send(good.replace(marker, (bad * 2)[:6]))
            assert hung_up(agent)
    readable(server, RUN)


def test_the_live_feed_of_a_hostile_run_is_json(server: ServerApp) -> None:
    text = TEXTS["control characters"] + TEXTS["markup"] + TEXTS["right to left"]
    with server.live() as page:
        page.ask("subscribe_runs")
        agent = spoilt(server, text)
        agent.rank.life = "one"
        with agent:
            page.ask("subscribe_run", run=RUN, fields=[])
            for message in words(text, time.time_ns())[:5]:
                agent.send(message)
            found = page.wait_event("event")
    assert text in str(found) or repr(text)[1:-1] in str(found)


def test_one_megabyte_is_too_much_for_a_message(server: ServerApp) -> None:
    with server.agent() as agent:
        agent.send(Event(1, time.time_ns(), "mark", 1, "x" * (1 << 20), {}))
        assert hung_up(agent)
    readable(server, RUN)
