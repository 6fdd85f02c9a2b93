"""A server that starts goes on where the one before stopped."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection

from tests.support.judge_rig import RUN, SECOND_NS, START_NS, JudgeRig, with_a_rig
from tests.support.server_process import wait_until
from tests.support.server_rows import make_rows
from tests.support.streams import registration
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_protocol.errors import VramscopeError
from vramscope_server.findings import taking_up as taking_up_module
from vramscope_server.findings.record import opened
from vramscope_server.registry.lives import LifeOffset
from vramscope_server.rows import Rows
from vramscope_server.store import command_log, events, findings, runs, snapshots
from vramscope_server.store.submission import Submission

LEAK = Finding("leak", "warning", "Memory grows.", stage="suspected", ranks=(0,))


def step_rows(first: int, count: int) -> Rows:
    numbers = list(range(first, first + count))
    times = [START_NS + number * SECOND_NS for number in numbers]
    return make_rows("step", time_ns=times, step=numbers, a=numbers)


async def stored_run(rig: JudgeRig) -> None:
    """What the server before has stored: steps, events, and a question that was answered."""

    def store(connection: Connection) -> None:
        runs.register(connection, registration("s0", RUN, 0), START_NS)
        for second, kind in ((-50, "mark"), (3, "mark"), (4, "settings")):
            time_ns = START_NS + second * SECOND_NS
            events.add_event(connection, RUN, 0, time_ns, kind, 1, "", {"text": "a:1"})

    rig.store.start(lambda _acks: None, lambda _uid, _reason: None)
    await rig.store.write(store)
    assert rig.store.submit(Submission("s0", 1, step_rows(1, 9), START_NS, 1000, 1))
    wait_until(lambda: len(rig.store.steps(RUN, 0).step) == 9)
    rig.registry.ranks[0]["step"] = 9


@with_a_rig
async def test_open_findings_and_those_of_a_moment_ago_are_taken_up(rig: JudgeRig) -> None:
    rig.now_ns += 3600 * SECOND_NS
    old = rig.now_ns - 601 * SECOND_NS
    records = [opened(RUN, LEAK, 0, number) for number in range(4)]
    for number, record in enumerate(records):
        record.subject = f"{number}"
    records[1].resolve(rig.now_ns - SECOND_NS, is_final=False)
    records[2].resolve(old, is_final=False)
    records[3].resolve(old, is_final=True)
    await rig.store.write(lambda c: findings.put(c, records))
    await rig.taking_up.start()
    known = [rig.board.find(record.id) is not None for record in records]
    assert known == [True, True, False, True]
    assert [record.id for record in rig.board.open_of(RUN)] == [records[0].id]


@with_a_rig
async def test_the_steps_and_events_of_a_rank_that_is_heard_anew_are_read(rig: JudgeRig) -> None:
    await stored_run(rig)
    rig.evidence.take_steps(RUN, 0, step_rows(9, 2), LifeOffset(0, 0))
    await rig.turn()
    (rank,) = rig.judged[-1].ranks
    assert rank.steps.number is not None
    assert rank.steps.number.tolist() == list(range(1, 11))
    assert rank.steps.numbers("a").tolist() == list(range(1, 11))
    # Not those of the life before.
    assert [each.kind for each in rank.events] == ["mark", "settings"]
    assert rank.settings == "a:1"


@with_a_rig
async def test_what_was_answered_and_recorded_is_known_again(rig: JudgeRig) -> None:
    await stored_run(rig)
    result = {"notes": ["It grows."], "complete": True}
    command: dict[str, Any] = {
        "id": "c1",
        "name": "explain_growth",
        "params": {},
        "dry_run": False,
        "ranks": [0],
        "state": "done",
        "issued_by": "vramscope",
        "origin": "server",
        "created_ns": START_NS,
        "deadline_ns": START_NS,
    }
    window = {"id": "w1", "run": RUN, "rank": 0, "state": "complete", "mode": "alloc"}

    def listed(_c: Connection, run_id: str, limit: int = 0) -> list[dict[str, Any]]:
        receipt = {"state": "done", "time_ns": START_NS + SECOND_NS, "result": result}
        return [command | {"run": run_id, "receipts": {"0": receipt}}]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command_log, "list_commands", listed)
        patch.setattr(snapshots, "of_run", lambda *_: [window | {"taken_ns": START_NS + SECOND_NS}])
        patch.setattr(rig.loop._trials, "begin_next", lambda: None)
        rig.steps(0, 10)
        await rig.turn()
    growth = rig.judged[-1].ranks[0].growth
    assert growth is not None
    assert growth.notes == ("It grows.",)
    assert list(rig.evidence.windows) == [(RUN, 0)]


@with_a_rig
async def test_findings_that_another_server_opened_come_with_the_rank(rig: JudgeRig) -> None:
    await rig.taking_up.start()
    record = opened(RUN, LEAK, 0, START_NS)
    record.judge = "grows"
    await rig.store.write(lambda c: findings.put(c, [record]))
    rig.holds = {0: LEAK}
    rig.steps(0)
    await rig.turn()
    assert [one.id for one in await rig.stored()] == [record.id]


@with_a_rig
async def test_only_the_server_of_the_first_rank_compares_ranks(rig: JudgeRig) -> None:
    def register(connection: Connection) -> None:
        for rank in (2, 3):
            runs.register(connection, registration(f"s{rank}", RUN, rank), START_NS)

    await rig.store.write(register)
    assert rig.taking_up.compares_ranks(RUN, [0, 5]), "before it is known"
    rig.steps(1)
    await rig.turn()
    assert rig.taking_up.compares_ranks(RUN, [2, 3])
    assert not rig.taking_up.compares_ranks(RUN, [3])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(taking_up_module, "MAX_RUNS", 0)
        rig.steps(0)
        await rig.turn()


@with_a_rig
async def test_a_store_that_does_not_answer_keeps_nobody_from_judging(
    rig: JudgeRig,
) -> None:
    async def refuse(_function: object) -> None:
        raise VramscopeError("internal", "the database is away")

    rig.steps(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig.store, "read", refuse)
        await rig.turn()
    assert len(rig.judged) == 1
