"""A status that says nothing new is sent now and then, and one that does at once."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from vramscope.transport.status_news import QUIET_INTERVAL_S, StatusNews
from vramscope_protocol.account import AgentAccount, MemoryPart, ProcessMemory
from vramscope_protocol.messages import AgentStatus


def status(second: int = 0, **changes: Any) -> AgentStatus:
    """As an agent that is well tells it; what it counts goes on."""
    account = AgentAccount(
        elapsed_us=second * 1_000_000,
        cpu_us={"sampler": 900 * second},
        turns=10 * second,
        samples=10 * second,
        wanted_rate_hz=10.0,
        budget_fraction=0.005,
    )
    told = AgentStatus(rate_hz=10.0, cost_fraction=0.001 + 1e-6 * second, account=account)
    return replace(told, **changes)


def sent(news: StatusNews, statuses: list[AgentStatus]) -> list[int]:
    """At which seconds one of these, one a second, is sent."""
    return [second for second, each in enumerate(statuses) if news.is_news(each, float(second))]


def test_while_all_is_well_one_is_sent_every_five_seconds() -> None:
    seconds = sent(StatusNews(), [status(second) for second in range(21)])
    assert seconds == [0, 5, 10, 15, 20]
    assert seconds[1] == QUIET_INTERVAL_S


@pytest.mark.parametrize(
    "changes",
    [
        {"notes": ["NVML not found"]},
        {"guard_errors": 1},
        {"processes": [ProcessMemory(7, "python", 5 << 20)]},
        {"outside": [MemoryPart("NCCL", 1 << 20, "came with it")]},
        {"account": AgentAccount(wanted_rate_hz=10.0, lost={"outbox_full": 1})},
        {"account": AgentAccount(wanted_rate_hz=10.0, errors={"sample": 1})},
    ],
)
def test_what_changes_is_sent_at_once(changes: dict[str, Any]) -> None:
    later = [status(second, **changes) for second in range(2, 4)]
    assert sent(StatusNews(), [status(0), status(1), *later]) == [0, 2]


@pytest.mark.parametrize(
    "trouble", [{"rate_hz": 4.0}, {"spool_bytes": 9}, {"outbox_bytes": 9 << 20}]
)
def test_while_something_is_wrong_every_one_is_sent(trouble: dict[str, Any]) -> None:
    assert sent(StatusNews(), [status(second, **trouble) for second in range(4)]) == [0, 1, 2, 3]


def test_a_new_connection_is_told_at_once() -> None:
    assert StatusNews().is_news(status(8), 1000.0)
