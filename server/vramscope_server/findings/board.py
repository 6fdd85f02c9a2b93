"""The findings that are open: opened, brought up to date, resolved, told and stored.

Whoever judges reports what holds now, each time anew; the board knows what was open before. So a
kind of finding needs no memory of its own, and goes on over a restart of the server.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_server.findings.across_ranks import across_ranks
from vramscope_server.findings.finding_writer import FindingWriter
from vramscope_server.findings.judging import Found, Judgement
from vramscope_server.findings.matching import match
from vramscope_server.findings.mutes import Mutes
from vramscope_server.findings.record import FindingRecord, opened
from vramscope_server.findings.verdict import verdict
from vramscope_server.store.store import Store

MAX_OPEN: Final = 10_000
"""Findings that are open at once; beyond it no more are opened."""
MAX_PAST: Final = 4096
"""Findings that are over and may hold again; the oldest are forgotten first."""

_RETOLD_NS: Final = 10 * 10**9
"""New words for an open finding are told and stored at most this often."""
_MISSED: Final = 3
_MISSED_NS: Final = 6 * 10**9
"""A finding is over when so many judgements in a row, over so long, do not find it."""
_STAYS: Final = frozenset({"oom"})
"""What has happened does not end by not being found again."""

Key = tuple[str, int | None, str, str]


class RunStates(Protocol):
    """What the board reads of the registry."""

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        ...


class FindingAudience(Protocol):
    """Who is told."""

    def publish_finding(self, run_id: str, finding: dict[str, Any]) -> None:
        """Hand the present state of a finding on."""
        ...

    def run_changed(self, run_id: str) -> None:
        """Say that a run is not what it was."""
        ...


class FindingsBoard:
    """The findings of all runs that hold, or held to the end. Lives on the event loop."""

    def __init__(
        self,
        store: Store,
        registry: RunStates,
        audience: FindingAudience,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._registry = registry
        self._audience = audience
        self._clock_ns = clock_ns
        self.writer = FindingWriter(store)
        self.mutes = Mutes(store, registry, clock_ns)
        self._open: dict[Key, FindingRecord] = {}
        self._past: OrderedDict[Key, FindingRecord] = OrderedDict()
        self._told_ns: dict[str, int] = {}
        self._untold: set[str] = set()

    def adopt(self, records: Iterable[FindingRecord]) -> None:
        """Take up findings of the store that are not known here, oldest first."""
        known = {record.id for record in (*self._open.values(), *self._past.values())}
        for record in sorted(records, key=lambda record: record.opened_ns):
            if record.id in known:
                continue
            self.mutes.learn(record)
            if record.resolved_ns is None and len(self._open) < MAX_OPEN:
                record.seen_ns = self._clock_ns()
                self._open[_key(record)] = record
            else:
                self._keep_past(record)

    def is_open(self, run_id: str, rank: int | None, kind: str, subject: str = "") -> bool:
        """Whether such a finding holds."""
        return (run_id, rank, kind, subject) in self._open

    def open_of(self, run_id: str) -> list[FindingRecord]:
        """The findings of a run that hold."""
        return [record for record in self._open.values() if record.run_id == run_id]

    def runs(self) -> set[str]:
        """Runs with open findings."""
        return {record.run_id for record in self._open.values()}

    def find(self, finding_id: str) -> FindingRecord | None:
        """A finding that is open, or was a while ago."""
        records = (*self._open.values(), *self._past.values())
        return next((record for record in records if record.id == finding_id), None)

    def verdict(self, run_id: str, is_over: bool) -> dict[str, Any]:
        """What the list of runs says of a run.

        Args:
            run_id: the run.
            is_over: it has ended or is lost: what held to the end counts.
        """
        records = self.open_of(run_id)
        if is_over:
            records += [r for r in self._past.values() if r.is_final and r.run_id == run_id]
        return verdict(records, self._clock_ns())

    def report(self, run_id: str, rank: int | None, kind: str, finding: Finding | None) -> None:
        """Say what holds now of a kind without subjects; ``None`` resolves what was open."""
        record = self._open.get((run_id, rank, kind, ""))
        now_ns = self._clock_ns()
        if finding is not None:
            self._take(run_id, rank, finding, record, now_ns)
        elif record is not None:
            self.resolve(record, now_ns)

    def judged(self, judgement: Judgement, where: dict[int, tuple[int, int]]) -> None:
        """Take what all judges say of a run: what they do not find any more is over.

        Args:
            judgement: what they say.
            where: life of each rank, and what its steps are numbered from.
        """
        run_id, now_ns = judgement.run_id, self._clock_ns()
        before = [record for record in self.open_of(run_id) if record.judge]
        seen: set[str] = set()
        for found, record in match(before, across_ranks(judgement.found)):
            seen_as = self._take_found(run_id, found, record, now_ns)
            if seen_as is not None:
                seen_as.judge = found.judge
                life = where.get(min(found.finding.ranks, default=-1), (0, 0))
                seen_as.data = seen_as.data | {"life": life[0], "step_offset": life[1]}
                seen.add(seen_as.id)
        for record in before:
            if record.id not in seen and _was_looked_for(record, judgement):
                self._miss(record, now_ns)

    def resolve(self, record: FindingRecord, time_ns: int, *, is_final: bool = False) -> None:
        """A finding is over, or (``is_final``) its rank is."""
        del self._open[_key(record)]
        record.resolve(time_ns, is_final=is_final)
        self._keep_past(record)
        self.tell(record)
        self._told_ns.pop(record.id, None)

    def forget(self, record: FindingRecord) -> None:
        """Another server goes on with it."""
        self._open.pop(_key(record), None)

    def tell(self, record: FindingRecord) -> None:
        """Hand a finding on as it is now, and store it."""
        now_ns = self._clock_ns()
        self._told_ns[record.id] = now_ns
        self._untold.discard(record.id)
        record.touch(now_ns)
        self.writer.note(record)
        self._audience.publish_finding(record.run_id, record.payload(now_ns))
        self._audience.run_changed(record.run_id)

    def _take_found(
        self, run_id: str, found: Found, record: FindingRecord | None, now_ns: int
    ) -> FindingRecord | None:
        finding = found.finding
        is_vaguer = (
            record is not None and record.stage == "confirmed" and finding.stage == "suspected"
        )
        if record is not None and is_vaguer and not finding.subject:
            # The line is known; that it has to be looked for anew changes nothing.
            record.seen_ns, record.missed = now_ns, 0
            return record
        rank = finding.ranks[0] if len(finding.ranks) == 1 else None
        return self._take(run_id, rank, finding, record, now_ns)

    def _take(
        self,
        run_id: str,
        rank: int | None,
        finding: Finding,
        record: FindingRecord | None,
        now_ns: int,
    ) -> FindingRecord | None:
        if record is None:
            return self._open_one(run_id, rank, finding, now_ns)
        before = _key(record)
        was_stage = record.stage
        record.rank = rank
        has_changed = record.take(finding, now_ns)
        record.seen_ns, record.missed = now_ns, 0
        if _key(record) != before:
            del self._open[before]
            self._open[_key(record)] = record
        if has_changed:
            self._untold.add(record.id)
        # A clock that was set back must not make the words wait for it.
        waited_ns = abs(now_ns - self._told_ns.get(record.id, 0))
        is_urgent = record.stage != was_stage
        if record.id in self._untold and (is_urgent or waited_ns >= _RETOLD_NS):
            self.tell(record)
        return record

    def _open_one(
        self, run_id: str, rank: int | None, finding: Finding, now_ns: int
    ) -> FindingRecord | None:
        if len(self._open) >= MAX_OPEN:
            return None
        record = opened(run_id, finding, rank, now_ns)
        key = _key(record)
        if key in self._open:  # two judges say the same
            return self._open[key]
        past = self._past.get(key)
        if past is not None and past.may_reopen(now_ns):
            del self._past[key]
            record = past
            record.take(finding, now_ns)
            record.seen_ns = now_ns
            record.reopen(now_ns)
        else:
            record.muted = self.mutes.of(record)
        self._open[key] = record
        self.tell(record)
        return record

    def _miss(self, record: FindingRecord, now_ns: int) -> None:
        record.missed += 1
        if record.missed >= _MISSED and abs(now_ns - record.seen_ns) >= _MISSED_NS:
            self.resolve(record, now_ns)

    def _keep_past(self, record: FindingRecord) -> None:
        self._past[_key(record)] = record
        self._past.move_to_end(_key(record))
        while len(self._past) > MAX_PAST:
            self._past.popitem(last=False)


def _key(record: FindingRecord) -> Key:
    return record.run_id, record.rank, record.kind, record.subject


def _was_looked_for(record: FindingRecord, judgement: Judgement) -> bool:
    """Whether its judge was asked about its ranks, and answered."""
    if record.kind in _STAYS:
        return False
    if any(failure.judge == record.judge for failure in judgement.failures):
        return False
    return not record.ranks or not judgement.ranks.isdisjoint(record.ranks)
