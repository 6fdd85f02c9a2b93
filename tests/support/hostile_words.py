"""Agents whose every word is a trap, and whether the server and its API stand it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import msgspec
from starlette.websockets import WebSocketDisconnect

from tests.support.scripted_agent import GIB, ScriptedAgent
from tests.support.server_app import ServerApp
from vramscope_protocol.account import MemoryPart, ProcessMemory
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import ProtocolError
from vramscope_protocol.messages import (
    AgentStatus,
    CommandUpdate,
    DeviceInfo,
    Error,
    Event,
    Field,
    FieldTable,
    Goodbye,
    Lost,
    MapFrame,
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


def let_in(agent: ScriptedAgent) -> bool:
    """Connect; whether the server takes what it says of itself."""
    try:
        agent.open()
    except (WebSocketDisconnect, AssertionError):
        return False
    return True


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


def deep(levels: int) -> Any:
    """Lists in lists."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


ODD: dict[str, Callable[[], Any]] = {
    "numbers as names": lambda: {1: 2, "1": 3, False: 4},
    "nothing as a name": lambda: {None: 1},
    "lists as names": lambda: {(1, 2): 3},
    "bytes": lambda: {"a": b"\xff\x00", b"\xff": 1},
    "no numbers": lambda: {"a": math.nan, "b": -math.inf},
    "large numbers": lambda: {"a": 2**64 - 1, "b": -(2**63), "c": 1e308},
    "a time": lambda: {"a": datetime.fromtimestamp(0, timezone.utc)},
    "nested deeply": lambda: {"a": deep(400)},
    "nested very deeply": lambda: {"a": deep(200_000)},
    "many": lambda: {"a": [None] * 500_000},
}
"""Made when they are wanted: a search for holders in another test would go through them."""


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
