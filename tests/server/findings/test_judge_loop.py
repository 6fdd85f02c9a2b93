"""Runs are judged while something comes, and once more when they are over."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from unittest.mock import patch

import pytest

from tests.support.judge_rig import RUN, SECOND_NS, JudgeRig, with_a_rig
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.questions import Question
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.run_evidence import RankEvidence
from vramscope_server.findings import judge_loop
from vramscope_server.findings.judge_thread import JudgeThread

LEAK = Finding("leak", "warning", "Memory grows.", stage="suspected", ranks=(0,))


@with_a_rig
async def test_it_is_judged_when_something_came_and_not_too_often(rig: JudgeRig) -> None:
    await rig.turn()
    assert (rig.judged, rig.loop.judged_ns(RUN)) == ([], None)
    rig.steps()
    await rig.turn()
    assert len(rig.judged) == 1
    assert rig.loop.judged_ns(RUN) == rig.now_ns
    await rig.turn()  # nothing came
    rig.steps(0, 2)
    await rig.turn(0.1)
    rig.steps(0, 3)
    assert len(rig.judged) == 2, "the second, at once, was 2.1 s after the first"
    await rig.turn(0.1)
    assert len(rig.judged) == 2
    await rig.turn(2.0)
    assert [len(run.ranks[0].steps) for run in rig.judged] == [1, 2, 3]
    # Quiet: forecasts get older.
    await rig.turn(29.0)
    assert len(rig.judged) == 3
    await rig.turn(1.5)
    assert len(rig.judged) == 4
    assert "grows" in rig.loop.looked_for


@with_a_rig
async def test_what_takes_long_is_done_less_often(rig: JudgeRig) -> None:
    rig.steps()
    await rig.turn()
    rig.loop._turns[RUN].took_s = 1.0
    rig.steps(0, 2)
    await rig.turn(19.0)
    assert len(rig.judged) == 1
    await rig.turn(1.5)
    assert len(rig.judged) == 2


@with_a_rig
async def test_a_rank_that_ends_is_judged_once_more_and_keeps_its_verdict(rig: JudgeRig) -> None:
    rig.holds = {0: LEAK}
    rig.steps(0)
    rig.steps(1)
    await rig.turn()
    rig.registry.end(0, rig.now_ns + SECOND_NS)
    rig.holds = {0: replace(LEAK, summary="It grew to the end.")}
    await rig.turn(0.1)
    assert [rank.rank for rank in rig.judged[-1].ranks] == [0, 1]
    (record,) = await rig.stored()
    assert (record.state, record.summary) == ("final", "It grew to the end.")
    # From now on it stands beside nobody.
    rig.steps(1, 2)
    await rig.turn()
    assert [rank.rank for rank in rig.judged[-1].ranks] == [1]
    assert (await rig.stored())[0].state == "final"


@with_a_rig
async def test_a_run_that_is_over_is_judged_again_for_what_comes_late(rig: JudgeRig) -> None:
    rig.holds = {0: LEAK}
    rig.steps(0)
    await rig.turn()
    for rank in (0, 1):
        rig.registry.end(rank, rig.now_ns)
    await rig.turn(0.1)
    assert rig.judged[-1].state == "ended"
    judged = len(rig.judged)
    await rig.turn()
    assert len(rig.judged) == judged
    rig.evidence.take_oom(RUN, 0, OomReport("oom-1"))
    rig.holds[0] = Finding("oom", "critical", "Out of memory.", subject="oom-1", ranks=(0,))
    await rig.turn()
    assert len(rig.judged) == judged + 1
    assert len(rig.judged[-1].ranks[0].steps) == 1
    found = {record.kind: record.state for record in await rig.stored()}
    assert found == {"leak": "final", "oom": "final"}
    # After a while its evidence is let go; a report that comes even later is judged alone.
    await rig.turn(61.0)
    assert rig.evidence.runs() == []
    rig.evidence.take_oom(RUN, 0, OomReport("oom-1"))
    await rig.turn()
    assert len(await rig.stored()) == 2


@with_a_rig
async def test_a_rank_that_comes_back_goes_on(rig: JudgeRig) -> None:
    rig.holds = {0: LEAK}
    rig.steps(0)
    await rig.turn()
    (before,) = await rig.stored()
    rig.registry.ranks[0]["state"] = "lost"
    await rig.turn()
    assert (await rig.stored())[0].state == "final"
    rig.registry.ranks[0]["state"] = "live"
    rig.steps(0, 2)
    await rig.turn()
    (after,) = await rig.stored()
    assert (after.id, after.state) == (before.id, "open")


@with_a_rig
async def test_what_is_to_be_known_is_asked(rig: JudgeRig) -> None:
    rig.questions = [Question(1, "it grows")]
    rig.steps(1)
    await rig.turn()
    assert [record.ranks for record in rig.coordinator.asked] == [[1]]


@with_a_rig
async def test_what_is_urgent_is_judged_at_once_and_before_anything_is_asked(rig: JudgeRig) -> None:
    rig.steps()
    await rig.turn()
    run = rig.evidence.run(RUN)
    assert run is not None
    rig.steps(0, 2)
    await rig.turn(0.1)
    assert len(rig.judged) == 1
    run.is_urgent = True
    rig.questions = [Question(1, "it grows")]
    asked, rig.note_at = rig.coordinator.asked, lambda: setattr(run, "is_urgent", True)
    await rig.turn(0.1)
    # The answer came while it was judged.
    assert (len(rig.judged), asked, run.is_urgent) == (2, [], True)
    rig.note_at = bool
    await rig.turn(0.1)
    assert (len(rig.judged), len(asked), run.is_urgent) == (3, 1, False)


@with_a_rig
async def test_the_loop_does_not_wait_for_its_next_turn_when_it_is_urgent(rig: JudgeRig) -> None:
    async def found() -> None:
        while not rig.board.open_of(RUN):
            await asyncio.sleep(0.01)

    rig.loop._interval_s = 3600.0
    with patch.object(judge_loop, "_TICK_S", 3600.0):
        await rig.loop.start()
        await asyncio.sleep(0)
        rig.holds = {0: LEAK}
        rig.steps()
        rig.evidence.on_urgent()
        await asyncio.wait_for(found(), 20.0)


@with_a_rig
async def test_a_run_that_is_forgotten_is_not_judged(rig: JudgeRig) -> None:
    rig.steps()
    await rig.turn()
    rig.registry.is_known = False
    await rig.turn()
    assert (rig.evidence.runs(), len(rig.judged), rig.loop.judged_ns(RUN)) == ([], 1, None)


@with_a_rig
async def test_one_run_that_cannot_be_judged_does_not_keep_others_from_it(rig: JudgeRig) -> None:
    rig.steps()
    works = rig.board.judged

    def fails(*_arguments: object) -> None:
        raise ZeroDivisionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig.board, "judged", fails)
        await rig.turn()
    assert rig.board.judged == works
    rig.holds = {0: LEAK}
    rig.steps(0, 2)
    await rig.turn()
    assert len(await rig.stored()) == 1


@with_a_rig
async def test_a_judge_that_hangs_keeps_nobody_waiting(rig: JudgeRig) -> None:
    release = threading.Event()

    def hangs(_rank: RankEvidence) -> list[Finding]:
        release.wait()
        return []

    rig.holds = {0: LEAK}
    rig.steps(0)
    await rig.turn()
    patch = pytest.MonkeyPatch()
    patch.setattr(rig.loop, "_thread", JudgeThread(0.01))
    patch.setattr(rig.loop._judging, "judge", lambda *_a, **_k: hangs(RankEvidence(0)))
    rig.steps(0, 2)
    await rig.turn()
    patch.undo()
    release.set()
    # That run is not judged again, and still its findings end with it.
    rig.steps(0, 3)
    await rig.turn()
    assert len(rig.judged) == 1
    assert rig.evidence.run(RUN) is None, "what nobody takes out would pile up"
    rig.registry.end(0, rig.now_ns)
    await rig.turn()
    assert (await rig.stored())[0].state == "final"


@with_a_rig
async def test_it_stops_though_what_is_awaited_swallows_that_once(rig: JudgeRig) -> None:
    await rig.loop.start()
    await asyncio.sleep(0)
    wait, swallowed = rig.loop._wait, 0

    async def waits(seconds: float) -> None:
        nonlocal swallowed
        try:
            await wait(seconds)
        except asyncio.CancelledError:
            swallowed += 1
            if swallowed > 1:
                raise

    rig.loop._wait = waits  # type: ignore[method-assign]
    rig.evidence.on_urgent()  # on to the next turn
    await asyncio.sleep(0.1)
    await asyncio.wait_for(rig.loop.stop(), 20.0)
    assert swallowed == 2


@with_a_rig
async def test_it_runs_by_itself_and_stops(rig: JudgeRig) -> None:
    rig.holds = {0: LEAK}
    rig.steps()
    await rig.loop.start()
    while not rig.board.open_of(RUN):
        await asyncio.sleep(0.01)
    await rig.loop.stop()
    await rig.loop.stop()
    rig.begin()
    await rig.taking_up.start()
    assert [record.kind for record in rig.board.open_of(RUN)] == ["leak"]
