"""One policy in one run: on which ranks its condition holds, and for how long. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from vramscope_analysis.diagnosis.finding import SEVERITIES
from vramscope_server.findings.record import FindingRecord
from vramscope_server.policies.definition import Definition, FindingCondition, SeriesCondition
from vramscope_server.policies.holding import Holding
from vramscope_server.policies.series_values import SeriesValues

_MOST_RANKS: Final = 4096


@dataclass(frozen=True)
class Met:
    """The condition has held for long enough.

    Args:
        ranks: where; empty is the run as a whole.
        value: the newest value of the series on the first of them.
        what: summary of the finding.
    """

    ranks: tuple[int, ...]
    held_s: float
    held_steps: int
    value: int | float | None = None
    what: str = ""


class Watch:
    """Takes what comes of a run, and says when the policy is due."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._ranks: dict[int, Holding] = {}
        self._finding = Holding()
        self._found: FindingRecord | None = None
        self._found_ranks: tuple[int, ...] = ()
        hold = definition.hold
        self._preferred = "step" if hold is not None and hold.steps is not None else "sample"

    @property
    def series(self) -> str | None:
        """The series that it is about; None: findings."""
        when = self.definition.when
        return when.series if isinstance(when, SeriesCondition) else None

    def take(self, rank: int, batch: SeriesValues) -> None:
        """New values of its series on a rank."""
        when = self.definition.when
        assert isinstance(when, SeriesCondition)
        holding = self._ranks.get(rank)
        if holding is None:
            if len(self._ranks) >= _MOST_RANKS:
                return
            holding = self._ranks[rank] = Holding()
        # A series may come with samples and with steps: one kind tells of it, the finer one for
        # seconds, that of each step for steps.
        if holding.kind == self._preferred != batch.kind:
            return
        holding.take(batch, when)

    def take_findings(self, records: Iterable[FindingRecord], now_ns: int, step: int) -> None:
        """The findings of the run that hold now."""
        when = self.definition.when
        assert isinstance(when, FindingCondition)
        found = [record for record in records if _counts(record, when, now_ns)]
        self._found = found[0] if found else None
        ranks = {rank for record in found for rank in record.ranks}
        is_of_run = any(not record.ranks for record in found)
        self._found_ranks = () if is_of_run else tuple(sorted(ranks))
        self._finding.note(bool(found), now_ns, step)

    def met(self, fresh: Collection[int]) -> Met | None:
        """Whether it is due.

        Args:
            fresh: ranks whose newest values are of now.
        """
        if isinstance(self.definition.when, FindingCondition):
            return self._met_by_finding()
        hold = self.definition.hold
        ranks = sorted(
            rank for rank, each in self._ranks.items() if rank in fresh and each.is_met(hold)
        )
        if not ranks or (self.definition.when.ranks == "all" and len(ranks) < len(fresh)):
            return None
        # The rank that it has held on for the shortest time speaks for all, else the longest one.
        by_time = sorted((self._ranks[rank].held_s or 0.0, rank) for rank in ranks)
        first = self._ranks[by_time[0 if self.definition.when.ranks == "all" else -1][1]]
        return Met(tuple(ranks), first.held_s or 0.0, first.held_steps or 0, first.value)

    def _met_by_finding(self) -> Met | None:
        holding, found = self._finding, self._found
        if found is None or not holding.is_met(self.definition.hold):
            return None
        held_s, held_steps = holding.held_s or 0.0, holding.held_steps or 0
        return Met(self._found_ranks, held_s, held_steps, what=found.summary)

    def state(self, fresh: Collection[int]) -> dict[str, Any]:
        """How things are, as the API has it."""
        if isinstance(self.definition.when, FindingCondition):
            return _state(self._finding, self._found is not None, self._found_ranks, "")
        ranks = [rank for rank, each in sorted(self._ranks.items()) if each.since_ns is not None]
        longest = max(self._ranks.values(), key=lambda each: each.held_s or -1.0, default=Holding())
        note = "" if self._ranks else "no rank has sent this series"
        if self._ranks and not fresh:
            note = "no rank sends anything that is of now"
        return _state(longest, bool(ranks), tuple(ranks), note)


def _state(holding: Holding, holds: bool, ranks: tuple[int, ...], note: str) -> dict[str, Any]:
    return {
        "holds": holds,
        "ranks": list(ranks),
        "held_s": holding.held_s,
        "held_steps": holding.held_steps,
        "value": holding.value,
        "note": note,
    }


def _counts(record: FindingRecord, when: FindingCondition, now_ns: int) -> bool:
    if when.finding is not None and record.kind != when.finding:
        return False
    if when.confirmed and record.stage != "confirmed":
        return False
    if record.muted_at(now_ns) is not None:
        return False
    return record.severity in SEVERITIES[SEVERITIES.index(when.severity) :]
