"""A policy acts when its condition has held for long enough, and not more often than it may."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.made_policies import WHEN, finding_record
from tests.support.policy_rig import ME, PolicyRig, with_rig
from tests.support.server_rows import make_rows
from vramscope_protocol.errors import VramscopeError

ALL = ("empty_cache", [0, 1], False)


def test_when_it_has_held_for_so_long_then_and_not_more_often(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy(hold={"seconds": 5}, every_s=20)
        await rig.seconds(5)
        assert rig.asked == []  # the first value is four seconds old
        await rig.seconds(1)
        assert rig.asked == [ALL]
        await rig.answer()
        await rig.seconds(19)
        assert rig.asked == [ALL]
        await rig.seconds(1)
        assert rig.asked == [ALL, ALL]

    with_rig(tmp_path, act)


def test_a_value_that_is_back_in_time_is_no_reason(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy(hold={"seconds": 5})
        for _ in range(4):
            await rig.seconds(5)
            await rig.seconds(1, gib=1)
        assert rig.asked == []

    with_rig(tmp_path, act)


def test_so_many_steps(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy(hold={"steps": 4})
        await rig.seconds(3)
        assert rig.asked == []
        await rig.seconds(1)
        assert rig.asked == [ALL]

    with_rig(tmp_path, act)


def test_only_on_the_ranks_that_it_holds_on(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy(then={"command": "gc_collect", "ranks": "matching"})
        for _ in range(3):
            rig.second(ranks=(0,), gib=1)
            rig.now_s -= 1
            rig.second(ranks=(1,))
            await rig.engine.decide()
        assert rig.asked == [("gc_collect", [1], False)]
        (shown,) = rig.engine.watching(rig.book.all()[0])
        assert (shown["run_name"], shown["holds"], shown["ranks"]) == ("name of r1", True, [1])

    with_rig(tmp_path, act)


@pytest.mark.parametrize("state", ["lost", "ended"])
def test_on_every_rank_that_has_not_ended(tmp_path: Path, state: str) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy(when=WHEN | {"ranks": "all"})
        await rig.seconds(3, ranks=(0,))
        assert rig.asked == []  # rank 1 says nothing
        rig.states[1] = state
        await rig.seconds(1, ranks=(0,))
        # Of one that is lost it is not known; one that has ended does not count.
        assert rig.asked == ([] if state == "lost" else [ALL])

    with_rig(tmp_path, act)


def test_what_is_off_or_for_another_run_does_nothing(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy(is_on=False)
        await rig.policy(name="b", run="name of r2")
        await rig.seconds(4)
        assert rig.asked == []
        await rig.seconds(4, run_id="r2", ranks=(0,))
        assert [each.run_id for each in rig.coordinator.records] == ["r2"]

    with_rig(tmp_path, act)


def test_a_change_counts_at_once(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        policy = await rig.policy(is_on=False)
        await rig.seconds(3)
        policy = await rig.book.switch(policy.id, True, ME)
        await rig.seconds(2)
        assert rig.asked == [ALL]
        await rig.answer()
        await rig.book.delete(policy.id, ME)
        rig.now_s += 100
        await rig.seconds(3)
        assert rig.asked == [ALL]
        assert rig.engine.watching(policy) == []

    with_rig(tmp_path, act)


def test_a_finding(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy(
            when={"finding": "leak"}, then={"command": "gc_collect", "ranks": "matching"}
        )
        await rig.seconds(3)
        assert rig.asked == []
        rig.findings = [finding_record("leak", ranks=(1,))]
        await rig.seconds(1)
        assert rig.asked == [("gc_collect", [1], False)]

    with_rig(tmp_path, act)


def test_one_that_is_still_at_it_is_not_asked_again(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy(every_s=10)
        await rig.seconds(40)
        assert rig.asked == [ALL]
        await rig.answer()
        assert rig.asked == [ALL, ALL]

    with_rig(tmp_path, act)


def test_what_an_agent_kept_while_it_was_away_is_no_reason(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy(hold={"seconds": 60})
        begin_s = rig.now_s - 3600
        for part in range(6):  # ten minutes of it a second, all above
            rig.now_s += 1
            times = [int((begin_s + part * 600 + s) * 1e9) for s in range(0, 600, 50)]
            above = [7 << 30] * 12
            rows = make_rows(time_ns=times, step=[1] * 12, reserved_bytes__all__current=above)
            rig.engine.take_samples("r1", 0, rows)
            await rig.engine.decide()
        await rig.seconds(30, gib=1)
        assert rig.asked == []

    with_rig(tmp_path, act)


def test_when_it_acted_last_is_known_after_a_restart(tmp_path: Path) -> None:
    async def before(rig: PolicyRig) -> Any:
        await rig.policy(every_s=60)
        await rig.seconds(2)
        await rig.answer()
        assert rig.asked == [ALL]
        return rig.now_s

    now_s = with_rig(tmp_path, before)

    async def after(rig: PolicyRig) -> None:
        rig.now_s = now_s
        await rig.seconds(59)
        assert rig.asked == []
        await rig.seconds(2)
        assert rig.asked == [ALL]

    with_rig(tmp_path, after)


def test_the_end_of_a_command_is_heard_of_after_a_restart(tmp_path: Path) -> None:
    async def before(rig: PolicyRig) -> Any:
        await rig.policy()
        await rig.seconds(2)
        (record,) = rig.coordinator.records
        from vramscope_server.store import command_log

        await rig.store.write(
            lambda c: command_log.insert_command(c, record.run_id, record.as_row())
        )
        return record

    record = with_rig(tmp_path, before)

    async def after(rig: PolicyRig) -> None:
        from vramscope_server.store import policies

        rig.coordinator.records.append(record)
        await rig.answer("failed", "it broke")
        (policy,) = rig.book.all()
        assert policy.failures == 1
        (firing,) = await rig.store.read(lambda c: policies.list_firings(c, policy.id, 9))
        assert (firing.state, firing.result) == (
            "failed",
            "empty_cache failed on 2 ranks: it broke",
        )

    with_rig(tmp_path, after)


def test_a_clock_that_was_set_back_stops_nothing_for_long(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy(every_s=20)
        await rig.seconds(2)
        await rig.answer()
        rig.now_s -= 3600
        await rig.seconds(25)
        assert rig.asked == [ALL, ALL]

    with_rig(tmp_path, act)


def test_a_run_that_nobody_hears_of_is_forgotten(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        policy = await rig.policy(when=WHEN | {"value": 1e15})
        await rig.seconds(3)
        assert len(rig.engine.watching(policy)) == 1
        rig.states = {0: "lost", 1: "lost"}
        rig.now_s += 60
        await rig.engine.decide()
        assert rig.engine.watching(policy) == []

    with_rig(tmp_path, act)


def test_it_goes_on_when_something_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def act(rig: PolicyRig) -> None:
        rig.engine._interval_s = 0.001
        await rig.engine.stop()
        failures: list[Exception] = [VramscopeError("internal", "disk full"), ValueError("odd")]
        done = asyncio.Event()

        async def fail() -> None:
            if failures:
                raise failures.pop(0)
            done.set()

        rig.firings.take_answers = fail  # type: ignore[method-assign]
        await rig.engine.start()
        await asyncio.wait_for(done.wait(), 10)

    with caplog.at_level(logging.ERROR):
        with_rig(tmp_path, act)
    assert "policies could not be written down: disk full" in caplog.text
    assert "deciding on policies failed" in caplog.text


def test_without_a_policy_that_is_on_nothing_is_kept(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.seconds(3)
        assert rig.engine._runs == {}

    with_rig(tmp_path, act)


def test_as_many_policies_as_there_may_be_cost_little_a_batch(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> float:
        for number in range(64):
            await rig.policy(name=f"n{number}", when=WHEN | {"value": 1e15 + number})
        begun_s = time.process_time()
        for _ in range(500):
            rig.second(ranks=(0,))
        return (time.process_time() - begun_s) / 1000

    # 64 policies over one series: well below what taking in the batch itself costs, tenfold slack.
    assert with_rig(tmp_path, act) < 0.002
