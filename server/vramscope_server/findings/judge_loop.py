"""Judges runs again and again while something comes, and once more when they are over."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from vramscope_analysis.evidence.run_evidence import RunEvidence
from vramscope_server.findings.across_ranks import across_ranks
from vramscope_server.findings.board import FindingsBoard
from vramscope_server.findings.ended_ranks import EndedRanks
from vramscope_server.findings.evidence import GatheredEvidence
from vramscope_server.findings.investigator import Investigator
from vramscope_server.findings.judge_thread import JudgeHangs, JudgeThread
from vramscope_server.findings.judging import Judgement, Judging
from vramscope_server.findings.map_looks import MapLooks
from vramscope_server.findings.settings_trials import SettingsTrials
from vramscope_server.findings.taking_up import TakingUp

_logger = logging.getLogger("vramscope.findings")

TURN_LIMIT_S: Final = 30.0

_TICK_S: Final = 0.5
_RETRY_S: Final = 2.0
_STOP_AGAIN_S: Final = 0.2
_SHARE: Final = 20.0
"""A run is judged again after so many times what it took: 5 % of a core."""
_QUIET_S: Final = 30.0
"""A live run is judged again after so long without anything new: forecasts get older."""
_COMPARING: Final = frozenset({"rank_imbalance"})
"""Judges that compare ranks: only one server of a run may ask them."""
_FORGET_S: Final = 60.0
"""What comes late from a run that is over, such as a report, still finds its evidence."""


class RunStates(Protocol):
    """What is read of the registry."""

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        ...


@dataclass
class _Turns:
    """When a run was judged."""

    judged_s: float = float("-inf")
    took_s: float = 0.0
    judged_ns: int | None = None
    over_s: float | None = None
    hung: bool = field(default=False)


class JudgeLoop:
    """Owns the task that judges; everything but the judges themselves is on the event loop."""

    def __init__(
        self,
        registry: RunStates,
        evidence: GatheredEvidence,
        board: FindingsBoard,
        judging: Judging,
        taking_up: TakingUp,
        ended: EndedRanks,
        investigator: Investigator,
        trials: SettingsTrials,
        map_looks: MapLooks | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
        clock_s: Callable[[], float] = time.monotonic,
        interval_s: float = 2.0,
    ) -> None:
        self._registry = registry
        self._evidence = evidence
        self._board = board
        self._judging = judging
        self._taking_up = taking_up
        self._ended = ended
        self._investigator = investigator
        self._trials = trials
        self._map_looks = map_looks
        self._clock_ns = clock_ns
        self._clock_s = clock_s
        self._interval_s = interval_s
        self._thread = JudgeThread(TURN_LIMIT_S)
        self._turns: dict[str, _Turns] = {}
        self._hurry = asyncio.Event()
        evidence.on_urgent = self._hurry.set
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def looked_for(self) -> list[str]:
        """Names of the judges."""
        return self._judging.names

    def judged_ns(self, run_id: str) -> int | None:
        """When a run was judged last; None is not by this server."""
        turns = self._turns.get(run_id)
        return None if turns is None else turns.judged_ns

    async def start(self) -> None:
        """Take up what was open when the server stopped, and begin."""
        await self._taking_up.start()
        self._tasks = [
            asyncio.create_task(self._judge_all(), name="vramscope-judge-loop"),
            asyncio.create_task(self._board.writer.run(), name="vramscope-findings"),
        ]

    async def stop(self) -> None:
        """End, and store what has changed, against a deadline."""
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            # asyncio.wait_for() may swallow that, where its time or its result comes just then.
            _, pending = await asyncio.wait(self._tasks, timeout=_STOP_AGAIN_S)
            self._tasks = list(pending)
        self._thread.stop()
        await self._trials.stop()
        await self._board.writer.stop()

    async def turn(self) -> None:
        """Judge every run that is due, then let those end that are over."""
        await self._taking_up.take_up_begun()
        for run_id in self._evidence.runs():
            try:
                await self._turn_of(run_id)
            except Exception:  # what one run sends must not keep others from being judged
                _logger.exception("the run %s could not be judged", run_id)
                self._turns[run_id].judged_s = self._clock_s()
        await self._ended.look(self._is_awaited)
        self._trials.begin_next()
        self._evidence.forget_most_silent()
        for run_id in set(self._turns) - set(self._evidence.runs()):
            if self._registry.run(run_id) is None:
                self._evidence.forget(run_id)
                del self._turns[run_id]

    async def _turn_of(self, run_id: str) -> None:
        self._turns.setdefault(run_id, _Turns())
        state = self._registry.run(run_id)
        if state is None:
            self._evidence.forget(run_id)
        elif self._is_due(run_id, state):
            await self._judge(run_id, state)

    async def _judge_all(self) -> None:
        while True:
            await self._wait(min(_TICK_S, self._interval_s))
            try:
                await self.turn()
            except Exception:  # whatever it was: the next turn may do
                _logger.exception("a turn of judging failed")
                await asyncio.sleep(_RETRY_S)

    async def _wait(self, seconds: float) -> None:
        """For so long, or until something is urgent."""
        timer = asyncio.get_running_loop().call_later(seconds, self._hurry.set)
        try:
            await self._hurry.wait()
        finally:
            timer.cancel()
        self._hurry.clear()

    def _is_due(self, run_id: str, state: dict[str, Any]) -> bool:
        turns = self._turns[run_id]
        run = self._evidence.run(run_id)
        now_s = self._clock_s()
        since_s = now_s - turns.judged_s
        if run is None or turns.hung:
            return False
        if _over(state) & run.ranks.keys() - run.closed:
            return True
        if state["state"] != "live":
            turns.over_s = now_s if turns.over_s is None else turns.over_s
            if not run.is_new and now_s - turns.over_s > _FORGET_S:
                self._forget(run_id)
            return run.is_new
        turns.over_s = None
        if run.is_urgent and since_s >= turns.took_s:
            return True
        wait_s = max(self._interval_s, _SHARE * turns.took_s) if run.is_new else _QUIET_S
        return since_s >= wait_s

    async def _judge(self, run_id: str, state: dict[str, Any]) -> None:
        turns, run = self._turns[run_id], self._evidence.run(run_id)
        if run is None:
            return
        run.is_new = run.is_urgent = False
        over = _over(state) & run.ranks.keys()
        now_ns = self._clock_ns()
        complete = self._evidence.run_evidence(run_id, state, now_ns)
        is_first = self._taking_up.compares_ranks(run_id, run.ranks)
        without = frozenset[str]() if is_first else _COMPARING
        try:
            judgement = await self._thread.call(partial(self._judged, complete, without))
        except JudgeHangs:
            turns.hung = True
            self._evidence.give_up(run_id)
            return
        where = {rank: (each.life, each.step_offset) for rank, each in run.ranks.items()}
        self._board.judged(judgement, where, frozenset(over))
        turns.judged_s, turns.took_s = self._clock_s(), judgement.took_s
        turns.judged_ns = now_ns
        # One that came back while it was judged has taken itself out, and is judged again.
        run.closed |= over & _over(self._registry.run(run_id) or state)
        # What has come meanwhile may be the answer: it is judged before anything is asked.
        if state["state"] == "live" and not run.is_urgent:
            await self._investigator.look(
                run_id, state, self._board.open_of(run_id), judgement.questions
            )
            if self._map_looks is not None:
                self._map_looks.look(judgement)

    def _judged(self, complete: Callable[[], RunEvidence], without: frozenset[str]) -> Judgement:
        """In the thread: everything that takes long."""
        begun_s = time.perf_counter()
        judgement = self._judging.judge(complete(), without)
        judgement.found = across_ranks(judgement.found)
        judgement.took_s = time.perf_counter() - begun_s
        return judgement

    def _is_awaited(self, run_id: str, rank: int) -> bool:
        """Whether the end of a rank is still to be judged."""
        run, turns = self._evidence.run(run_id), self._turns.get(run_id)
        is_hung = turns is not None and turns.hung
        return run is not None and not is_hung and rank in run.ranks.keys() - run.closed

    def _forget(self, run_id: str) -> None:
        self._evidence.forget(run_id)
        self._turns[run_id].over_s = None


def _over(state: dict[str, Any]) -> set[int]:
    return {rank["rank"] for rank in state["ranks"] if rank["state"] != "live"}
