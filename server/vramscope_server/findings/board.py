"""The findings that are open: opened, brought up to date, resolved, told and stored.

Whoever judges reports what holds now, each time anew; the board knows what was open before. So a
kind of finding needs no memory of its own, and goes on over a restart of the server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_server.findings.finding_writer import FindingWriter
from vramscope_server.findings.judging import Judgement
from vramscope_server.findings.matching import match
from vramscope_server.findings.mutes import Mutes
from vramscope_server.findings.record import FindingRecord, opened
from vramscope_server.findings.shelf import Shelf, key_of
from vramscope_server.findings.verdict import verdict
from vramscope_server.store.store import Store

_RETOLD_NS: Final = 10 * 10**9
"""New words for an open finding are told and stored at most this often."""
_MISSED: Final = 3
_MISSED_NS: Final = 6 * 10**9
"""A finding is over when so many judgements in a row, over so long, do not find it."""
_STAYS: Final = frozenset({"oom"})
"""What has happened does not end by not being found again."""


class _Source(NamedTuple):
    """Who made a finding, and of which life its step numbers are."""

    judge: str
    life: int
    step_offset: int


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
        self._shelf = Shelf()
        self._told_ns: dict[str, int] = {}
        self._untold: set[str] = set()

    def adopt(self, records: Iterable[FindingRecord]) -> None:
        """Take up findings of the store that are not known here, oldest first."""
        known = self._shelf.ids()
        for record in sorted(records, key=lambda record: record.opened_ns):
            if record.id in known or (record.resolved_ns is None and self._shelf.is_full):
                continue
            twin = self._shelf.open(key_of(record)) if record.resolved_ns is None else None
            if twin is not None and set(twin.ranks).isdisjoint(record.ranks) and twin.ranks:
                continue  # of ranks that another server has
            self.mutes.learn(record)
            record.seen_ns = self._clock_ns()
            self._shelf.put(record)
            if twin is not None:  # two servers opened it: nobody would ever end the other one
                self.resolve(twin, record.seen_ns)

    def is_open(self, run_id: str, rank: int | None, kind: str, subject: str = "") -> bool:
        """Whether such a finding holds."""
        return self._shelf.open((run_id, rank, kind, subject)) is not None

    def open_of(self, run_id: str) -> list[FindingRecord]:
        """The findings of a run that hold."""
        return self._shelf.open_of(run_id)

    def runs(self) -> list[str]:
        """Runs with findings that hold."""
        return self._shelf.runs()

    def find(self, finding_id: str) -> FindingRecord | None:
        """A finding that is open, or was a while ago."""
        return self._shelf.find(finding_id)

    def verdict(self, run_id: str, is_over: bool) -> dict[str, Any]:
        """What the list of runs says of a run.

        Args:
            run_id: the run.
            is_over: it has ended or is lost: what held to the end counts.
        """
        final = self._shelf.final_of(run_id) if is_over else []
        return verdict([*self._shelf.open_of(run_id), *final], self._clock_ns())

    def report(self, run_id: str, rank: int | None, kind: str, finding: Finding | None) -> None:
        """Say what holds now of a kind without subjects; ``None`` resolves what was open."""
        record = self._shelf.open((run_id, rank, kind, ""))
        now_ns = self._clock_ns()
        if finding is not None:
            self._take(run_id, rank, finding, record, now_ns)
        elif record is not None:
            self.resolve(record, now_ns)

    def judged(
        self, judgement: Judgement, where: Mapping[int, tuple[int, int]], over: frozenset[int]
    ) -> None:
        """Take what all judges say of a run: what they do not find any more is over.

        Args:
            judgement: what they say, ranks put together.
            where: life of each rank, and what its steps are numbered from.
            over: ranks that have ended: what held to the end is brought up to date, and no more.
        """
        run_id, now_ns = judgement.run_id, self._clock_ns()
        before = [record for record in self.open_of(run_id) if record.judge]
        seen: set[str] = set()
        for found, record in match(before, judgement.found):
            life = where.get(min(found.finding.ranks, default=-1), (0, 0))
            source = _Source(found.judge, *life)
            taken = self._take_found(run_id, found.finding, record, now_ns, over, source)
            if taken is not None:
                seen.add(taken.id)
        for record in before:
            if record.id not in seen and _was_looked_for(record, judgement):
                record.missed += 1
                if record.missed >= _MISSED and abs(now_ns - record.seen_ns) >= _MISSED_NS:
                    self.resolve(record, now_ns)

    def resolve(self, record: FindingRecord, time_ns: int, *, is_final: bool = False) -> None:
        """A finding is over, or (``is_final``) its rank is."""
        self._shelf.take_away(record)
        record.resolve(time_ns, is_final=is_final)
        self._shelf.put(record)
        self.tell(record)
        self._told_ns.pop(record.id, None)

    def forget(self, record: FindingRecord) -> None:
        """Another server goes on with it."""
        self._shelf.take_away(record)
        self._told_ns.pop(record.id, None)
        self._untold.discard(record.id)

    def tell(self, record: FindingRecord) -> None:
        """Hand a finding on as it is now, and store it."""
        now_ns = self._clock_ns()
        if record.resolved_ns is None:
            self._told_ns[record.id] = now_ns
        self._untold.discard(record.id)
        record.touch(now_ns)
        self.writer.note(record)
        self._audience.publish_finding(record.run_id, record.payload(now_ns))
        self._audience.run_changed(record.run_id)

    def _take_found(
        self,
        run_id: str,
        finding: Finding,
        record: FindingRecord | None,
        now_ns: int,
        over: frozenset[int],
        source: _Source,
    ) -> FindingRecord | None:
        if record is not None and record.stage == "confirmed" and finding.stage == "suspected":
            # The line is known; that it has to be looked for anew changes nothing.
            record.seen_ns, record.missed = now_ns, 0
            return record
        rank = finding.ranks[0] if len(finding.ranks) == 1 else None
        past = self._shelf.past((run_id, rank, finding.kind, finding.subject))
        if record is None and past is not None and past.is_final and over.issuperset(past.ranks):
            if past.take(finding, now_ns):
                self.tell(past)
            return past
        return self._take(run_id, rank, finding, record, now_ns, source)

    def _take(
        self,
        run_id: str,
        rank: int | None,
        finding: Finding,
        record: FindingRecord | None,
        now_ns: int,
        source: _Source | None = None,
    ) -> FindingRecord | None:
        if record is None:
            return self._open_one(run_id, rank, finding, now_ns, source)
        before, was_stage = key_of(record), record.stage
        self._shelf.take_away(record)
        record.rank = rank
        _note_source(record, source)
        is_of_others = key_of(record) != before  # of several ranks, where it was of one
        has_changed = record.take(finding, now_ns) or is_of_others
        record.seen_ns, record.missed = now_ns, 0
        self._shelf.put(record)
        if has_changed:
            self._untold.add(record.id)
        # A clock that was set back must not make the words wait for it.
        waited_ns = abs(now_ns - self._told_ns.get(record.id, 0))
        is_urgent = record.stage != was_stage or is_of_others
        if record.id in self._untold and (is_urgent or waited_ns >= _RETOLD_NS):
            self.tell(record)
        return record

    def _open_one(
        self,
        run_id: str,
        rank: int | None,
        finding: Finding,
        now_ns: int,
        source: _Source | None,
    ) -> FindingRecord | None:
        record = opened(run_id, finding, rank, now_ns)
        known, past = self._shelf.open(key_of(record)), self._shelf.past(key_of(record))
        if known is not None or self._shelf.is_full:
            return known  # two judges say the same
        if past is not None and past.may_reopen(now_ns):
            self._shelf.take_away(past)
            past.take(finding, now_ns)
            past.reopen(now_ns)
            record = past
            record.seen_ns = now_ns
        else:
            record.muted = self.mutes.of(record)
        _note_source(record, source)
        self._shelf.put(record)
        self.tell(record)
        return record


def _note_source(record: FindingRecord, source: _Source | None) -> None:
    if source is not None:
        record.judge = source.judge
        life = {"life": source.life, "step_offset": source.step_offset}
        record.data = record.data | life


def _was_looked_for(record: FindingRecord, judgement: Judgement) -> bool:
    """Whether its judge was asked about its ranks, and answered."""
    if record.kind in _STAYS or record.judge in judgement.not_asked:
        return False
    if record.judge in judgement.failures:
        return False
    return not record.ranks or not judgement.ranks.isdisjoint(record.ranks)
