"""Restarts, lost ranks and phases of a generated run, in the shapes that the API sends.

Rows of a run follow from their place on one axis of steps; what each life calls its steps is the
place less the place at which it began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tests.support.page_scenario import Scenario

SECOND_NS = 1_000_000_000


def begins(scenario: Scenario, rank: int) -> list[int]:
    """Place after which each life of a rank begins."""
    if scenario.restarted_ranks is not None and rank not in scenario.restarted_ranks:
        return [0]
    times = [scenario.created_s - ago_s for ago_s in scenario.restarted_ago_s]
    return [0, *(scenario.last_step(int(time_s * SECOND_NS)) for time_s in times)]


def life_of(scenario: Scenario, places: NDArray[np.int64], rank: int) -> NDArray[np.int64]:
    """Which life each place belongs to."""
    edges = np.array(begins(scenario, rank)[1:], dtype=np.int64)
    return np.searchsorted(edges, places, side="left").astype(np.int64)


def lost_ns(scenario: Scenario, rank: int) -> int | None:
    """When a rank was heard of last, if it is lost."""
    if rank not in scenario.lost_ranks:
        return None
    return int((scenario.created_s - scenario.lost_ago_s) * SECOND_NS)


def lives(scenario: Scenario, rank: int) -> list[dict[str, Any]]:
    """Every process of a rank, oldest first."""
    starts = begins(scenario, rank)
    end_ns = lost_ns(scenario, rank) or scenario.end_ns
    shown: list[dict[str, Any]] = []
    for life, start in enumerate(starts):
        is_last = life == len(starts) - 1
        stop = scenario.last_step(end_ns) if is_last else starts[life + 1]
        began_ns = scenario.started_ns + int(start * scenario.step_s * SECOND_NS)
        failed = not is_last and rank == (scenario.restarted_ranks or (0,))[0]
        shown.append(
            {
                "life": life,
                "stream": f"{rank:030x}{life:02x}",
                "process": f"{rank:014x}{life:02x}",
                "kind": "restart" if life else "start",
                "host": f"node{rank // 8}",
                "pid": 4100 + rank + 178 * life,
                "started_ns": began_ns if life else scenario.started_ns,
                "last_seen_ns": end_ns if is_last else began_ns,
                "ended_ns": began_ns + SECOND_NS if failed else None,
                "end_reason": "exception" if failed else None,
                "end_text": "RuntimeError: NCCL communicator was aborted" if failed else None,
                "exit_code": 1 if failed else None,
                "first_step": 1,
                "last_step": stop - start,
                "step_offset": start,
            }
        )
    return shown


def phases(scenario: Scenario, rank: int) -> list[dict[str, Any]]:
    """Events of the phases that the counters show: evaluations, and a checkpoint after each."""
    if not scenario.tells_phases:
        return []
    found: list[dict[str, Any]] = []
    last = scenario.last_step(lost_ns(scenario, rank) or scenario.end_ns)
    for first in range(960, last, 500):
        stretches = [("eval", 1, first, first + 40), ("checkpoint", 2, first + 40, first + 46)]
        for name, code, start, stop in stretches:
            if start > last:
                continue
            is_open = stop > last
            starts = begins(scenario, rank)
            numbers = [
                n - starts[int(life_of(scenario, np.array([n]), rank)[0])] for n in (start, stop)
            ]
            start_ns = scenario.started_ns + int(start * scenario.step_s * SECOND_NS)
            end_ns = scenario.started_ns + int(stop * scenario.step_s * SECOND_NS)
            found.append(
                {
                    "time_ns": start_ns,
                    "rank": rank,
                    "step": numbers[0],
                    "kind": "phase",
                    "text": name,
                    "data": {
                        "id": len(found) + 1,
                        "phase": name,
                        "code": code,
                        "source": "callback",
                        "start_ns": start_ns,
                        "end_ns": None if is_open else end_ns,
                        "end_step": None if is_open else numbers[1],
                        "count": 1,
                        "skipped": 0,
                    },
                }
            )
    return found
