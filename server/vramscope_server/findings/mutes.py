"""What people do not want to hear of: one finding, or a line in every run of a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

from vramscope_protocol.errors import BAD_REQUEST, VramscopeError
from vramscope_server.findings.record import FindingRecord
from vramscope_server.store import finding_mutes, findings
from vramscope_server.store.store import Store

Until = Literal["run", "line", "day"]

MAX_RULES: Final = 10_000
"""Lines that are muted in all; beyond it no more can be."""

_DAY_NS: Final = 24 * 3600 * 10**9


class RunNames(Protocol):
    """What is read of the registry."""

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        ...


class Mutes:
    """The rules, and the findings that they are for. Lives on the event loop."""

    def __init__(self, store: Store, registry: RunNames, clock_ns: Callable[[], int]) -> None:
        self._store = store
        self._registry = registry
        self._clock_ns = clock_ns
        self._lines: dict[tuple[str, str, str], dict[str, Any]] = {}
        """By name of the run, kind and subject."""
        self._runs: dict[tuple[str, str, str], dict[str, Any]] = {}
        """By id of the run, kind and subject."""

    async def start(self) -> None:
        """Load the rules."""
        for key, muted in await self._store.read(finding_mutes.list_rules):
            self._lines[key] = muted

    def learn(self, record: FindingRecord) -> None:
        """A finding of the store: what is muted for its run is muted when it comes again."""
        if record.muted is not None and record.muted.get("until") == "run":
            self._runs[record.run_id, record.kind, record.subject] = record.muted

    def of(self, record: FindingRecord) -> dict[str, Any] | None:
        """Whether one that has just been opened is muted."""
        in_run = self._runs.get((record.run_id, record.kind, record.subject))
        return in_run or self._lines.get(self._line(record))

    async def mute(
        self, record: FindingRecord, until: Until, reason: str, who: str
    ) -> dict[str, Any]:
        """Mute a finding; the caller tells it.

        Raises:
            VramscopeError: ``bad_request``, or ``internal`` if it could not be stored.
        """
        now_ns = self._clock_ns()
        muted = {
            "until": until,
            "reason": reason,
            "by": who,
            "muted_ns": now_ns,
            "until_ns": now_ns + _DAY_NS if until == "day" else None,
        }
        line = self._line(record)
        if until == "line":
            if not record.subject:
                raise VramscopeError(BAD_REQUEST, "until: expected run or day, it has no line yet")
            if len(self._lines) >= MAX_RULES and line not in self._lines:
                raise VramscopeError(BAD_REQUEST, f"expected at most {MAX_RULES} muted lines")
        await self._store.write(lambda c: findings.set_muted(c, record.id, muted))
        if until == "line":
            await self._store.write(lambda c: finding_mutes.put(c, line, muted))
            self._lines[line] = muted
        if until == "run":
            self._runs[record.run_id, record.kind, record.subject] = muted
        record.muted = muted
        return muted

    async def unmute(self, record: FindingRecord, *, in_all_runs: bool = True) -> None:
        """Hear of it again; a line in every run of the name.

        Args:
            record: which finding.
            in_all_runs: False leaves a rule about its line as it is: other runs have it too.

        Raises:
            VramscopeError: ``internal``: it could not be stored.
        """
        line = self._line(record)
        await self._store.write(lambda c: findings.set_muted(c, record.id, None))
        if in_all_runs and line in self._lines:
            await self._store.write(lambda c: finding_mutes.delete(c, line))
            del self._lines[line]
        self._runs.pop((record.run_id, record.kind, record.subject), None)
        record.muted = None

    def _line(self, record: FindingRecord) -> tuple[str, str, str]:
        run = self._registry.run(record.run_id)
        return ("" if run is None else run.get("name", ""), record.kind, record.subject)
