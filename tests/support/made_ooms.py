"""Reports of running out of memory, made up for what a test wants them to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.oom_report import OomReport

MIB = 1 << 20
GIB = 1 << 30
STEP_NS = 10**8


def step_rows(
    peaks_mib: Sequence[float],
    floors_mib: Sequence[float] | float = 100,
    **columns: Sequence[float] | float,
) -> Rows:
    """Steps 1, 2, ... with their peaks and floors; further columns as they are."""
    count = len(peaks_mib)
    floors = np.broadcast_to(np.asarray(floors_mib, float) * MIB, count)
    more = {name: np.broadcast_to(np.asarray(values), count) for name, values in columns.items()}
    return Rows(
        np.arange(1, count + 1, dtype=np.int64) * STEP_NS,
        {
            "allocated_bytes.all.current": floors.astype(np.int64),
            "step.peak_allocated_bytes": (np.asarray(peaks_mib, float) * MIB).astype(np.int64),
            **more,
        },
        np.arange(1, count + 1, dtype=np.int64),
    )


def made_oom(
    steps: Rows | None = None,
    *,
    allocated_mib: float = 900,
    request_mib: float = 200,
    pieces_mib: float = 0,
    limit_mib: float = 1024,
    total_mib: float = 1024,
    free_mib: float | None = None,
    **fields: Any,
) -> OomReport:
    """A report by its sizes: what is free in pieces is in pieces of at most a tenth of it.

    Args:
        steps: the steps before; without, it is the first.
        allocated_mib, request_mib, pieces_mib, limit_mib, total_mib: sizes.
        free_mib: free on the device; what is left of it if only this process was there.
        fields: further fields of the report.
    """
    rows = step_rows([]) if steps is None else steps
    reserved = allocated_mib + pieces_mib
    free = total_mib - reserved if free_mib is None else free_mib
    large = {
        "pool": "large",
        "stream": 0,
        "bytes": int(pieces_mib * MIB),
        "count": 10,
        "largest_bytes": int(pieces_mib * MIB / 10),
        "returnable_bytes": 0,
    }
    report = OomReport(
        id="r1",
        time_ns=len(rows) * STEP_NS + STEP_NS // 2,
        step=len(rows),
        request_bytes=int(request_mib * MIB),
        segment_bytes=int(request_mib * MIB),
        allowed_bytes=int(limit_mib * MIB),
        device_free_bytes=int(free * MIB),
        device_total_bytes=int(total_mib * MIB),
        counters={
            "allocated_bytes.all.current": int(allocated_mib * MIB),
            "active_bytes.all.current": int(allocated_mib * MIB),
            "reserved_bytes.all.current": int(reserved * MIB),
        },
        free_blocks=(large,),
        steps=rows,
        settings="",
    )
    return replace(report, **fields)


def asking(*frames: tuple[str, int, str], name: str = "MainThread") -> dict[str, Any]:
    """A thread that asked for memory, its frames as (file, line, function), innermost first."""
    told = [{"file": file, "line": line, "function": function} for file, line, function in frames]
    return {"name": name, "raised": True, "frames": told}


def tensor(words: str, size_mib: float, kind: str = "", **more: Any) -> Mapping[str, Any]:
    """One of the largest tensors, with a holder of a kind if there is one."""
    holder = {"kind": kind, "chain": ["kept", "list of 2"]} if kind else None
    return {
        "tensor": words,
        "bytes": int(size_mib * MIB),
        "category": "",
        "held_by": ["list of 2", "kept"] if kind else [],
        "holder": holder,
        **more,
    }
