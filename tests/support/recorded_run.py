"""Recordings of benchmarks/record_traces.py: a trace, and the truth that was recorded beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.allocator_traces import FOLDER
from vramscope_analysis.snapshot import Snapshot, read_snapshot


@dataclass(frozen=True)
class Row:
    """Counters after a step."""

    event: int
    """Number of trace entries before it."""
    time_us: int
    counters: dict[str, int]


@dataclass(frozen=True)
class UnloggedCall:
    """A call that left no trace entry."""

    name: str
    event: int
    """Number of trace entries before it."""
    time_us: int
    details: Mapping[str, Any]


@dataclass(frozen=True)
class RecordedRun:
    """One recording with its truth; see benchmarks/README.md."""

    snapshot: Snapshot
    conf: str
    version: tuple[int, int]
    capacity_bytes: int
    limit_bytes: int | None
    rows: list[Row]
    calls: list[UnloggedCall]
    final_stats: dict[str, int]


def names() -> list[str]:
    """Recordings of the second format in the test data."""
    return [
        path.stem
        for path in sorted(FOLDER.glob("*.json"))
        if json.loads(path.read_text()).get("format") == 2
    ]


def load_run(name: str, folder: Path = FOLDER) -> RecordedRun:
    """Read one recording and its truth."""
    truth = json.loads((folder / f"{name}.json").read_text())
    counters = truth["columns"][1:]
    major, minor = truth["torch"].split(".")[:2]
    return RecordedRun(
        snapshot=read_snapshot(folder / f"{name}.pickle.gz"),
        conf=truth["conf"],
        version=(int(major), int(minor)),
        capacity_bytes=truth["capacity_bytes"],
        limit_bytes=truth["limit_bytes"],
        rows=[
            Row(event, time_us, dict(zip(counters, row[1:], strict=True)))
            for row, event, time_us in zip(
                truth["steps"], truth["events"], truth["times_us"], strict=True
            )
        ],
        calls=[_call(call) for call in truth["calls"]],
        final_stats=truth["final_stats"],
    )


def _call(noted: dict[str, Any]) -> UnloggedCall:
    details = dict(noted)
    name, event, time_us = (details.pop(key) for key in ("call", "events", "time_us"))
    return UnloggedCall(name, event, time_us, details)


def differences(expected: Mapping[str, int], got: Mapping[str, int]) -> list[str]:
    """Counters that are not as expected; other ones in ``got`` do not matter."""
    return [
        f"{name}: expected {value}, got {got.get(name)}"
        for name, value in expected.items()
        if got.get(name) != value
    ]
