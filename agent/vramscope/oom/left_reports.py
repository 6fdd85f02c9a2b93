"""Reports that a killed process has left on this machine: found, and delivered in its place.

A server that does not know the run refuses it. Then the file stays, and nothing is said of it: it
is no business of this job. ``vramscope diagnose`` reads it; in the end it is too old.
"""

from __future__ import annotations

import json
from typing import Any, Final

from vramscope.guard import Attempt
from vramscope.oom.oom_observer import Ship, begin_of
from vramscope.oom.report import FORMAT
from vramscope.oom.report_folder import ReportFile, ReportFolder
from vramscope_protocol.codec import MAX_OOM_BYTES

MAX_LEFT: Final = 16
"""Delivered by one process; the next one takes more."""


def ship_left(folder: ReportFolder, ship: Ship) -> int:
    """Deliver what lies there and belongs to nobody who lives; how many that are.

    Blocking: on a thread of the agent.

    Args:
        folder: where reports lie.
        ship: takes each.
    """
    folder.tidy()
    shipped = 0
    for file in folder.claim_left(MAX_LEFT):
        with Attempt() as attempt:
            found = _read(file)
            if found is None:
                file.delete()  # not whole, or not a report: nobody can do anything with it
                continue
            report, data = found
            ship(begin_of(report, data), file, b"")
            shipped += 1
        if attempt.error is not None:
            file.let_go()
    return shipped


def _read(file: ReportFile) -> tuple[dict[str, Any], bytes] | None:
    """A report, and its bytes; ``None`` if it is none.

    Raises:
        OSError: the file cannot be read now.
        MemoryError: there is no room for it now.
    """
    if file.size_bytes > MAX_OOM_BYTES:
        return None
    with open(file.path, "rb") as opened:
        data = opened.read(MAX_OOM_BYTES + 1)
    try:
        report: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(report, dict) or report.get("format") != FORMAT:  # pyright: ignore[reportUnknownMemberType]
        return None
    return report, data  # pyright: ignore[reportUnknownVariableType]
