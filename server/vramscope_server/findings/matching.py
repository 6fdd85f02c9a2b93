"""Which open finding it is that a judge has found again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vramscope_server.findings.across_ranks import ALONE, GROWTH
from vramscope_server.findings.judging import Found
from vramscope_server.findings.record import FindingRecord


def match(
    records: Iterable[FindingRecord], found: Sequence[Found]
) -> list[tuple[Found, FindingRecord | None]]:
    """Pair what was found with what is open; each record goes on as one finding at most.

    Args:
        records: the open ones of the run.
        found: what holds now, ranks put together.
    """
    left = list(records)
    pairs: list[tuple[Found, FindingRecord | None]] = []
    # The exact ones first, so that a vague one does not take their record.
    for is_same in (_is_same, _is_known_by_now, _is_looked_into):
        still: list[Found] = []
        for each in found:
            record = next((one for one in left if is_same(one, each)), None)
            if record is None:
                still.append(each)
            else:
                left.remove(record)
                pairs.append((each, record))
        found = still
    return [*pairs, *((each, None) for each in found)]


def _is_same(record: FindingRecord, found: Found) -> bool:
    finding = found.finding
    return (record.kind, record.subject) == (finding.kind, finding.subject) and _touches(
        record, found
    )


def _is_known_by_now(record: FindingRecord, found: Found) -> bool:
    """What was only suspected, and whose line and kind are known by now."""
    return (
        record.stage == "suspected"
        and not record.subject
        and _may_be(record.kind, found.finding.kind)
        and _touches(record, found)
    )


def _is_looked_into(record: FindingRecord, found: Found) -> bool:
    """What has a line, of which less is known again: after a restart."""
    return (
        found.finding.stage == "suspected"
        and not found.finding.subject
        and _may_be(record.kind, found.finding.kind)
        and record.stage == "confirmed"
        and _touches(record, found)
    )


def _may_be(kind: str, other: str) -> bool:
    """Whether what looks like one kind may be another."""
    return kind == other or (kind in GROWTH and other in GROWTH)


def _touches(record: FindingRecord, found: Found) -> bool:
    if not record.ranks or not found.finding.ranks or found.finding.kind == "rank_imbalance":
        return found.finding.kind == "rank_imbalance" or record.ranks == found.finding.ranks
    if found.finding.kind in ALONE:
        return record.ranks == found.finding.ranks
    return not set(record.ranks).isdisjoint(found.finding.ranks)
