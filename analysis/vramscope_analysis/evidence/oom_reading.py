"""Reports of running out of memory, read from files that nobody vouches for.

The process that wrote a report was about to die, may have been of another release, or may not have
been vramscope at all. So what is missing, unknown or of the wrong type is left out, and nothing in
a report can make it larger than its file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from vramscope_analysis.evidence.entry_values import is_object
from vramscope_analysis.evidence.oom_entries import oom_entries
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.told_values import (
    told_amount,
    told_amounts,
    told_rows,
    told_text,
    told_whole,
)

MAX_FILE_BYTES: Final = 64 << 20
"""A larger file is refused: reports of large jobs have a few hundred KiB."""
MAX_MESSAGE: Final = 20_000

_AMOUNTS: Final = (
    "time_ns",
    "request_bytes",
    "segment_bytes",
    "allowed_bytes",
    "device_free_bytes",
    "device_total_bytes",
    "garbage_bytes",
)
_ENTRIES: Final = ("free_blocks", "by_stack", "by_size", "largest", "processes", "outside")
_SIGNS: Final = ("request_bytes", "segment_bytes", "message", "counters", "free_blocks", "source")
"""A JSON object with at least two of them, and a time, is such a report."""


class OomReportError(ValueError):
    """What was given is no report, in one line: what was expected and what came."""


def read_oom_report(data: bytes | str) -> OomReport:
    """The report in the bytes of its file.

    Raises:
        OomReportError: it is larger than ``MAX_FILE_BYTES``, no JSON, or something else in JSON.
    """
    if len(data) > MAX_FILE_BYTES:
        raise OomReportError(f"expected at most {MAX_FILE_BYTES:,} bytes, got {len(data):,}")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise OomReportError(f"expected a report in JSON, got: {error}") from None
    if not looks_like_oom_report(value):
        raise OomReportError("expected a report of running out of memory, got other JSON")
    return oom_report_of(value)


def looks_like_oom_report(value: object) -> bool:
    """Whether decoded JSON is such a report."""
    if not is_object(value) or told_amount(value.get("time_ns")) is None:
        return False
    return sum(sign in value for sign in _SIGNS) >= 2


def oom_report_of(value: object, *, id: str = "") -> OomReport:
    """The report in decoded JSON; whatever is not as it should be is not known.

    Args:
        value: what ``json.loads`` gave.
        id: of the stored report, if the JSON does not say it.
    """
    told: Mapping[str, Any] = value if is_object(value) else {}
    amounts = {name: told_amount(told.get(name)) for name in _AMOUNTS}
    settings = told.get("settings")
    return OomReport(
        id=told_text(told.get("id"), 200) or id,
        time_ns=amounts["time_ns"] or 0,
        step=told_whole(told.get("step")),
        phase=told_text(told.get("phase"), 200),
        part=told_text(told.get("part"), 200),
        thread=told_text(told.get("thread"), 200),
        source=told_text(told.get("source"), 40) or "observer",
        message=told_text(told.get("message"), MAX_MESSAGE),
        request_bytes=amounts["request_bytes"],
        segment_bytes=amounts["segment_bytes"],
        allowed_bytes=amounts["allowed_bytes"],
        device_free_bytes=amounts["device_free_bytes"],
        device_total_bytes=amounts["device_total_bytes"],
        counters=told_amounts(told.get("counters")),
        by_category=told_amounts(told.get("by_category")),
        garbage_bytes=amounts["garbage_bytes"],
        samples=told_rows(told.get("samples")),
        steps=told_rows(told.get("steps")),
        settings=told_text(settings) if isinstance(settings, str) else None,
        threads=tuple(
            {"name": "", "frames": [], **thread} for thread in oom_entries(told.get("threads"))
        ),
        recovered_step=told_whole(told.get("recovered_step")),
        world_size=max(told_amount(told.get("world_size")) or 1, 1),
        grad_enabled=_flag(told.get("grad_enabled")),
        new_sizes=_sizes(told.get("new_sizes")),
        skipped=told_amount(told.get("skipped")) or 0,
        complete=told.get("complete") is not False,
        **{name: oom_entries(told.get(name)) for name in _ENTRIES},
    )


def _sizes(value: object) -> dict[str, Mapping[str, int]]:
    if not is_object(value):
        return {}
    return {name: told_amounts(value[name]) for name in ("before", "after") if name in value}


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
