"""A coordinator with everything around it, for scenarios that are played on an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.server_commands import (
    OWNER,
    FakeAudience,
    FakeCarrier,
    FakeRuns,
    update,
)
from vramscope_protocol.commands import Receipt
from vramscope_protocol.messages import CommandUpdate
from vramscope_server.commands.coordinator import Coordinator
from vramscope_server.commands.record import CommandRecord
from vramscope_server.commands.request import CommandRequest
from vramscope_server.settings import Limits
from vramscope_server.store import command_log
from vramscope_server.store.store import Store


class World:
    """A coordinator with everything around it."""

    def __init__(
        self,
        store: Store,
        limits: Limits,
        connected: tuple[int, ...] = (0, 1),
        ranks: int | None = None,
    ) -> None:
        self.store = store
        self.runs = FakeRuns(ranks or max(2, len(connected)))
        self.carrier = FakeCarrier(*connected)
        self.audience = FakeAudience()
        self.coordinator = Coordinator(store, self.runs, self.carrier, self.audience, limits)

    async def submit(self, **request: Any) -> CommandRecord:
        """Post a command as the owner; by default one of rank 0 alone."""
        values: dict[str, Any] = {"name": "gc_collect", "ranks": [0]}
        return await self.coordinator.submit("train", CommandRequest(**(values | request)), OWNER)

    def answer(self, record_id: str, state: Any, rank: int = 0, **receipt: Any) -> None:
        """A rank says something; final states with a receipt."""
        item = update(record_id, state, time_ns=time.time_ns(), **receipt)
        self.coordinator.command_update("r1", rank, item)

    def prepared(self, record_id: str, rank: int, at_step: int) -> None:
        """A rank is ready for a step."""
        item = CommandUpdate(1, record_id, "prepared", time.time_ns(), at_step=at_step)
        self.coordinator.command_update("r1", rank, item)

    def step_over(self, record_id: str, rank: int, at_step: int, reached: int) -> None:
        """A rank is beyond a step."""
        receipt = Receipt("refused", step=reached, message=f"step {at_step} is over")
        item = CommandUpdate(1, record_id, "refused", time.time_ns(), receipt, at_step=at_step)
        self.coordinator.command_update("r1", rank, item)

    async def until(self, probe: Callable[[], Any]) -> Any:
        """Let the loop run until the probe is true."""
        deadline_s = asyncio.get_running_loop().time() + 10
        while not (result := probe()):
            assert asyncio.get_running_loop().time() < deadline_s, f"last: {result!r}"
            await asyncio.sleep(0.005)
        return result

    def store_receipt(self, item: CommandUpdate) -> None:
        """Do what ingest does with the receipt of rank 0."""
        self.store.write_now(lambda c: command_log.set_receipt(c, "r1", 0, item))

    def stored(self, command_id: str) -> dict[str, Any]:
        """A command as the store has it."""
        found = self.store.read_now(lambda c: command_log.get_command(c, command_id))
        assert found is not None
        return found


def play(
    store: Store,
    scenario: Callable[[World], Awaitable[None]],
    limits: Limits | None = None,
    connected: tuple[int, ...] = (0, 1),
    ranks: int | None = None,
) -> World:
    """Run a scenario in a started world; the world, stopped."""
    world = World(store, limits or Limits(), connected, ranks)

    async def main() -> None:
        await world.coordinator.start()
        try:
            await scenario(world)
        finally:
            await world.coordinator.stop()

    asyncio.run(main())
    return world
