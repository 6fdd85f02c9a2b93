"""Reports of running out of memory as an agent sends them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from vramscope_protocol.messages import OomBegin

MIB = 1 << 20


def made_report(identity: str = "o1", **fields: Any) -> dict[str, Any]:
    """A report of a job whose batch did not fit."""
    return {
        "format": "vramscope-oom",
        "version": 1,
        "id": identity,
        "run": "0123456789ab",
        "rank": 0,
        "time_ns": 1_800_000_000_000_000_000,
        "linked_to": "",
        "source": "observer",
        "detail": "full",
        "complete": True,
        "skipped": 0,
        "notes": [],
        "step": 7,
        "phase": "",
        "part": "forward",
        "thread": "MainThread",
        "message": "",
        "request_bytes": None,
        "segment_bytes": 20 * MIB,
        "allowed_bytes": 900 * MIB,
        "device_free_bytes": 4 * MIB,
        "device_total_bytes": 900 * MIB,
        "counters": {"allocated_bytes.all.current": 890 * MIB, "num_ooms": 1},
        "threads": [{"name": "MainThread", "raised": True, "frames": []}],
        **fields,
    }


def wire_oom(identity: str = "o1", **fields: Any) -> tuple[OomBegin, bytes]:
    """What announces a report, and the report."""
    report = made_report(identity, **fields)
    data = json.dumps(report).encode()
    begin = OomBegin(
        identity,
        report["run"],
        report["rank"],
        report["time_ns"],
        len(data),
        hashlib.sha256(data).hexdigest(),
        step=report["step"],
        linked_to=report["linked_to"],
    )
    return begin, data
