from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.streams import START_NS, open_store, registration
from vramscope_protocol.errors import ProtocolError
from vramscope_server.registry import persistence
from vramscope_server.registry.registry import Registry


def new_registry() -> Registry:
    return Registry(lambda: START_NS, 300.0, "host-a", lambda pid: True)


def test_what_registers_is_there_after_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        store = open_store(tmp_path)
        first = new_registry()
        for rank in (0, 1):
            message = registration(f"stream-{rank}", rank=rank)
            stream = await persistence.register(store, first, message, START_NS)
            assert stream.last_seq == 0
        second = new_registry()
        await persistence.load(store, second)
        for registry in (first, second):
            run = registry.run("run-a")
            assert run is not None
            assert [rank["stream"] for rank in run["ranks"]] == ["stream-0", "stream-1"]
            assert run["started_ns"] == START_NS
        store.close()

    asyncio.run(test())


def test_a_registration_that_is_refused_leaves_the_registry_alone(tmp_path: Path) -> None:
    async def test() -> None:
        store = open_store(tmp_path)
        registry = new_registry()
        await persistence.register(store, registry, registration(), START_NS)
        with pytest.raises(ProtocolError):
            await persistence.register(store, registry, registration(rank=1), START_NS)
        assert registry.all_ranks("run-a") == [0]
        store.close()

    asyncio.run(test())
