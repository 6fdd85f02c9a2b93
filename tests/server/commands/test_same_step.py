"""Four ranks as the server sees them, and every way in which one can be different."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

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
from vramscope_protocol.messages import Decision
from vramscope_server.registry.step_pace import RankPace
from vramscope_server.store import audit
from vramscope_server.store.store import Store


def test_all_ranks_get_ready_and_run_at_one_step(store: Store) -> None:
    async def scenario(world: World) -> None:
        record, step = await begin(world)
        assert step == 116, "10 steps a second from 101 on"
        assert shown(world)["state"] == "queued"
        for rank in (2, 0, 3):
            world.prepared("c1", rank, step)
        assert (shown(world)["state"], shown(world)["agreement"]["prepared"]) == ("prepared", 3)
        await asyncio.sleep(0.05)
        assert world.carrier.decisions == []
        world.prepared("c1", 1, step)
        assert await decided(world) == Decision("c1", step, run=True)
        assert [rank for rank, _decision in world.carrier.decisions] == [0, 1, 2, 3]
        assert shown(world)["agreement"]["decision"] == "run"
        for rank in RANKS:
            world.answer("c1", "running", rank)
            world.answer("c1", "done", rank, step=step)
        assert record.is_final

    world = play(store, scenario, connected=RANKS)
    stored = world.stored("c1")
    assert (stored["state"], stored["agreement"]["at_step"]) == ("done", 116)
    assert len(world.audience.events) == 1


def test_a_decision_is_committed_before_a_rank_hears_of_it(store: Store) -> None:
    seen: list[Any] = []

    async def scenario(world: World) -> None:
        send = world.carrier.send_decision

        def watch(run_id: str, rank: int, decision: Decision) -> bool:
            seen.append(world.stored("c1")["agreement"])
            return send(run_id, rank, decision)

        world.carrier.send_decision = watch  # type: ignore[method-assign]  # watched by the test
        _record, step = await begin(world)
        for rank in RANKS:
            world.prepared("c1", rank, step)
        await decided(world)

    play(store, scenario, connected=RANKS)
    assert [agreement["decision"] for agreement in seen] == ["run"] * 4


def test_a_rank_that_refuses_ends_it_for_all_with_its_reason(store: Store) -> None:
    async def scenario(world: World) -> None:
        _record, step = await begin(world, name="set_batch_size", params={"batch_size": 8})
        world.prepared("c1", 0, step)
        world.answer("c1", "refused", 2, message="the sampler has no size")
        decision = await decided(world)
        reason = "Rank 2 refused: the sampler has no size."
        assert decision == Decision("c1", step, run=False, reason=reason)
        for rank in (0, 1, 3):
            world.answer("c1", "refused", rank, message=f"{reason} Nothing was changed.")
        assert set(states(world).values()) == {"refused"}

    world = play(store, scenario, connected=RANKS)
    assert world.stored("c1")["agreement"]["decision"] == "drop"
    (event,) = world.audience.events
    assert event["text"] == (
        "set_batch_size refused on 4 ranks: Rank 2 refused: the sampler has no size. "
        "Nothing was changed."
    )


def test_a_step_that_is_over_is_tried_again_farther_ahead(store: Store) -> None:
    async def scenario(world: World) -> None:
        _record, first = await begin(world)
        world.prepared("c1", 0, first)
        world.step_over("c1", 2, first, reached=300)
        second = await asked(world, attempt=2)
        assert second > 300
        assert (shown(world)["state"], shown(world)["agreement"]["prepared"]) == ("queued", 0)
        again = [decision for _rank, decision in world.carrier.decisions]
        assert again == [Decision("c1", first, run=False, reason="again")] * 4
        # What was said of the first step comes late, and says nothing of the second.
        world.prepared("c1", 1, first)
        for rank in (0, 2, 3):
            world.prepared("c1", rank, second)
        world.step_over("c1", 3, first, reached=300)
        await asyncio.sleep(0.05)
        assert shown(world)["agreement"]["prepared"] == 3
        assert len(world.carrier.decisions) == 4
        world.prepared("c1", 1, second)
        assert await decided(world, count=8) == Decision("c1", second, run=True)

    world = play(store, scenario, connected=RANKS)
    assert world.stored("c1")["agreement"]["decision"] == "run"


def test_ranks_whose_pace_is_not_known_have_time_to_tell_it(store: Store) -> None:
    async def scenario(world: World) -> None:
        world.runs.pace = {}  # a server that has just been started
        _record, first = await begin(world)
        assert first == 3
        for rank in RANKS:
            world.step_over("c1", rank, first, reached=5000)
        await asyncio.sleep(0.05)
        assert len(world.carrier.sent) == 4
        world.runs.pace = dict.fromkeys(RANKS, RankPace(5001, 200.0, 0.0))
        assert await asked(world, attempt=2) == 5001 + 2 * 300

    play(store, scenario, connected=RANKS)


def test_a_step_that_is_always_over_is_given_up(store: Store) -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        for attempt in range(1, 5):
            step = await asked(world, attempt)
            for rank in (0, 1, 2):
                world.prepared("c1", rank, step)
            world.step_over("c1", 3, step, reached=step + 1)
        last = await world.until(
            lambda: [d for _rank, d in world.carrier.decisions if d.reason != "again"]
        )
        assert last[0].reason == "The step was over on some rank each of 4 times."
        assert len(world.carrier.decisions) == 4 * 4
        dropped(world, last[0])
        assert set(states(world).values()) == {"refused"}

    play(store, scenario, connected=RANKS)


def test_a_rank_that_says_nothing_in_time_is_not_waited_for(store: Store) -> None:
    async def scenario(world: World) -> None:
        _record, step = await begin(world)
        for rank in (0, 1, 3):
            world.prepared("c1", rank, step)
        decision = await decided(world)
        assert (decision.run, decision.reason) == (False, "Rank 2 did not get ready in time.")
        world.prepared("c1", 2, step)  # too late
        for rank in (0, 1, 3):
            world.answer("c1", "refused", rank, message=f"{decision.reason} Nothing was changed.")
        assert states(world) == {"0": "refused", "1": "refused", "2": "expired", "3": "refused"}
        assert messages(world) == {"Rank 2 did not get ready in time. Nothing was changed."}

    world = play(store, scenario, SOON, connected=RANKS)
    assert len(world.audience.events) == 1


def test_ranks_that_do_not_answer_a_drop_are_answered_for_and_may_still_do_so(
    store: Store,
) -> None:
    async def scenario(world: World) -> None:
        record, step = await begin(world)
        world.prepared("c1", 0, step)
        world.answer("c1", "refused", 3, message="no")
        await decided(world)
        await world.until(lambda: record.is_final)
        assert messages(world) == {"no", "Rank 3 refused: no. Nothing was changed."}
        # Cut off all the while: it hears of the decision, and says the same itself.
        world.carrier.decisions.clear()
        world.coordinator.rank_connected("r1", 0)
        world.coordinator.rank_connected("r1", 3)
        assert [rank for rank, _decision in world.carrier.decisions] == [0]
        world.answer("c1", "refused", 0, message="Rank 3 refused: no. Nothing was changed.")
        world.answer("c1", "expired", 1, message="Nobody said what to do. Nothing was changed.")
        assert states(world)["1"] == "expired"

    world = play(store, scenario, SOON, connected=RANKS)
    assert [event["data"]["state"] for event in world.audience.events] == ["refused", "expired"]


def test_a_rank_that_is_cut_off_is_asked_again_when_it_is_back(store: Store) -> None:
    async def scenario(world: World) -> None:
        _record, step = await begin(world)
        for rank in (1, 2, 3):
            world.prepared("c1", rank, step)
        world.carrier.connected.discard(0)
        world.coordinator.rank_disconnected("r1", 0)
        await asyncio.sleep(0.05)
        assert world.carrier.decisions == []
        world.carrier.connected.add(0)
        world.coordinator.rank_connected("r1", 0)
        rank, command = world.carrier.sent[-1]
        assert (rank, command.id, command.at_step) == (0, "c1", step)
        world.prepared("c1", 0, step)
        assert (await decided(world)).run

    play(store, scenario, connected=RANKS)


def test_a_rank_that_misses_the_decision_is_told_when_it_is_back(store: Store) -> None:
    async def scenario(world: World) -> None:
        _record, step = await begin(world)
        for rank in (0, 1, 2):
            world.prepared("c1", rank, step)
        world.carrier.connected.discard(3)
        world.prepared("c1", 3, step)  # its last word before the cut
        await decided(world, count=3)
        for rank in (0, 1, 2):
            world.answer("c1", "done", rank)
        world.carrier.connected.add(3)
        world.coordinator.rank_connected("r1", 3)
        world.coordinator.rank_connected("r1", 3)  # and cut once more
        assert world.carrier.decisions[3:] == [(3, Decision("c1", step, run=True))] * 2
        assert len(world.carrier.sent) == 4, "the command itself is not sent again"
        world.answer("c1", "done", 3)
        world.coordinator.rank_connected("r1", 3)
        assert len(world.carrier.decisions) == 5

    assert play(store, scenario, connected=RANKS).stored("c1")["state"] == "done"


def test_another_process_does_not_go_on_for_the_one_that_was_asked(store: Store) -> None:
    async def scenario(world: World) -> None:
        _record, step = await begin(world)
        for rank in (0, 1, 2):
            world.prepared("c1", rank, step)
        world.carrier.lives[3] = "restarted"
        world.coordinator.rank_connected("r1", 3)
        assert len(world.carrier.sent) == 4
        decision = await decided(world)
        assert decision.reason == "Rank 3 was started again."

    play(store, scenario, connected=RANKS)


def test_a_rank_that_was_started_again_after_the_decision_cannot_say_what_happened(
    store: Store,
) -> None:
    async def scenario(world: World) -> None:
        _record, step = await begin(world)
        for rank in RANKS:
            world.prepared("c1", rank, step)
        await decided(world)
        for rank in (0, 1, 2):
            world.answer("c1", "done", rank)
        world.carrier.lives[3] = "restarted"
        world.coordinator.rank_connected("r1", 3)
        assert len(world.carrier.decisions) == 4
        assert states(world)["3"] == "failed"
        assert shown(world)["receipts"]["3"]["message"] == (
            "Rank 3 was started again, and has not answered. "
            "It is not known whether the command ran."
        )
        # What the old process had left is delivered in the end.
        world.answer("c1", "done", 3)
        assert shown(world)["state"] == "done"

    play(store, scenario, connected=RANKS)


@pytest.mark.parametrize(("state", "words"), [("ended", "has ended"), ("lost", "is lost")])
def test_a_rank_that_is_gone_ends_it(store: Store, state: str, words: str) -> None:
    async def scenario(world: World) -> None:
        _record, step = await begin(world)
        for rank in (0, 1, 2):
            world.prepared("c1", rank, step)
        world.runs.rank_states[3] = state
        world.carrier.connected.discard(3)
        world.coordinator.rank_disconnected("r1", 3)
        decision = await decided(world, count=3)
        assert (decision.run, decision.reason) == (False, f"Rank 3 {words}.")

    play(store, scenario, connected=RANKS)


def test_a_rank_that_ended_before_it_was_asked_keeps_the_others_from_it(store: Store) -> None:
    async def scenario(world: World) -> None:
        world.runs.rank_states[2] = "ended"
        record = await world.submit(id="c1", name="empty_cache", ranks="all")
        await world.until(lambda: record.is_final)
        assert world.carrier.sent == []
        assert messages(world) == {"Rank 2 has ended. Nothing was changed."}
        assert shown(world)["state"] == "refused"

    play(store, scenario, connected=RANKS)


def test_ranks_that_are_away_are_waited_for_until_the_deadline(store: Store) -> None:
    async def scenario(world: World) -> None:
        world.carrier.connected.discard(1)
        record = await world.submit(id="c1", name="empty_cache", ranks="all")
        await asyncio.sleep(0.05)
        assert world.carrier.sent == []
        world.carrier.connected.add(1)
        world.coordinator.rank_connected("r1", 1)
        await asked(world)
        world.carrier.connected.discard(3)
        late = await world.submit(id="c2", name="empty_cache", ranks="all", deadline_s=0.05)
        await world.until(lambda: late.is_final)
        assert messages(world) == {
            "empty_cache was still under way after 0 s. Nothing was changed."
        }
        assert not record.is_final
        world.answer("c1", "refused", 0, message="no")
        await decided(world, count=3)
        late = await world.submit(id="c3", name="empty_cache", ranks="all", deadline_s=0.05)
        await world.until(lambda: late.is_final)
        assert messages(world) == {"Rank 3 could not be asked within 0 s. Nothing was changed."}
        assert shown(world)["state"] == "expired"

    play(store, scenario, connected=RANKS)


def test_an_agent_that_turns_out_to_be_older_ends_it(store: Store) -> None:
    async def scenario(world: World) -> None:
        world.carrier.connected.discard(1)
        record = await world.submit(id="c1", name="empty_cache", ranks="all")
        assert record.agreement is not None
        world.carrier.connected.add(1)
        world.carrier.older.add(1)
        world.coordinator.rank_connected("r1", 1)
        await world.until(lambda: record.is_final)
        assert world.carrier.sent == []
        assert "vramscope is older there" in next(iter(messages(world)))

    play(store, scenario, connected=RANKS)


def test_commands_of_a_run_wait_for_one_another(store: Store) -> None:
    async def scenario(world: World) -> None:
        _record, step = await begin(world, name="pause")
        await world.submit(id="c2", name="stop", ranks="all")
        for rank in RANKS:
            world.prepared("c1", rank, step)
        await decided(world)
        for rank in RANKS:
            assert len(world.carrier.sent) == 4
            world.answer("c1", "running", rank)  # all ranks stand still now
        step = await asked(world, attempt=2)
        assert world.carrier.sent[-1][1].id == "c2"
        for rank in RANKS:
            world.prepared("c2", rank, step)
        assert (await decided(world, count=8)).id == "c2"

    play(store, scenario, connected=RANKS)


def test_the_same_id_posted_again_asks_nobody_again(store: Store) -> None:
    async def scenario(world: World) -> None:
        record, step = await begin(world)
        again = await asyncio.gather(
            *(world.submit(id="c1", name="empty_cache", ranks="all") for _ in range(3))
        )
        assert all(each is record for each in again)
        for rank in RANKS:
            world.prepared("c1", rank, step)
            world.prepared("c1", rank, step)
        await decided(world)
        await world.submit(id="c1", name="empty_cache", ranks="all")
        for rank in RANKS:
            world.answer("c1", "done", rank)
        assert (await world.submit(id="c1", name="empty_cache", ranks="all")).state == "done"
        assert (len(world.carrier.sent), len(world.carrier.decisions)) == (4, 4)

    world = play(store, scenario, connected=RANKS)
    assert len(store.read_now(audit.list_audit)) == 1
    assert len(world.audience.events) == 1
