"""Where findings lie: those that hold, and those that are over and may hold again. Bounded."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from vramscope_server.findings.record import FindingRecord

MAX_OPEN: Final = 10_000
"""Findings that are open at once; beyond it no more are opened."""
MAX_PAST: Final = 4096
"""Findings that are over and may hold again; the oldest are forgotten first."""

Key = tuple[str, int | None, str, str]
"""Run, rank (None: several), kind, subject: the same one is the same finding."""


def key_of(record: FindingRecord) -> Key:
    """What a finding is told apart by."""
    return record.run_id, record.rank, record.kind, record.subject


class Shelf:
    """Findings by what they are told apart by, and by run."""

    def __init__(self) -> None:
        self._open: dict[Key, FindingRecord] = {}
        self._past: OrderedDict[Key, FindingRecord] = OrderedDict()
        self._open_of: dict[str, dict[Key, FindingRecord]] = {}
        self._final_of: dict[str, dict[Key, FindingRecord]] = {}

    @property
    def is_full(self) -> bool:
        """Whether no more can be opened."""
        return len(self._open) >= MAX_OPEN

    def open(self, key: Key) -> FindingRecord | None:
        """One that holds."""
        return self._open.get(key)

    def past(self, key: Key) -> FindingRecord | None:
        """One that is over."""
        return self._past.get(key)

    def find(self, finding_id: str) -> FindingRecord | None:
        """One with this id, whether it holds or is over."""
        records = (*self._open.values(), *self._past.values())
        return next((record for record in records if record.id == finding_id), None)

    def ids(self) -> set[str]:
        """Ids of all."""
        return {record.id for record in (*self._open.values(), *self._past.values())}

    def runs(self) -> list[str]:
        """Runs with findings that hold."""
        return list(self._open_of)

    def open_of(self, run_id: str) -> list[FindingRecord]:
        """Those of a run that hold."""
        return list(self._open_of.get(run_id, {}).values())

    def final_of(self, run_id: str) -> list[FindingRecord]:
        """Those of a run that held to the end."""
        return list(self._final_of.get(run_id, {}).values())

    def put(self, record: FindingRecord) -> None:
        """Lay one down where it belongs; what lay there is replaced."""
        key = key_of(record)
        if record.resolved_ns is None:
            self._open[key] = record
            self._open_of.setdefault(record.run_id, {})[key] = record
            return
        self._drop_past(key)
        self._past[key] = record
        if record.is_final:
            self._final_of.setdefault(record.run_id, {})[key] = record
        while len(self._past) > MAX_PAST:
            self._drop_past(next(iter(self._past)))

    def take_away(self, record: FindingRecord) -> None:
        """Take one away, before what it is told apart by changes."""
        key = key_of(record)
        if self._open.get(key) is record:
            del self._open[key]
            of_run = self._open_of[record.run_id]
            del of_run[key]
            if not of_run:
                del self._open_of[record.run_id]
        if self._past.get(key) is record:
            self._drop_past(key)

    def _drop_past(self, key: Key) -> None:
        record = self._past.pop(key, None)
        of_run = {} if record is None else self._final_of.get(record.run_id, {})
        if of_run.pop(key, None) is not None and not of_run:
            del self._final_of[key[0]]
