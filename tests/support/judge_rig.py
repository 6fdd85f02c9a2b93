"""Everything that judges, on a store, with a registry, judges and clocks of the test's choice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from tests.support.server_commands import record_of
from tests.support.server_rows import make_rows
from tests.support.streams import open_store
from vramscope_analysis.diagnosis.diagnose import RankJudge, RunJudge
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.questions import COMMAND, Question
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence
from vramscope_protocol.messages import RankInfo
from vramscope_server.commands.record import CommandRecord
from vramscope_server.commands.request import CommandRequest, Issuer
from vramscope_server.findings.board import FindingsBoard
from vramscope_server.findings.ended_ranks import EndedRanks
from vramscope_server.findings.evidence import GatheredEvidence
from vramscope_server.findings.investigator import Investigator
from vramscope_server.findings.judge_loop import JudgeLoop
from vramscope_server.findings.judging import Judging
from vramscope_server.findings.record import FindingRecord
from vramscope_server.findings.settings_trials import SettingsTrials
from vramscope_server.findings.taking_up import TakingUp
from vramscope_server.registry.lives import LifeOffset
from vramscope_server.store import findings
from vramscope_server.store.store import Store

SECOND_NS = 10**9
START_NS = 100 * SECOND_NS
RUN = "run-a"


class Registry:
    """One run whose ranks live and end as the test says."""

    def __init__(self, ranks: int) -> None:
        self.infos = {
            rank: RankInfo(rank, "node", 1, life="first", process_started_ns=START_NS)
            for rank in range(ranks)
        }
        self.ranks: dict[int, dict[str, Any]] = {
            rank: {
                "rank": rank,
                "state": "live",
                "ended_ns": None,
                "last_seen_ns": START_NS,
                "connected": True,
                "commands": [COMMAND],
                "step": None,
            }
            for rank in range(ranks)
        }
        self.is_known = True

    def rank_info(self, run_id: str, rank: int) -> RankInfo | None:
        return self.infos.get(rank)

    def run(self, run_id: str) -> dict[str, Any] | None:
        states = {rank["state"] for rank in self.ranks.values()}
        state = "live" if "live" in states else "ended"
        described = {"id": run_id, "name": "train", "state": state, "world_size": 2}
        ranks = [dict(rank) for rank in self.ranks.values()]
        return described | {"emulated": True, "ranks": ranks} if self.is_known else None

    def end(self, rank: int, time_ns: int) -> None:
        self.ranks[rank] |= {"state": "ended", "ended_ns": time_ns, "connected": False}


class Audience:
    """Hears of findings."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def publish_finding(self, run_id: str, finding: dict[str, Any]) -> None:
        self.told.append(finding)

    def run_changed(self, run_id: str) -> None:
        pass


class Coordinator:
    """Takes commands; nobody answers."""

    def __init__(self) -> None:
        self.asked: list[CommandRecord] = []

    async def submit(self, run: str, request: CommandRequest, issuer: Issuer) -> CommandRecord:
        record = record_of(request, run, issuer)
        self.asked.append(record)
        return record


class JudgeRig:
    """A judge loop whose turns the test takes one by one.

    Args:
        store: where findings go.
        ranks: of the run.
    """

    def __init__(self, store: Store, ranks: int = 2) -> None:
        self.store = store
        self.now_ns = START_NS + 10 * SECOND_NS
        self.now_s = 1000.0
        self.registry = Registry(ranks)
        self.audience = Audience()
        self.coordinator = Coordinator()
        self.judged: list[RunEvidence] = []
        self.holds: dict[int, Finding] = {}
        """What the judge finds on each rank."""
        self.questions: list[Question] = []
        self.note_at: Callable[[], object] = bool
        """Called whenever it is judged."""
        self.files: dict[str, BinaryIO] = {}
        self.begin()

    def begin(self) -> None:
        """A server starts, with nothing in memory."""
        clock = lambda: self.now_ns  # noqa: E731 - it is handed on four times
        judges: Sequence[RankJudge | RunJudge] = (RankJudge(self.grows), RunJudge(self.note))
        self.evidence = GatheredEvidence(self.registry)
        self.board = FindingsBoard(self.store, self.registry, self.audience, clock)
        self.ended = EndedRanks(self.store, self.registry, self.board)
        self.taking_up = TakingUp(self.store, self.registry, self.evidence, self.board, clock)
        self.loop = JudgeLoop(
            self.registry,
            self.evidence,
            self.board,
            Judging(judges, lambda _run: self.questions),
            self.taking_up,
            self.ended,
            Investigator(self.coordinator, lambda: self.now_s),
            SettingsTrials(self.evidence, lambda name: self.files[name]),
            None,
            clock,
            lambda: self.now_s,
        )

    def grows(self, rank: RankEvidence) -> list[Finding]:
        """A judge that says what the test wants."""
        return [self.holds[rank.rank]] if rank.rank in self.holds else []

    def note(self, run: RunEvidence) -> list[Finding]:
        """A judge that remembers what it was shown."""
        self.judged.append(run)
        self.note_at()
        return []

    def steps(self, rank: int = 0, *numbers: int, life: int = 0) -> None:
        """Steps of a rank end now."""
        first = self.now_ns
        rows = make_rows(
            "step",
            time_ns=[first + at for at in range(len(numbers or (1,)))],
            step=list(numbers or (1,)),
        )
        self.registry.ranks[rank]["step"] = (numbers or (1,))[-1]
        self.evidence.take_steps(RUN, rank, rows, LifeOffset(life, 0))

    async def turn(self, seconds: float = 2.0) -> None:
        """Let time pass, and take a turn."""
        self.now_ns += int(seconds * SECOND_NS)
        self.now_s += seconds
        await self.loop.turn()

    async def stored(self) -> list[FindingRecord]:
        """What the store has."""
        await self.board.writer.write()
        return await self.store.read(lambda c: findings.list_findings(c, RUN))


def with_a_rig(
    test: Callable[[JudgeRig], Coroutine[Any, Any, None]],
) -> Callable[[Path], None]:
    """A test that runs on an event loop with a rig of its own."""

    def run(tmp_path: Path) -> None:
        async def go() -> None:
            store = open_store(tmp_path)
            rig = JudgeRig(store)
            try:
                await test(rig)
            finally:
                await rig.loop.stop()
                store.close()

        asyncio.run(go())

    run.__name__ = test.__name__
    return run
