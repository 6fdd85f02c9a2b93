"""What a job asks its allocator for, step by step: told by a recorded window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.moments.lifetimes import Lifetimes
from vramscope_analysis.moments.recorded_memory import RecordedMemory

MIN_STEPS: Final = 2
"""One step recurs in nothing."""
MOST_SIZES: Final = 5
_ALIKE: Final = 0.75
"""With so many of the requests of a step, or so many more, it is one."""


@dataclass(frozen=True)
class Request:
    """One request, as the job made it.

    Args:
        bytes: what was asked for.
        stream: handle of the stream that it was for.
        place: what asked, as a person would say it; empty is not known.
        a_step: how many of its size come in each step; 0 is not known.
    """

    bytes: int
    stream: int
    place: str = ""
    a_step: float = 0.0


@dataclass(frozen=True)
class RecordedRequests:
    """The requests of a window.

    Args:
        count: how many there were.
        steps: whole steps that they lie in; 0 is not known.
        largest: the largest of all.
        every_step: each step asked for at least so much in one piece: of the largest requests of
            all steps the smallest. None with fewer than two whole steps.
        of_steps: the largest of each of these steps, in bytes.
        recurring: the largest sizes that come in every step, the largest first.
    """

    count: int
    steps: int
    largest: Request
    every_step: Request | None = None
    of_steps: tuple[int, ...] = ()
    recurring: tuple[Request, ...] = ()


def recorded_requests(memory: RecordedMemory) -> RecordedRequests | None:
    """The requests of a recording; None if it has none.

    Args:
        memory: a device of a snapshot.
    """
    lifetimes = memory.lifetimes
    rows = np.flatnonzero(lifetimes.born >= 0)
    size = lifetimes.requested[rows]
    failed = memory.out_of_memory
    count = len(rows)
    if not count:
        return None
    largest = _request(memory, lifetimes, int(rows[np.argmax(size)]))
    if failed:
        # What was refused was asked for too.
        entry, refused_bytes = max(failed, key=lambda each: each[1])
        if refused_bytes > largest.bytes:
            largest = Request(refused_bytes, _stream_of(memory, entry))
    ends = np.array([end.moment for end in memory.step_ends], np.int64)
    step = np.searchsorted(ends, lifetimes.born[rows], side="left")
    whole = _whole_steps(np.bincount(step, minlength=len(ends) + 1))
    steps = len(whole)
    if steps < MIN_STEPS:
        return RecordedRequests(count, steps, largest)
    mine = (step >= whole.start) & (step < whole.stop)
    rows, size, step = rows[mine], size[mine], step[mine]
    highest = _highest(rows, size, step)
    sizes = tuple(lifetimes.requested[highest].tolist())
    # A step without any request: then none comes in each.
    least = int(highest[np.argmin(sizes)]) if len(sizes) == steps else None
    return RecordedRequests(
        count,
        steps,
        largest,
        None if least is None else _request(memory, lifetimes, least),
        sizes,
        _recurring(memory, rows, size, step, steps),
    )


def _whole_steps(requests: NDArray[np.int64]) -> range:
    """Which parts between two ends are steps, the first and the last part too if they are alike.

    A window of an agent begins and ends with a step, within the scope that tells of its end: both
    ends of it are missing then, and their steps are not.

    Args:
        requests: of each part: before the first end, between two, and behind the last.
    """
    between = requests[1:-1]
    if not len(between):
        return range(0)
    alike = (requests >= _ALIKE * between.min()) & (requests <= between.max() / _ALIKE)
    return range(int(not alike[0]), len(requests) - int(not alike[-1]))


def _highest(
    rows: NDArray[np.intp], size: NDArray[np.int64], step: NDArray[np.intp]
) -> NDArray[np.intp]:
    """The row of the largest request of each step."""
    order = np.lexsort((-size, step))
    return rows[order[np.unique(step[order], return_index=True)[1]]]


def _recurring(
    memory: RecordedMemory,
    rows: NDArray[np.intp],
    size: NDArray[np.int64],
    step: NDArray[np.intp],
    steps: int,
) -> tuple[Request, ...]:
    sizes, inverse = np.unique(size, return_inverse=True)
    pairs = np.unique(np.stack((inverse.reshape(-1), step)), axis=1)[0]
    in_steps = np.bincount(pairs, minlength=len(sizes))
    found: list[Request] = []
    for which in np.flatnonzero(in_steps == steps)[::-1][:MOST_SIZES].tolist():
        mine = rows[inverse.reshape(-1) == which]
        one = _request(memory, memory.lifetimes, int(mine[0]))
        found.append(Request(one.bytes, one.stream, one.place, round(len(mine) / steps, 1)))
    return tuple(found)


def _request(memory: RecordedMemory, lifetimes: Lifetimes, row: int) -> Request:
    source = memory.sources[int(memory.source_of[row])]
    return Request(
        int(lifetimes.requested[row]),
        int(lifetimes.stream[row]),
        source.line if source.file else "",
    )


def _stream_of(memory: RecordedMemory, entry: int) -> int:
    trace = memory.trace
    assert trace is not None
    return int(trace.stream[entry])
