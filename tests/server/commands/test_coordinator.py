from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.support.command_world import World, play
from tests.support.server_commands import OWNER, update
from vramscope_protocol.errors import CONFLICT, INTERNAL, NOT_FOUND, RATE_LIMITED, VramscopeError
from vramscope_server.commands.request import CommandRequest
from vramscope_server.settings import Limits
from vramscope_server.store import audit, command_log, events
from vramscope_server.store.database import StoreError
from vramscope_server.store.store import Store


def test_a_command_is_stored_before_any_rank_hears_of_it(store: Store) -> None:
    seen: list[str] = []

    async def scenario(world: World) -> None:
        original = world.carrier.send_command

        def send(run_id: str, rank: int, command: Any) -> bool:
            seen.append(world.stored(command.id)["state"])
            seen.append(world.store.read_now(audit.list_audit)[0]["result"])
            return original(run_id, rank, command)

        world.carrier.send_command = send  # type: ignore[method-assign]  # watched by the test
        await world.submit(id="c1")

    play(store, scenario)
    assert seen == ["queued", "accepted"]


def test_what_cannot_be_stored_is_not_sent(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        async def refuse(_function: Any) -> Any:
            raise StoreError("disk full")

        monkeypatch.setattr(store, "write", refuse)
        with pytest.raises(VramscopeError) as refused:
            await world.submit(id="c1")
        assert refused.value.code == INTERNAL
        monkeypatch.undo()
        assert world.carrier.sent == []
        # The id was not used up.
        await world.submit(id="c1")
        assert len(world.carrier.sent) == 1

    play(store, scenario)


def test_the_same_request_posted_twice_at_once_is_sent_once(store: Store) -> None:
    async def scenario(world: World) -> None:
        records = await asyncio.gather(*(world.submit(id="c1") for _ in range(5)))
        assert {record.id for record in records} == {"c1"}
        assert len(world.carrier.sent) == 1

    play(store, scenario)


def test_two_servers_on_one_database_do_not_both_run_an_id(store: Store) -> None:
    async def scenario(world: World) -> None:
        await world.submit(id="c1")
        other = World(store, Limits())
        await other.coordinator.start()
        await other.submit(id="c1")
        assert other.carrier.sent == []
        with pytest.raises(VramscopeError) as refused:
            await other.submit(id="c1", name="stats")
        assert refused.value.code == CONFLICT
        await other.coordinator.stop()

    play(store, scenario)


def test_answers_are_told_and_stored_and_end_up_on_the_timeline(store: Store) -> None:
    async def scenario(world: World) -> None:
        await world.submit(id="c1", name="empty_cache", ranks="all")
        world.answer("c1", "running")
        world.answer("c1", "done", returned_bytes=1 << 30)
        world.answer("c1", "done", rank=1, returned_bytes=1 << 30)
        assert [c["state"] for c in world.audience.commands] == [
            "queued",
            "running",
            "queued",
            "done",
        ]

    world = play(store, scenario)
    (event,) = world.audience.events
    assert event["text"] == "empty_cache returned 2.0 GiB on 2 ranks"
    assert world.stored("c1")["state"] == "done"
    assert store.read_now(lambda c: events.list_events(c, "r1")) == [event]
    (row,) = store.read_now(audit.list_audit)
    assert row["result"] == "done: empty_cache returned 2.0 GiB on 2 ranks"


def test_an_unanswered_command_expires_and_a_late_answer_still_counts(store: Store) -> None:
    async def scenario(world: World) -> None:
        await world.submit(id="c1", deadline_s=0.01)
        await world.until(lambda: world.audience.commands[-1]["state"] == "expired")
        await world.until(lambda: world.stored("c1")["receipts"])
        world.answer("c1", "done", step=9)
        assert world.audience.commands[-1]["state"] == "done"

    world = play(store, scenario, Limits(command_grace_s=0.01))
    stored = world.stored("c1")
    assert (stored["state"], stored["receipts"]["0"]["state"]) == ("done", "done")
    assert stored["receipts"]["0"]["step"] == 9
    assert [event["data"]["state"] for event in world.audience.events] == ["expired", "done"]
    assert store.read_now(audit.list_audit)[0]["result"].startswith("done")


def test_a_rank_that_connects_gets_what_waits_and_only_that(store: Store) -> None:
    async def scenario(world: World) -> None:
        await world.submit(id="c1", ranks="all")
        assert world.carrier.sent == []
        world.carrier.connected.add(1)
        world.coordinator.rank_connected("r1", 1)
        world.coordinator.rank_connected("another run", 1)
        assert [(rank, command.id) for rank, command in world.carrier.sent] == [(1, "c1")]
        world.answer("c1", "done", rank=1)
        world.coordinator.rank_connected("r1", 1)
        assert len(world.carrier.sent) == 1

    play(store, scenario, connected=())


def test_a_rank_that_says_goodbye_is_not_waited_for(store: Store) -> None:
    async def scenario(world: World) -> None:
        await world.submit(id="c1", ranks="all")
        world.coordinator.rank_disconnected("r1", 0)
        assert world.audience.commands[-1]["receipts"] == {}, "it may come back"
        world.runs.rank_states[0] = "ended"
        world.coordinator.rank_disconnected("r1", 0)
        world.coordinator.rank_disconnected("unknown", 0)
        receipt = world.audience.commands[-1]["receipts"]["0"]
        assert receipt["state"] == "refused"
        assert receipt["message"] == "Rank 0 has ended. Nothing was changed."
        world.answer("c1", "done", rank=1)

    assert play(store, scenario).stored("c1")["state"] == "refused"


def test_open_commands_are_taken_up_after_a_restart(store: Store) -> None:
    async def before(world: World) -> None:
        await world.submit(id="answered-meanwhile")
        await world.submit(id="waits", deadline_s=60)
        await world.submit(id="overdue", deadline_s=0.001)

    play(store, before)
    # While the server was away the writer had still stored an answer.
    done = update("answered-meanwhile", "done", time_ns=time.time_ns())
    World(store, Limits()).store_receipt(done)

    async def after(world: World) -> None:
        await world.until(
            lambda: (
                {c["id"]: c["state"] for c in world.audience.commands}
                == {"answered-meanwhile": "done", "overdue": "expired"}
            )
        )
        world.coordinator.rank_connected("r1", 0)
        assert [command.id for _rank, command in world.carrier.sent] == ["waits"]
        world.answer("waits", "done")

    world = play(store, after, Limits(command_restart_s=0.05, command_grace_s=0.05))
    states = {
        c["id"]: c["state"] for c in store.read_now(lambda c: command_log.list_commands(c, "r1"))
    }
    assert states == {"answered-meanwhile": "done", "overdue": "expired", "waits": "done"}
    assert len(world.audience.events) == 3
    # Whether it was sent before the restart is not known, and the receipt does not claim to.
    assert "not known whether" in world.stored("overdue")["receipts"]["0"]["message"]


def test_commands_of_another_server_of_the_same_file_are_left_to_it(store: Store) -> None:
    async def theirs(world: World) -> None:
        await world.submit(id="theirs")

    play(store, theirs)
    store.is_sole = False

    async def ours(world: World) -> None:
        await world.submit(id="ours")
        world.coordinator.rank_connected("r1", 0)

    world = play(store, ours)
    assert {command.id for _rank, command in world.carrier.sent} == {"ours"}
    assert world.stored("theirs")["state"] == "queued"


def test_too_many_open_commands(store: Store) -> None:
    async def scenario(world: World) -> None:
        await world.submit()
        with pytest.raises(VramscopeError) as refused:
            await world.submit()
        assert refused.value.code == RATE_LIMITED

    play(store, scenario, Limits(command_open=1))


def test_an_unknown_run_and_an_ended_one(store: Store) -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(VramscopeError) as unknown:
            await world.coordinator.submit("nope", CommandRequest("stats"), OWNER)
        assert unknown.value.code == NOT_FOUND
        world.runs.state = "ended"
        with pytest.raises(VramscopeError, match="'train' has ended") as ended:
            await world.submit()
        assert ended.value.code == CONFLICT

    play(store, scenario)


def test_an_answer_that_nobody_waits_for_is_passed_over(store: Store) -> None:
    async def scenario(world: World) -> None:
        await world.submit(id="c1")
        world.answer("never-heard-of", "done")
        world.coordinator.command_update("another run", 0, update("c1", "done"))
        world.answer("c1", "done", rank=7)
        assert world.audience.commands[-1]["state"] == "queued"

    play(store, scenario)


def test_finished_commands_are_found_in_memory_and_beyond_it(store: Store) -> None:
    async def scenario(world: World) -> None:
        for number in range(3):
            await world.submit(id=f"c{number}")
            world.answer(f"c{number}", "done")
            # What ingest does with the receipt of an agent.
            world.store_receipt(update(f"c{number}", "done"))
        for number in range(3):
            found = await world.coordinator.find("train", f"c{number}")
            assert found["state"] == "done"
        listed = await world.coordinator.list("r1", 10)
        assert sorted(command["id"] for command in listed) == ["c0", "c1", "c2"]
        with pytest.raises(VramscopeError) as refused:
            await world.coordinator.find("train", "c9")
        assert refused.value.code == NOT_FOUND

    play(store, scenario, Limits(command_recent=1))
