"""Ends of steps, told by the agent or by the optimizers' scopes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.made_moments import entry, recorded, scope, snapshot
from vramscope_analysis.moments.step_ends import optimizer_starts, scopes_of, step_ends
from vramscope_analysis.snapshot import Snapshot

TIMES = np.array([100, 200, 300, 400])


def made(*annotations: list[dict[str, Any]]) -> Snapshot:
    trace = [entry("alloc", int(at), 512, time_us=int(at)) for at in TIMES]
    return snapshot(trace, annotations=[edge for one in annotations for edge in one])


def test_the_optimizers_scopes_tell_where_steps_end() -> None:
    ends = step_ends(
        made(scope("Optimizer.step#A.step", 150, 200), scope("Optimizer.step#A.step", 250, 350)),
        0,
        TIMES,
    )
    assert [(end.time_us, end.moment, end.step, end.ordinal) for end in ends] == [
        (200, 1, None, 1),
        (350, 2, None, 2),
    ]


def test_what_the_agent_noted_goes_first() -> None:
    annotated = made(scope("Optimizer.step#A.step", 150, 200))
    ends = step_ends(annotated, 0, TIMES, [(8, 250), (7, 50)])
    assert [(end.step, end.moment) for end in ends] == [(7, -1), (8, 1)]


def test_scopes_without_an_end_are_left_out() -> None:
    nested = [*scope("outer", 100, 400), *scope("inner", 150, 200)]
    lost = [{"name": "lost", "stage": "START", "device": 0, "time_us": 120}]
    scopes = scopes_of(made(nested, lost), 0)
    assert [(one.name, one.start_us, one.end_us) for one in scopes] == [
        ("outer", 100, 400),
        ("inner", 150, 200),
    ]
    assert optimizer_starts(scopes) == []


def test_a_recorded_run_has_its_steps() -> None:
    memory = recorded("fixed__default")
    assert [end.ordinal for end in memory.step_ends] == list(range(1, 21))
    starts = optimizer_starts(memory.scopes)
    assert all(a < end.time_us for a, end in zip(starts, memory.step_ends, strict=True))
