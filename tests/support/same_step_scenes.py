"""Steps of scenarios in which four ranks run a command at the same step."""

from __future__ import annotations

from typing import Any

from tests.support.command_world import World
from vramscope_protocol.messages import Decision
from vramscope_server.commands.record import CommandRecord
from vramscope_server.settings import Limits

RANKS = (0, 1, 2, 3)
SOON = Limits(command_prepare_s=0.2, command_grace_s=0.1, command_restart_s=0.1)


def shown(world: World) -> dict[str, Any]:
    """The command as browsers were told last."""
    return world.audience.commands[-1]


def states(world: World) -> dict[str, str]:
    """Where each rank is by now."""
    return {rank: receipt["state"] for rank, receipt in shown(world)["receipts"].items()}


def messages(world: World) -> set[str]:
    """What the receipts say."""
    return {receipt["message"] for receipt in shown(world)["receipts"].values()}


async def asked(world: World, attempt: int = 1, ranks: int = 4) -> int:
    """Wait until all ranks are asked for the so many-th time; the step."""
    await world.until(lambda: len(world.carrier.sent) >= attempt * ranks)
    (step,) = {command.at_step for _rank, command in world.carrier.sent[-ranks:]}
    assert step is not None
    return step


async def decided(world: World, count: int = 4) -> Decision:
    """Wait for so many decisions; the last one."""
    await world.until(lambda: len(world.carrier.decisions) >= count)
    return world.carrier.decisions[-1][1]


async def begin(world: World, **request: Any) -> tuple[CommandRecord, int]:
    """Post one for all ranks, and wait until they are asked; the step."""
    values: dict[str, Any] = {"id": "c1", "name": "empty_cache", "ranks": "all"}
    record = await world.submit(**(values | request))
    return record, await asked(world)


def dropped(world: World, decision: Decision) -> None:
    """Do what ranks do that are told so."""
    for rank, _decision in world.carrier.decisions[-4:]:
        text = f"{decision.reason} Nothing was changed."
        world.answer(decision.id, "refused", rank, message=text)
