"""Runs and ranks as they are now: who is live, who ended, who went silent. Pure, one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from vramscope_protocol.messages import AgentStatus, Goodbye, Lost, RankInfo, RunInfo
from vramscope_server.registry.lives import LifeOffset, step_offsets
from vramscope_server.registry.rank_state import RankState, State
from vramscope_server.registry.step_pace import RankPace
from vramscope_server.rows import Rows
from vramscope_server.store.claims import Seat
from vramscope_server.store.runs import RunRecord, StreamRecord

MAX_RUNS: Final = 1000
"""Runs kept in memory; beyond it those that were seen longest ago and are not live leave."""

_SILENT_NS: Final = 10 * 10**9
"""Agents say something every second. One that was not heard for so long is likely dead, with a
connection that nobody has closed: its launcher may have started the rank again elsewhere."""

_SAME_START_NS: Final = 2 * 10**9
"""Two readings of when a process started differ by ticks, and by what the clock was set since."""


@dataclass(slots=True)
class _Run:
    info: RunInfo
    started_ns: int
    ranks: dict[int, RankState]


class Registry:
    """What the server knows of its runs without asking the database.

    Args:
        clock_ns: the server's own clock, nanoseconds since the epoch.
        lost_after_s: a rank that did not say goodbye is lost after so long without a word.
        hostname: name of this machine; ranks on it are checked by ``process_alive``.
        process_alive: whether a process of this machine exists.
    """

    def __init__(
        self,
        clock_ns: Callable[[], int],
        lost_after_s: float,
        hostname: str,
        process_alive: Callable[[int], bool],
        max_runs: int = MAX_RUNS,
    ) -> None:
        self._clock_ns = clock_ns
        self._lost_after_ns = int(lost_after_s * 1e9)
        self._hostname = hostname
        self._process_alive = process_alive
        self._max_runs = max_runs
        self._runs: dict[str, _Run] = {}
        self._streams: dict[str, RankState] = {}
        self._verdict: Callable[[str, bool], dict[str, Any]] = _no_verdict

    def say_verdicts(self, verdict: Callable[[str, bool], dict[str, Any]]) -> None:
        """Put what is wrong with a run into what is said of it.

        Args:
            verdict: called with its id and whether it is over.
        """
        self._verdict = verdict

    # ------------------------------------------------------------------------------ questions

    def runs(self) -> list[dict[str, Any]]:
        """Every run without its ranks, newest first."""
        now_ns = self._clock_ns()
        newest_first = sorted(self._runs.values(), key=lambda run: run.started_ns, reverse=True)
        return [self._run_payload(run, now_ns) for run in newest_first]

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        run = self._runs.get(run_id)
        if run is None:
            return None
        now_ns = self._clock_ns()
        ranks = [
            run.ranks[rank].payload(self._state(run.ranks[rank], now_ns))
            for rank in sorted(run.ranks)
        ]
        return self._run_payload(run, now_ns) | {"ranks": ranks}

    def find(self, run: str) -> str | None:
        """Id of a run, given its id or its name; of several with that name the newest."""
        if run in self._runs:
            return run
        named = [found for found in self._runs.values() if found.info.name == run]
        return max(named, key=lambda found: found.started_ns).info.id if named else None

    def all_ranks(self, run_id: str) -> list[int]:
        """Ranks that ever registered."""
        run = self._runs.get(run_id)
        return sorted(run.ranks) if run else []

    def connected_ranks(self, run_id: str) -> list[int]:
        """Ranks with an open connection."""
        run = self._runs.get(run_id)
        return sorted(rank for rank, state in run.ranks.items() if state.connected) if run else []

    def rank_info(self, run_id: str, rank: int) -> RankInfo | None:
        """What a rank said of itself when it registered last."""
        run = self._runs.get(run_id)
        state = run.ranks.get(rank) if run else None
        return state.newest.info if state else None

    def seat(self, run_id: str, rank: int) -> Seat | None:
        """Who sits on a rank: its newest life, connected, heard, and without a goodbye."""
        run = self._runs.get(run_id)
        state = run.ranks.get(rank) if run else None
        if state is None or not state.connected or state.newest.ended_ns is not None:
            return None
        if self._clock_ns() - state.last_seen_ns >= _SILENT_NS:
            return None
        newest = state.newest
        return Seat(newest.uid, newest.secret, f"process {newest.info.pid} on {newest.info.host}")

    def paces(self, run_id: str) -> dict[int, RankPace]:
        """How far each rank is, of those that have told it."""
        run = self._runs.get(run_id)
        now_ns = self._clock_ns()
        found = (
            {number: rank.pace.pace(now_ns) for number, rank in run.ranks.items()} if run else {}
        )
        return {number: pace for number, pace in found.items() if pace is not None}

    def life_offset(self, uid: str) -> LifeOffset:
        """Which life of its rank a stream is, and what to add to its step numbers."""
        return self._streams[uid].life_offset(uid)

    def step_offsets(self, run_id: str, rank: int) -> list[int]:
        """What to add to the step numbers of each life of a rank so that they rise over all."""
        run = self._runs.get(run_id)
        state = run.ranks.get(rank) if run else None
        return step_offsets(state.lives) if state else []

    def run_of_process(self, pid: int, started_ns: int) -> dict[str, str] | None:
        """Id and name of the live run that a process of this machine belongs to, if any.

        Args:
            pid: its number as this machine sees it.
            started_ns: when it started, nanoseconds since the epoch; its number may be used again.
        """
        for run in self._runs.values():
            for rank in run.ranks.values():
                info = rank.newest.info
                if (info.host, info.pid) != (self._hostname, pid) or rank.newest.ended_ns:
                    continue
                if abs((info.process_started_ns or started_ns) - started_ns) < _SAME_START_NS:
                    return {"id": run.info.id, "name": run.info.name}
        return None

    # ------------------------------------------------------------------- what ingest reports

    def load(self, records: Iterable[RunRecord]) -> None:
        """Take over what the store has, as it was when the last server stopped."""
        for record in records:
            for stream in record.streams:
                self._add(record.info, record.started_ns, stream)

    def registered(self, info: RunInfo, started_ns: int, stream: StreamRecord) -> RankState:
        """A stream registered; what is known of it already is kept."""
        rank = self._add(info, started_ns, stream)
        rank.seen(self._clock_ns())
        self._forget_oldest()
        return rank

    def connected(self, uid: str) -> None:
        """A stream has an open connection now."""
        rank = self._streams[uid]
        rank.open_streams.add(uid)
        rank.seen(self._clock_ns())

    def disconnected(self, uid: str) -> None:
        """The connection of a stream is gone."""
        rank = self._streams[uid]
        rank.open_streams.discard(uid)
        self._check_process(rank)

    def take_rows(self, uid: str, seq: int, rows: Rows) -> bool:
        """Count a batch; ``False`` if it was counted before."""
        rank = self._streams[uid]
        now_ns = self._clock_ns()
        if not rank.is_new(uid, seq, now_ns):
            return False
        rank.take_rows(uid, rows, now_ns)
        return True

    def take_message(self, uid: str, seq: int) -> bool:
        """Note another durable message; ``False`` if it was noted before."""
        return self._streams[uid].is_new(uid, seq, self._clock_ns())

    def take_goodbye(self, uid: str, goodbye: Goodbye) -> None:
        """A stream ended on purpose."""
        stream = self._streams[uid].streams[uid]
        stream.ended_ns = goodbye.time_ns
        stream.end_reason = goodbye.reason
        stream.end_text = goodbye.text
        stream.exit_code = goodbye.exit_code

    def take_lost(self, uid: str, lost: Lost) -> None:
        """A stream says what it dropped."""
        rank = self._streams[uid]
        rank.seen(self._clock_ns())
        rank.streams[uid].summary.take_lost(lost)

    def take_status(self, uid: str, status: AgentStatus) -> dict[str, Any]:
        """A stream says what watching costs; returns the status as the API has it."""
        rank = self._streams[uid]
        rank.seen(self._clock_ns())
        payload: dict[str, Any] = msgspec.structs.asdict(status)
        for part in ("account", "processes", "outside"):
            payload[part] = msgspec.to_builtins(payload[part])
        rank.status = payload
        return payload

    def tick(self) -> set[str]:
        """Look at the clock and at the processes; returns the runs whose state changed."""
        now_ns = self._clock_ns()
        changed: set[str] = set()
        for run in self._runs.values():
            for rank in run.ranks.values():
                rank.not_after(now_ns)
                if self._state(rank, now_ns) == "live":
                    self._check_process(rank)  # one that is gone stays gone: most runs are over
                state = self._state(rank, now_ns)
                if state != rank.shown_state:
                    rank.shown_state = state
                    changed.add(run.info.id)
        return changed

    # ----------------------------------------------------------------------------- inner parts

    def _add(self, info: RunInfo, started_ns: int, stream: StreamRecord) -> RankState:
        run = self._runs.get(info.id)
        if run is None:
            run = self._runs[info.id] = _Run(info, started_ns, {})
        run.info = info
        run.started_ns = min(run.started_ns, started_ns)
        number = stream.info.rank
        rank = run.ranks.get(number)
        if rank is None:
            rank = run.ranks[number] = RankState(number, stream)
        rank.add(stream)
        self._streams[stream.uid] = rank
        return rank

    def _check_process(self, rank: RankState) -> None:
        """Without a connection, a process of this machine that is gone will not come back."""
        info = rank.newest.info
        rank.process_gone = (
            not rank.connected
            and rank.newest.ended_ns is None
            and info.host == self._hostname
            and not self._process_alive(info.pid)
        )

    def _state(self, rank: RankState, now_ns: int) -> State:
        if rank.newest.ended_ns is not None:
            return "ended"
        if rank.connected:
            return "live"
        silent_ns = now_ns - rank.last_seen_ns
        return "lost" if rank.process_gone or silent_ns > self._lost_after_ns else "live"

    def _forget_oldest(self) -> None:
        if len(self._runs) <= self._max_runs:
            return
        now_ns = self._clock_ns()
        idle = [run for run in self._runs.values() if self._run_state(run, now_ns) != "live"]
        if idle:
            oldest = min(idle, key=_last_seen)
            del self._runs[oldest.info.id]
            for rank in oldest.ranks.values():
                for uid in rank.streams:
                    self._streams.pop(uid, None)

    def _run_state(self, run: _Run, now_ns: int) -> State:
        states = {self._state(rank, now_ns) for rank in run.ranks.values()}
        if "live" in states:
            return "live"
        return "lost" if "lost" in states else "ended"

    def _run_payload(self, run: _Run, now_ns: int) -> dict[str, Any]:
        state = self._run_state(run, now_ns)
        ranks = [run.ranks[rank] for rank in sorted(run.ranks)]
        states = [self._state(rank, now_ns) for rank in ranks]
        first = ranks[0]
        ends = [rank.newest.ended_ns for rank in ranks if rank.newest.ended_ns is not None]
        return {
            "id": run.info.id,
            "name": run.info.name,
            "state": state,
            "started_ns": run.started_ns,
            "ended_ns": max(ends) if state == "ended" and ends else None,
            "last_seen_ns": _last_seen(run),
            "world_size": run.info.world_size,
            "emulated": run.info.emulated,
            "user": run.info.user,
            "script": run.info.script,
            "device_name": first.device_name,
            "device_total_bytes": first.device_total_bytes,
            "step": _highest(rank.step for rank in ranks),
            "peak_reserved_bytes": _highest(rank.peak_reserved_bytes for rank in ranks),
            "used_bytes": _highest(rank.used_bytes for rank in ranks),
            "ranks_connected": sum(rank.connected for rank in ranks),
            "ranks_live": states.count("live"),
            "ranks_lost": states.count("lost"),
            "restarts": max(rank.restarts for rank in ranks),
            "restarted_ns": _highest(rank.restarted_ns for rank in ranks),
            "fullest_rank": max(ranks, key=_use).number,
            "exit_code": _exit_code(ranks),
            **self._verdict(run.info.id, state != "live"),
        }


def _no_verdict(_run_id: str, _is_over: bool) -> dict[str, Any]:
    return {}


def _last_seen(run: _Run) -> int:
    return max(rank.last_seen_ns for rank in run.ranks.values())


def _use(rank: RankState) -> int:
    return max(rank.used_bytes or 0, rank.peak_reserved_bytes or 0)


def _exit_code(ranks: Iterable[RankState]) -> int | None:
    """The first code that is not 0, else 0 where any rank told one."""
    codes = [code for rank in ranks if (code := rank.newest.exit_code) is not None]
    return next((code for code in codes if code), codes[0] if codes else None)


def _highest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
