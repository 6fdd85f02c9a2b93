"""An agent that means harm: it reaches no other run, and no text of it breaks the server."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.websockets import WebSocketDisconnect

from tests.support.made_policies import policy_body
from tests.support.scripted_agent import GIB, ScriptedAgent
from tests.support.server_app import ServerApp, server_app
from vramscope_protocol.account import MemoryPart, ProcessMemory
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import ProtocolError
from vramscope_protocol.messages import (
    AgentStatus,
    Command,
    CommandUpdate,
    DeviceInfo,
    Error,
    Event,
    Field,
    FieldTable,
    Goodbye,
    Lost,
    MapFrame,
    Register,
    SnapshotBegin,
)
from vramscope_protocol.user_commands import UserCommand, UserParam
from vramscope_server.app import _ROUTES

RUN, OTHER = "0123456789ab", "ffffffffffff"
LARGE = "x" * 900_000
TEXTS = {
    "control characters": "a\x01\x07\x08\x1b[2J\x7f\x9b31m\r\n\u2028\u2029b",
    "NUL": "a\x00b",
    "markup": "</script><img src=x onerror=alert(1)>\"'`${1}{{2}}<!--",
    "right to left": "\u202e\u2066evil\u202c\u200f\u061c gnp.exe",
    "not characters": "\ufffe\uffff\U0010ffff\ufdd0\ufeff",
    "combining": "e" + "\u0301" * 2000,
    "SQL and paths": "'; DROP TABLE runs; -- ../../etc/passwd %00 \\",
    "JSON": '{"error": {"code": "x"}}, \\ud800 \\u0000',
    "emoji": "👩‍👩‍👧‍👦" * 50,
    "1 MB": LARGE,
    "empty": "",
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerApp]:
    """A server of its own for each test."""
    with server_app(tmp_path) as started:
        yield started


def request(server: ServerApp, method: str, path: str, token: str, **options: Any) -> Any:
    headers = {"authorization": f"Bearer {token}"}
    return server.client.request(method, path, headers=headers, **options)


def rest_of(server: ServerApp) -> list[str]:
    """Every path of the API that can be read, about the run and what is in it."""
    paths = {
        f"/api/v1{path}"
        for module in _ROUTES
        for route in module.router.routes
        if "GET" in (getattr(route, "methods", None) or ())
        and (path := str(getattr(route, "path", "")))
    }
    assert len(paths) > 20
    values = {"run": RUN, "command_id": "c1"}
    return sorted(
        path.format_map({**values, **dict.fromkeys(("finding", "snapshot", "oom", "policy"), "x")})
        for path in paths
    )


def test_its_token_opens_nothing_but_its_own_websocket(server: ServerApp) -> None:
    token = server.make_token("agent", name="job")
    with server.agent():
        for path in rest_of(server):
            answer = request(server, "GET", path, token)
            # Whoever asks may see the names of series, and who it is itself.
            is_its_own = path in {"/api/v1/session", "/api/v1/series-names"}
            assert answer.status_code in ({200, 403} if is_its_own else {403, 404}), path
            assert "train" not in answer.text.replace("training", ""), path
        attempts = [
            ("POST", f"/api/v1/runs/{RUN}/commands", {"name": "empty_cache"}),
            ("POST", f"/api/v1/runs/{RUN}/commands", {"name": "stats"}),
            ("POST", "/api/v1/policies", policy_body()),
            ("POST", f"/api/v1/runs/{RUN}/frames", {"scopes": ["view"]}),
        ]
        for method, path, body in attempts:
            assert request(server, method, path, token, json=body).status_code == 403, path
        login = server.client.post("/login", json={"token": token})
        socket = server.websocket("/ws/live", authorization=f"Bearer {token}")
        with pytest.raises(WebSocketDisconnect) as closed, socket:
            socket.receive_text()
    assert login.status_code in {200, 204, 403}
    assert closed.value.code == 4403


def test_it_cannot_answer_for_another_run(server: ServerApp) -> None:
    with server.agent() as victim, server.agent(run="other", run_id=OTHER) as hostile:
        posted = server.post(f"/api/v1/runs/{RUN}/commands", {"name": "gc_collect"}).json()
        received = victim.wait_command()
        hostile.update(received, "done", message="I did it", returned_bytes=1)
        hostile.wait_acked()
        found = server.get(f"/api/v1/runs/{RUN}/commands/{posted['id']}")
        assert (found["state"], found["receipts"]) == ("queued", {})
        victim.update(received, "failed", message="It broke.")
        victim.wait_acked()
        found = server.get(f"/api/v1/runs/{RUN}/commands/{posted['id']}")
        assert found["state"] == "failed"
        assert [each["message"] for each in found["receipts"].values()] == ["It broke."]
        assert server.get(f"/api/v1/runs/{OTHER}/commands")["commands"] == []
        assert hostile.commands == []


def test_it_cannot_answer_for_another_rank(server: ServerApp) -> None:
    with server.agent(world_size=2) as first, server.agent(rank=1, world_size=2) as second:
        body = {"name": "gc_collect", "ranks": [0]}
        posted = server.post(f"/api/v1/runs/{RUN}/commands", body).json()
        received = first.wait_command()
        second.update(received, "done")
        second.wait_acked()
        assert server.get(f"/api/v1/runs/{RUN}/commands/{posted['id']}")["receipts"] == {}


def test_it_cannot_go_on_with_the_stream_of_another_run(server: ServerApp) -> None:
    with server.agent() as victim:
        victim.samples(3)
        victim.wait_acked()
        before = server.get(f"/api/v1/runs/{RUN}")
        hostile = server.agent(run="other", run_id=OTHER)
        hostile.stream = victim.stream
        with pytest.raises((AssertionError, WebSocketDisconnect)):
            hostile.open()
        victim.samples(1)
        victim.wait_acked()
        after = server.get(f"/api/v1/runs/{RUN}")
    assert after["ranks"][0]["stream"] == before["ranks"][0]["stream"]
    assert after["ranks"][0]["samples_received"] == 4
    assert OTHER not in [run["id"] for run in server.get("/api/v1/runs")]


def test_it_cannot_register_twice_on_one_connection(server: ServerApp) -> None:
    with server.agent() as hostile:
        other = server.agent(run="other", run_id=OTHER)
        hostile.send(Register(other.stream, other.run, other.rank))
        assert hung_up(hostile)
    assert OTHER not in [run["id"] for run in server.get("/api/v1/runs")]


def test_it_cannot_put_its_snapshot_in_the_place_of_another(server: ServerApp) -> None:
    begin = SnapshotBegin("snap", time.time_ns(), 100, 50, "0" * 64)
    with server.agent() as victim, server.agent(run="other", run_id=OTHER) as hostile:
        victim.send(begin)
        assert victim.wait_snapshot_ack().refused == ""
        hostile.send(begin)
        assert "belongs to another" in hostile.wait_snapshot_ack().refused
        assert server.get(f"/api/v1/runs/{OTHER}/snapshots")["snapshots"] == []


def test_it_cannot_ask_for_anything(server: ServerApp) -> None:
    """What a server says to agents is no request that an agent can make."""
    with server.agent() as victim, server.agent(run="other", run_id=OTHER) as hostile:
        hostile.send(Command("evil", "stop", {}))
        hostile.samples(1)
        hostile.wait_acked()  # an unknown message is passed over
        victim.samples(1)
        victim.wait_acked()
        assert victim.commands == []
    assert server.get("/api/v1/audit")["audit"] == []


def readable(server: ServerApp, run: str) -> None:
    """Everything that is told of a run is JSON; the server serves others as before."""
    for path in rest_of(server):
        answer = server.client.get(
            path.replace(RUN, run), headers={"authorization": "Bearer test-token"}
        )
        assert answer.status_code < 500, (path, answer.text[:300])
        if path.endswith("/pickle"):
            continue
        body = json.loads(answer.content.decode("utf-8", "strict"))
        msgspec.json.encode(body)  # no half characters
    for format in ("csv", "jsonl"):
        audit = server.client.get(
            f"/api/v1/audit?format={format}", headers={"authorization": "Bearer test-token"}
        )
        assert audit.status_code == 200
    assert server.get("/readyz")
    with server.agent(run="honest", run_id="aaaaaaaaaaaa") as honest:
        assert say(honest)


def say(agent: ScriptedAgent, *messages: Any) -> bool:
    """Send these and say goodbye, which is committed at once; whether all was taken."""
    try:
        for message in messages:
            agent.send(message)
        agent.seq = 1000
        agent.samples(1)
        agent.goodbye()
        agent.wait_acked()
    except (WebSocketDisconnect, AssertionError, RuntimeError, ProtocolError):
        return False
    return True


def hung_up(agent: ScriptedAgent) -> bool:
    """Wait until the server ends the connection; whether it said why."""
    why = False
    try:
        while True:
            why |= isinstance(agent.receive(), Error)
    except (WebSocketDisconnect, ProtocolError):
        return why


def spoilt(server: ServerApp, text: str) -> ScriptedAgent:
    """An agent all of whose words are this one."""
    agent = server.agent(run="train")
    short = text[:500]
    agent.run.name = f"run {text}"
    agent.run.user = agent.run.script = text
    agent.rank.host = agent.rank.launcher = agent.rank.job = agent.rank.life = text
    agent.rank.devices = [DeviceInfo(0, text, text, 8 * GIB, backend=text)]
    agent.rank.software = {text: text, "vramscope": text}
    agent.rank.commands = [text, "stats", "user.evil"]
    agent.rank.user_commands = [
        UserCommand(
            f"user.{text[:70]}",
            text[:400],
            params=[UserParam(text[:64], "choice", None, [text, short])],
        )
    ]
    return agent


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_words_of_a_registration(server: ServerApp, text: str) -> None:
    agent = spoilt(server, text)
    try:
        agent.open()
        say(agent)
        for run in (RUN, agent.run.name):
            server.client.get(
                "/api/v1/runs/" + run.replace("/", "%2F")[:2000].encode("unicode_escape").decode(),
                headers={"authorization": "Bearer test-token"},
            )
    except (WebSocketDisconnect, AssertionError):
        pass  # refused at the door, which is as good
    finally:
        agent.close()
    readable(server, RUN)


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_each_word_of_a_registration_alone(server: ServerApp, text: str) -> None:
    whole = spoilt(server, text)
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
        try:
            agent.open()
            say(agent)
        except (WebSocketDisconnect, AssertionError):
            continue
        finally:
            agent.close()
    readable(server, RUN)


def words(text: str, now_ns: int) -> list[Any]:
    """Messages of every kind that carries words, all of them this one."""
    nested: dict[str, Any] = {text: [text, {text: text}]}
    receipt = Receipt("done", 1, nested, nested, 5, 0.1, text, {"text": text, text: [text]})
    return [
        Event(1, now_ns, text, 1, text, nested),
        Event(2, now_ns, "exception", 1, text, {"stack": [text], "text": text}),
        Event(
            3, now_ns, "oom", 1, text, {"message": text, "stack": [{"file": text, "name": text}]}
        ),
        Event(4, now_ns, "phase", 1, text, {"name": text, "code": 16}),
        CommandUpdate(5, "c1", "done", now_ns, receipt),
        CommandUpdate(6, text[:100], "done", now_ns, receipt),
        AgentStatus(
            1.0,
            0.1,
            notes=[text] * 5,
            processes=[ProcessMemory(1, text, 5)],
            outside=[MemoryPart(text, 5)],
        ),
        Lost(samples={text: 3}, steps={text: 3}, messages={text: 1}),
        FieldTable(9, [Field("time_ns", "q"), Field("step", "q"), Field(text, "q", text)]),
        MapFrame(1, why_not=text, texts=[text], summary=text),
        Goodbye(7, now_ns, "exception", 1, text),
    ]


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_words_of_every_message(server: ServerApp, text: str) -> None:
    kept = 0
    for number in range(len(words("", 0))):
        with server.agent() as agent:
            server.post(f"/api/v1/runs/{RUN}/commands", {"name": "stats", "id": "c1"})
            kept += say(agent, words(text, time.time_ns())[number])
    assert kept, "the server hung up on everything"
    readable(server, RUN)


def deep(levels: int) -> Any:
    """Lists in lists."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


