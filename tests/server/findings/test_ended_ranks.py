"""Findings end with their ranks, and only with those that no other server has."""

from __future__ import annotations

from tests.support.judge_rig import RUN, SECOND_NS, START_NS, JudgeRig, with_a_rig
from tests.support.streams import registration
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_server.store import runs, tables

SLOW = Finding("agent_degraded", "info", "Sampling at 4.0 instead of 10 Hz.")


def report(rig: JudgeRig, rank: int | None) -> None:
    rig.board.report(RUN, rank, "agent_degraded", SLOW)


def states(rig: JudgeRig) -> dict[int | None, str]:
    return {finding["rank"]: finding["state"] for finding in rig.audience.told}


def never(_run_id: str, _rank: int) -> bool:
    return False


async def hear_of(rig: JudgeRig, rank: int, seen_ns: int, ended_ns: int | None = None) -> None:
    """A server, maybe another one, stores that it heard of a rank."""

    def store(connection: object) -> None:
        runs.register(connection, registration(f"s{rank}", RUN, rank), START_NS)  # type: ignore[arg-type]
        table = tables.streams
        connection.execute(  # type: ignore[attr-defined]
            table.update()
            .where(table.c.rank == rank)
            .values(last_seen_ns=seen_ns, ended_ns=ended_ns)
        )

    await rig.store.write(store)


@with_a_rig
async def test_it_is_final_from_when_the_rank_ended(rig: JudgeRig) -> None:
    report(rig, 0)
    report(rig, 1)
    report(rig, None)
    await rig.ended.look(never)
    assert states(rig) == {0: "open", 1: "open", None: "open"}
    rig.registry.end(1, START_NS + 60 * SECOND_NS)
    await rig.ended.look(never)
    assert states(rig) == {0: "open", 1: "final", None: "open"}
    # One that went silent ends where it was heard of last, the run with its last rank.
    rig.registry.ranks[0] |= {"state": "lost", "last_seen_ns": START_NS + 40 * SECOND_NS}
    await rig.ended.look(never)
    assert states(rig) == {0: "final", 1: "final", None: "final"}
    ends = {f["rank"]: f["resolved_ns"] - START_NS for f in rig.audience.told if f["resolved_ns"]}
    assert ends == {0: 40 * SECOND_NS, 1: 60 * SECOND_NS, None: 60 * SECOND_NS}


@with_a_rig
async def test_one_that_is_still_to_be_judged_waits(rig: JudgeRig) -> None:
    report(rig, 0)
    rig.board.open_of(RUN)[0].judge = "leak"
    rig.registry.end(0, rig.now_ns)
    await rig.ended.look(lambda _run_id, rank: rank == 0)
    assert states(rig) == {0: "open"}
    await rig.ended.look(never)
    assert states(rig) == {0: "final"}


@with_a_rig
async def test_a_rank_that_another_server_hears_is_not_over(rig: JudgeRig) -> None:
    report(rig, 0)
    report(rig, 1)
    for rank in (0, 1):
        rig.registry.ranks[rank] |= {"state": "lost"}
    await hear_of(rig, 0, START_NS + 60 * SECOND_NS)
    await hear_of(rig, 1, START_NS, START_NS + SECOND_NS)  # it said goodbye there
    await rig.ended.look(never)
    assert states(rig) == {0: "open", 1: "open"}
    assert rig.board.open_of(RUN) == [], "the other server goes on with them"


@with_a_rig
async def test_of_a_run_that_is_not_known_nothing_is_known(rig: JudgeRig) -> None:
    report(rig, 0)
    rig.registry.is_known = False
    await rig.ended.look(never)
    assert states(rig) == {0: "open"}
    assert rig.board.runs() == [], "it would take the place of others for ever"
