"""A status carries the agent's own account, and an older one comes without."""

from __future__ import annotations

import msgspec

from vramscope_protocol.account import AgentAccount, MemoryPart, ProcessMemory
from vramscope_protocol.messages import AgentStatus


def test_a_status_carries_account_processes_and_named_parts() -> None:
    status = AgentStatus(
        10.0,
        0.002,
        account=AgentAccount(cpu_us={"sampler": 1500}, gil_us=400, lost={"spool_full": 2}),
        processes=[ProcessMemory(7, "python"), ProcessMemory(8, bytes=1 << 30)],
        outside=[MemoryPart("CUDA context", 300 << 20, "measured")],
    )
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(status), type=AgentStatus) == status


def test_what_is_not_known_is_not_zero() -> None:
    assert AgentAccount().gil_us is None
    assert ProcessMemory(7).bytes is None


def test_an_older_agent_says_nothing_of_them() -> None:
    old = msgspec.msgpack.encode({"type": "agent_status", "rate_hz": 1.0, "cost_fraction": 0.0})
    status = msgspec.msgpack.decode(old, type=AgentStatus)
    assert status.account is None
    assert not status.processes
    assert not status.outside
