"""When one rank runs out of memory the others are asked, but not again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.support.server_app import ServerApp
from vramscope_protocol.errors import CONFLICT, VramscopeError
from vramscope_server.commands.request import CommandRequest, Issuer
from vramscope_server.ooms.other_ranks import COMMAND, OtherRanks


class Coordinator:
    """Takes commands."""

    def __init__(self, error: VramscopeError | None = None) -> None:
        self.error = error
        self.requests: list[CommandRequest] = []
        self.issuers: list[Issuer] = []

    async def submit(self, run: str, request: CommandRequest, issuer: Issuer) -> Any:
        if self.error is not None:
            raise self.error
        self.requests.append(request)
        self.issuers.append(issuer)


class Registry:
    """One run with four ranks: one is gone, one cannot answer."""

    def run(self, run_id: str) -> dict[str, Any] | None:
        if run_id != "r":
            return None
        return {
            "ranks": [
                {"rank": 0, "connected": True, "commands": [COMMAND]},
                {"rank": 1, "connected": True, "commands": [COMMAND]},
                {"rank": 2, "connected": False, "commands": [COMMAND]},
                {"rank": 3, "connected": True, "commands": ["stats"]},
                {"rank": 4, "connected": True, "commands": [COMMAND]},
            ]
        }


def event(kind: str = "oom", rank: int = 1, **data: Any) -> dict[str, Any]:
    told = {"report": "o1", "source": "observer", **data}
    return {"kind": kind, "rank": rank, "step": 7, "data": told}


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


async def settle(others: OtherRanks) -> None:
    while tasks := others.__dict__["_tasks"]:
        await asyncio.wait(set(tasks))


def test_those_that_can_answer_are_asked_once_for_a_while() -> None:
    async def test() -> None:
        coordinator, now = Coordinator(), [100.0]
        others = OtherRanks(coordinator, Registry(), lambda: now[0])
        for _ in range(50):
            others.take_event("r", event())
        await settle(others)
        (request,) = coordinator.requests
        assert (request.name, request.ranks) == (COMMAND, [0, 4])
        assert request.params == {"linked_to": "o1"}
        assert coordinator.issuers[0].principal.scopes == {"view"}
        now[0] += 61
        others.take_event("r", event())
        now[0] += 61
        others.take_event("r", event())
        await settle(others)
        assert len(coordinator.requests) == 2

    run(test())


@pytest.mark.parametrize(
    "told",
    [
        event("oom_recovered"),
        event(source="asked"),
        event(source="counter"),
        event(report=None),
        event(report="x" * 200),
    ],
)
def test_nothing_else_makes_it_ask(told: dict[str, Any]) -> None:
    async def test() -> None:
        coordinator = Coordinator()
        others = OtherRanks(coordinator, Registry())
        others.take_event("r", told)
        others.take_event("unknown run", event())
        await settle(others)
        assert coordinator.requests == []

    run(test())


def test_a_refusal_is_no_trouble(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        others = OtherRanks(Coordinator(VramscopeError(CONFLICT, "the run has ended")), Registry())
        others.take_event("r", event())
        await settle(others)

    run(test())
    assert "cannot be asked" in caplog.text


def test_a_rank_gets_the_command_and_the_audit_log_a_line(server: ServerApp) -> None:
    asked = server.agent(rank=1)
    asked.rank.commands.append(COMMAND)
    with server.agent() as agent, asked:
        agent.event("oom", report="o1", source="observer")
        command = asked.wait_command()
        assert (command.name, command.params) == (COMMAND, {"linked_to": "o1"})
        assert command.issued_by == "vramscope"
        (line,) = server.get("/api/v1/audit")["audit"]
        assert (line["who"], line["name"], line["ranks"]) == ("vramscope", COMMAND, [1])
