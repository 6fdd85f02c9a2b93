"""The server between asking and deciding: its store is away, it is stopped, it is killed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import Connection, update

from tests.support.command_world import World, play
from tests.support.same_step_scenes import (
    RANKS,
    SOON,
    asked,
    begin,
    decided,
    dropped,
    messages,
    shown,
    states,
)
from vramscope_protocol.messages import Command, Decision
from vramscope_server.commands import same_step as same_step_module
from vramscope_server.settings import Limits
from vramscope_server.store import tables
from vramscope_server.store.database import StoreError
from vramscope_server.store.store import Store


def test_a_store_that_is_away_for_a_moment_does_not_lose_the_decision(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_step_module, "_RETRY_S", 0.01)

    async def scenario(world: World) -> None:
        _record, step = await begin(world)
        original, failures = store.write, [3]

        async def flaky(function: Any) -> Any:
            if failures[0] > 0:
                failures[0] -= 1
                raise StoreError("disk full")
            return await original(function)

        monkeypatch.setattr(store, "write", flaky)
        for rank in RANKS:
            world.prepared("c1", rank, step)
        assert (await decided(world)).run
        assert failures == [0]

    play(store, scenario, connected=RANKS)


def test_what_cannot_be_stored_in_time_is_dropped(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_step_module, "_RETRY_S", 0.01)

    async def scenario(world: World) -> None:
        _record, step = await begin(world)
        original, is_away = store.write, True

        async def away(function: Any) -> Any:
            if is_away:
                raise StoreError("disk full")
            return await original(function)

        monkeypatch.setattr(store, "write", away)
        for rank in RANKS:
            world.prepared("c1", rank, step)
        await asyncio.sleep(0.3)
        assert world.carrier.decisions == []
        is_away = False
        decision = await decided(world)
        assert (decision.run, decision.reason) == (
            False,
            "It could not be stored in time that it is to be run.",
        )

    play(store, scenario, SOON, connected=RANKS)


def test_a_mistake_with_one_command_does_not_keep_the_next_waiting(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        send = world.carrier.send_command

        def fail(run_id: str, rank: int, command: Command) -> bool:
            raise RuntimeError("a mistake")

        world.carrier.send_command = fail  # type: ignore[method-assign]  # what no test foresaw
        first = await world.submit(id="c1", name="empty_cache", ranks="all", deadline_s=0.3)
        await world.until(lambda: "c1 was given up" in caplog.text)
        world.carrier.send_command = send  # type: ignore[method-assign]  # as it was
        await world.submit(id="c2", name="empty_cache", ranks="all")
        await asked(world)
        assert world.carrier.sent[-1][1].id == "c2"
        await world.until(lambda: first.state == "expired")

    limits = Limits(command_prepare_s=0.1, command_hold_s=0.1, command_grace_s=0.1)
    play(store, scenario, limits, connected=RANKS)


def test_a_server_that_is_stopped_lets_no_rank_wait(store: Store) -> None:
    async def scenario(world: World) -> None:
        _record, step = await begin(world)
        world.prepared("c1", 0, step)
        await world.submit(id="c2", name="empty_cache", ranks="all")  # nobody was asked

    world = play(store, scenario, connected=RANKS)
    reason = "The server was stopped before it was decided."
    step = world.carrier.decisions[0][1].at_step
    assert world.carrier.decisions == [
        (rank, Decision("c1", step, run=False, reason=reason)) for rank in RANKS
    ]
    assert world.stored("c1")["agreement"]["decision"] == "drop"
    # The other one is asked for by the next server.
    after = play(store, asked_of_next_server, connected=RANKS)
    assert {command.id for _rank, command in after.carrier.sent} == {"c2"}


def test_what_no_rank_was_asked_for_is_over_at_once_when_one_of_them_ends(store: Store) -> None:
    async def before(world: World) -> None:
        await world.submit(id="c1", name="empty_cache", ranks="all")

    play(store, before, connected=(0, 1, 2), ranks=4)

    async def after(world: World) -> None:
        world.runs.rank_states[3] = "ended"
        world.coordinator.rank_disconnected("r1", 3)
        await world.until(lambda: world.stored("c1")["state"] == "refused")
        assert messages(world) == {"Rank 3 has ended. Nothing was changed."}

    world = play(store, after, Limits(command_grace_s=3600), connected=(0, 1, 2), ranks=4)
    assert world.carrier.sent == []


async def asked_of_next_server(world: World) -> None:
    await asked(world)


def kill(store: Store, *, at: str) -> int:
    """Let a server die with everything it had in memory; the step that it had asked for."""
    steps: list[int] = []

    async def main() -> None:
        world = World(store, Limits(), RANKS)
        await world.coordinator.start()
        _record, step = await begin(world)
        steps.append(step)
        if at == "stored":
            world.carrier.connected.clear()  # the decision reaches nobody
        for rank in RANKS if at == "stored" else (0, 1, 2):
            world.prepared("c1", rank, step)
        if at == "stored":
            await world.until(lambda: world.stored("c1")["agreement"]["decision"])
        # No stop(): the loop ends under it.

    asyncio.run(main())
    return steps[0]


def test_a_server_killed_before_the_decision_drops_it_when_it_is_back(store: Store) -> None:
    step = kill(store, at="prepared")

    async def scenario(world: World) -> None:
        await world.until(lambda: world.audience.commands)
        assert shown(world)["agreement"]["decision"] == "drop"
        for rank in RANKS:
            world.carrier.connected.add(rank)
            world.coordinator.rank_connected("r1", rank)
        assert world.carrier.sent == []
        reason = "The server was started again before it was decided."
        drop = Decision("c1", step, run=False, reason=reason)
        assert world.carrier.decisions == [(rank, drop) for rank in RANKS]
        world.prepared("c1", 3, step)  # sent again with what it had not delivered
        dropped(world, drop)
        assert shown(world)["state"] == "refused"

    world = play(store, scenario, connected=(), ranks=4)
    assert len(world.audience.events) == 1


def test_a_server_killed_after_the_decision_sends_it_on_when_it_is_back(store: Store) -> None:
    step = kill(store, at="stored")

    async def scenario(world: World) -> None:
        # Asked for meanwhile: it has to wait for the one that is under way.
        await world.submit(id="c2", name="empty_cache", ranks="all")
        for rank in RANKS:
            world.carrier.connected.add(rank)
            world.coordinator.rank_connected("r1", rank)
        run = Decision("c1", step, run=True)
        assert world.carrier.decisions == [(rank, run) for rank in RANKS]
        await asyncio.sleep(0.05)
        assert world.carrier.sent == []
        for rank in RANKS:
            world.answer("c1", "done", rank)
        await asked(world)
        assert {command.id for _rank, command in world.carrier.sent} == {"c2"}

    world = play(store, scenario, connected=(), ranks=4)
    assert world.stored("c1")["state"] == "done"


def test_ranks_that_stay_away_after_a_restart_are_given_up(store: Store) -> None:
    kill(store, at="stored")

    async def scenario(world: World) -> None:
        await world.until(lambda: world.audience.commands)
        assert set(states(world).values()) == {"expired"}
        assert "not known whether" in next(iter(messages(world)))

    limits = Limits(command_restart_s=0.05, command_grace_s=0.05, command_run_s=0.05)
    store.write_now(_due_now)
    play(store, scenario, limits, connected=(), ranks=4)


def _due_now(connection: Connection) -> None:
    connection.execute(update(tables.commands).values(deadline_ns=1, decided_ns=1))