ODD: dict[str, Any] = {
    "numbers as names": {1: 2, "1": 3, False: 4},
    "nothing as a name": {None: 1},
    "lists as names": {(1, 2): 3},
    "bytes": {"a": b"\xff\x00", b"\xff": 1},
    "no numbers": {"a": math.nan, "b": -math.inf},
    "large numbers": {"a": 2**64 - 1, "b": -(2**63), "c": 1e308},
    "a time": {"a": datetime.fromtimestamp(0, timezone.utc)},
    "nested deeply": {"a": deep(400)},
    "nested very deeply": {"a": deep(200_000)},
    "many": {"a": [None] * 500_000},
}


@pytest.mark.parametrize("value", ODD.values(), ids=list(ODD))
def test_values_that_json_has_not(server: ServerApp, value: Any) -> None:
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


def packed(value: Any) -> bytes:
    """As MessagePack, however deep."""
    if isinstance(value, dict):
        parts = [packed(each) for pair in value.items() for each in pair]
        return b"\xdf" + len(value).to_bytes(4, "big") + b"".join(parts)
    if not isinstance(value, (list, tuple)):
        return msgspec.msgpack.encode(value)
    levels = 0
    while isinstance(value, list) and len(value) == 1:  # without recursion
        value, levels = value[0], levels + 1
    if levels:
        return b"\x91" * levels + packed(value)
    head = b"\xdd" + len(value).to_bytes(4, "big")
    return head + b"".join(packed(each) for each in value)


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
