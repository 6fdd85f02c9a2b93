"""Gathers what the agents of this server send, for the judges: bounded, in memory, by run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np

from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.recorded_window import RecordedWindow
from vramscope_analysis.evidence.run_evidence import RunEvidence, RunState
from vramscope_analysis.evidence.settings_trial import SettingsTrial
from vramscope_protocol.messages import RankInfo
from vramscope_server.findings.gathered_rank import CLOCKS_NS, GatheredRank, event_bytes
from vramscope_server.findings.growth_answer import growth_answers
from vramscope_server.maps.current_map import MapParts
from vramscope_server.registry.lives import LifeOffset, is_same_process
from vramscope_server.rows import Rows

MAX_BYTES: Final = 512 << 20
"""Evidence of all runs; beyond it the run that was silent longest is forgotten."""
MAX_RUNS: Final = 256

MOST_STEPS: Final = 2048
"""Of a rank; so many are whole with few ranks."""
_LEAST_STEPS: Final = 128
_RANKS_WITH_MOST: Final = 16
_WITH_HISTORY: Final = frozenset({"alloc", "all"})


class RankInfos(Protocol):
    """What is read of the registry."""

    def rank_info(self, run_id: str, rank: int) -> RankInfo | None:
        """What a rank said of itself when it registered last."""
        ...

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        ...


class MapReader(Protocol):
    """What is read of the memory maps."""

    def parts(self, run_id: str, rank: int) -> MapParts | None:
        """The present map of a rank, for another thread."""
        ...


@dataclass
class GatheredRun:
    """The ranks of one run that this server hears, and whether there is anything new."""

    ranks: dict[int, GatheredRank] = field(default_factory=dict[int, GatheredRank])
    is_new: bool = False
    is_urgent: bool = False
    """What has come is to be judged at once: it does not come often."""
    closed: set[int] = field(default_factory=set[int])
    """Ranks that are over and were judged since."""


class GatheredEvidence:
    """Listens to the hub. Lives on the event loop; nothing here waits, blocks or raises.

    Args:
        registry: which process is which rank at present.
        maps: the memory maps that somebody looked at; None is none.
    """

    def __init__(self, registry: RankInfos, maps: MapReader | None = None) -> None:
        self._registry = registry
        self._maps = maps
        self._runs: OrderedDict[str, GatheredRun] = OrderedDict()
        self._given_up: set[str] = set()
        self.windows: dict[tuple[str, int], dict[str, Any]] = {}
        """The newest recorded window of each rank that was not looked into yet."""
        self.on_urgent: Callable[[], object] = bool
        """Called when something has come that is to be judged at once."""
        self.begun: list[tuple[str, int]] = []
        """Ranks that were heard for the first time, or in a new life, since this was read last."""

    def take_samples(self, run_id: str, rank: int, rows: Rows) -> None:
        """New samples of a rank."""
        gathered = self._of(run_id, rank, rows)
        if gathered is not None:
            gathered.take_samples(rows)

    def take_steps(self, run_id: str, rank: int, rows: Rows, life: LifeOffset) -> None:
        """New steps of a rank."""
        gathered = self._of(run_id, rank, rows)
        if gathered is not None:
            gathered.life, gathered.step_offset = life
            if gathered.take_steps(rows):
                self._hurry(self._runs[run_id])

    def take_event(self, run_id: str, event: dict[str, Any]) -> None:
        """Something happened on a rank; what happened to the run as a whole is not kept."""
        rank = event.get("rank")
        gathered = None if rank is None else self._rank(run_id, rank)
        if gathered is None or event["time_ns"] < gathered.not_before_ns:
            return
        gathered.take_event(event, event_bytes(event))
        self._runs[run_id].is_new = True

    def take_status(self, run_id: str, rank: int, status: dict[str, Any]) -> None:
        """What a rank's agent says about once a second. Alone it is nothing new."""
        gathered = self._rank(run_id, rank)
        if gathered is not None:
            gathered.take_status(status)

    def take_command(self, run_id: str, command: dict[str, Any]) -> None:
        """A command has changed: answers to the question what grows are evidence."""
        run = self._runs.get(run_id)
        for answer in growth_answers(command):
            gathered = None if run is None else run.ranks.get(answer.rank)
            if run is None or gathered is None:
                continue
            # One of a life before says nothing of this one. A command comes once more, with all
            # its answers, for each rank that answers.
            if answer.time_ns < gathered.started_ns - CLOCKS_NS or answer.key in gathered.answers:
                continue
            gathered.answers.append(answer.key)
            report = answer.report()
            if answer.is_within_step:
                run.is_new |= gathered.take_within_step(report)
            elif gathered.take_growth(report, is_of_host=answer.is_of_host):
                self._hurry(run)

    def take_snapshot(self, run_id: str, snapshot: dict[str, Any]) -> None:
        """A snapshot has changed: one with a history can be replayed."""
        run, rank = self._runs.get(run_id), snapshot["rank"]
        if run is None or rank not in run.ranks or snapshot["state"] != "complete":
            return
        is_of_this_life = snapshot["taken_ns"] >= run.ranks[rank].started_ns - CLOCKS_NS
        if snapshot["mode"] in _WITH_HISTORY and is_of_this_life:
            self.windows[run_id, rank] = snapshot

    def take_oom(self, run_id: str, rank: int, report: OomReport, size_bytes: int = 0) -> None:
        """A rank ran out of memory; its report took so many bytes of JSON."""
        gathered = self._rank(run_id, rank)
        if gathered is not None:
            gathered.take_oom(report, size_bytes)
            self._runs[run_id].is_new = True

    def take_trials(self, run_id: str, rank: int, trials: tuple[SettingsTrial, ...]) -> None:
        """A recorded window of a rank was replayed under other settings."""
        run = self._runs.get(run_id)
        if run is not None and rank in run.ranks:
            run.ranks[rank].trials = trials
            run.is_new = True

    def take_window(self, run_id: str, rank: int, window: RecordedWindow) -> None:
        """A recorded window of a rank was read."""
        run = self._runs.get(run_id)
        if run is not None and rank in run.ranks:
            run.ranks[rank].window = window
            run.is_new = True

    def runs(self) -> list[str]:
        """Runs that there is evidence of."""
        return list(self._runs)

    def run(self, run_id: str) -> GatheredRun | None:
        """What was gathered of a run."""
        return self._runs.get(run_id)

    def forget(self, run_id: str) -> None:
        """The run is over and judged."""
        self._runs.pop(run_id, None)
        self._given_up.discard(run_id)
        for key in [key for key in self.windows if key[0] == run_id]:
            del self.windows[key]

    def give_up(self, run_id: str) -> None:
        """Nobody will judge the run any more: gather nothing of it, which nobody would take out."""
        self.forget(run_id)
        self._given_up.add(run_id)

    def forget_most_silent(self) -> None:
        """Stay within the bounds."""
        held = sum(rank.held_bytes for run in self._runs.values() for rank in run.ranks.values())
        while len(self._runs) > 1 and (held > MAX_BYTES or len(self._runs) > MAX_RUNS):
            run_id, run = next(iter(self._runs.items()))
            held -= sum(rank.held_bytes for rank in run.ranks.values())
            self.forget(run_id)

    def run_evidence(
        self, run_id: str, state: dict[str, Any], now_ns: int
    ) -> Callable[[], RunEvidence]:
        """Everything that is known of a run.

        Args:
            run_id: a run of :meth:`runs`.
            state: the run as the registry has it. Of one that goes on, ranks that are over and
                judged are left out: they would stand beside those that are not.
            now_ns: the time.

        Returns:
            What completes it; see :meth:`GatheredRank.evidence`.
        """
        run = self._runs[run_id]
        run_state: RunState = state["state"]
        left_out = run.closed if run_state == "live" else frozenset[int]()
        ranks = sorted(run.ranks.keys() - left_out)
        window = step_window(len(ranks))
        told = [
            run.ranks[rank].evidence(rank, window, self._map_of(run_id, rank)) for rank in ranks
        ]
        world_size, emulated = state["world_size"], state["emulated"]

        def with_rows() -> RunEvidence:
            completed = tuple(replace(complete(), world_size=world_size) for complete in told)
            return RunEvidence(run_id, now_ns, run_state, completed, world_size, emulated)

        return with_rows

    def _hurry(self, run: GatheredRun) -> None:
        run.is_new = run.is_urgent = True
        self.on_urgent()

    def _map_of(self, run_id: str, rank: int) -> MapParts | None:
        return None if self._maps is None else self._maps.parts(run_id, rank)

    def _of(self, run_id: str, rank: int, rows: Rows) -> GatheredRank | None:
        """Who the rows are of; None if they are of a life before the present one."""
        gathered = self._rank(run_id, rank)
        if gathered is None or int(rows.time_ns[0]) < gathered.not_before_ns:
            return None
        self._runs[run_id].is_new = True
        return gathered

    def _rank(self, run_id: str, rank: int) -> GatheredRank | None:
        info = self._registry.rank_info(run_id, rank)
        if info is None or run_id in self._given_up:
            return None
        run = self._runs.get(run_id)
        if run is None:
            run = self._runs[run_id] = GatheredRun()
        self._runs.move_to_end(run_id)
        run.closed.discard(rank)
        gathered = run.ranks.get(rank)
        if gathered is not None and is_same_process(gathered.info, info):
            gathered.info = info
            return gathered
        gathered = run.ranks[rank] = GatheredRank(info, gathered)
        self.begun.append((run_id, rank))
        return gathered


def step_window(ranks: int) -> int:
    """So many steps of each rank are whole: fewer of each with many ranks."""
    share = MOST_STEPS * _RANKS_WITH_MOST // max(ranks, 1)
    power = 1 << int(np.log2(max(share, 1)))
    return max(_LEAST_STEPS, min(MOST_STEPS, power))
