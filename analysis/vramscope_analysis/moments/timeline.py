"""Live memory over a recording, as few real moments as a picture can show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.moments.groups import By, Group, groups_of
from vramscope_analysis.moments.recorded_memory import RecordedMemory

MOST_GROUPS: Final = 9
EVERYTHING_ELSE: Final = Group("everything else", None)
_MOST_CELLS: Final = 1 << 22
"""Groups times moments that are looked at in full: 32 MiB."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """Moments of a recording with what was live at each.

    Args:
        unit: of ``x``: microseconds since the epoch, or the number of the entry where the entries
            have no times.
        moments: number of the entry after which each moment is; -1 is before the first.
        x: where each moment lies.
        total: live bytes.
        reserved: bytes of segments.
        groups: the largest at their highest, and last everything else if anything is left.
        bytes: (groups, moments).
        start: first x of the window.
        end: last x of the window.
        peak: the highest moment of the window.
    """

    unit: Literal["us", "entry"]
    moments: NDArray[np.int64]
    x: NDArray[np.int64]
    total: NDArray[np.int64]
    reserved: NDArray[np.int64]
    groups: list[Group]
    bytes: NDArray[np.int64]
    start: int
    end: int
    peak: int


def timeline_of(
    memory: RecordedMemory,
    by: By,
    *,
    start: int | None = None,
    end: int | None = None,
    points: int = 1400,
) -> Timeline:
    """Live memory between two places on the x axis.

    Every moment did exist: of those that fall into one column the highest is taken, so that no
    peak is lost and no mean is shown. A column that nothing follows for a while also gets its last
    moment: what stayed.

    Args:
        memory: what was recorded.
        by: what the layers are.
        start: where it begins; None: with the recording.
        end: where it ends; None: with the recording.
        points: most moments that come back, at least 4.
    """
    unit, x_all = _axis(memory)
    if not len(x_all):
        first = last = 0
    else:
        first = 0 if start is None else int(np.searchsorted(x_all, start, side="left"))
        last = len(x_all) if end is None else int(np.searchsorted(x_all, end, side="right"))
        last = max(last, first)
    # The state before the window comes first, at its left edge.
    places = np.arange(first, last + 1)
    x = np.concatenate((x_all[first : first + 1] if start is None else [start], x_all[first:last]))
    x = x.astype(np.int64) if len(x) == len(places) else np.zeros(len(places), np.int64)
    total = memory.live_bytes[places]
    chosen = _reduced(x, total, max(points, 4))
    peak = int(places[np.argmax(total)]) - 1
    moments = places[chosen] - 1
    groups, layers = _layers(memory, by, moments, total[chosen])
    return Timeline(
        unit=unit,
        moments=moments,
        x=x[chosen],
        total=total[chosen],
        reserved=memory.reserved_bytes[places[chosen]],
        groups=groups,
        bytes=layers,
        start=int(x[0]) if start is None else start,
        end=int(x[-1]) if end is None else end,
        peak=peak,
    )


def _axis(memory: RecordedMemory) -> tuple[Literal["us", "entry"], NDArray[np.int64]]:
    """Times, if they tell entries apart at all."""
    times = memory.time_us
    if len(times) and times[0] > 0 and times[-1] > times[0]:
        return "us", times
    return "entry", np.arange(memory.entries)


def _reduced(x: NDArray[np.int64], total: NDArray[np.int64], points: int) -> NDArray[np.intp]:
    """Which moments to show: the highest of each column, ends, and what stayed before a pause."""
    if len(x) <= points:
        return np.arange(len(x))
    columns = max(1, (points - 2) * 2 // 3)
    span = max(int(x[-1] - x[0]), 1)
    column = ((x - x[0]).astype(np.float64) / span * columns).astype(np.int64)
    column = np.minimum(column, columns - 1)
    begins = np.flatnonzero(np.diff(column, prepend=-1))
    # Within each column the first of the highest: sorted by column, then by falling height.
    order = np.lexsort((np.arange(len(x)), -total, column))
    highest = order[begins]
    ends = np.append(begins[1:], len(x)) - 1
    pauses = np.append(np.diff(column[begins]) > 1, True)
    kept = np.unique(np.concatenate(([0], highest, ends[pauses], [len(x) - 1])))
    return kept[:points] if len(kept) > points else kept


def _layers(
    memory: RecordedMemory, by: By, moments: NDArray[np.int64], total: NDArray[np.int64]
) -> tuple[list[Group], NDArray[np.int64]]:
    index, groups = groups_of(memory, by)
    lifetimes = memory.lifetimes
    begins = np.searchsorted(moments, lifetimes.born, side="left")
    ends = np.searchsorted(moments, lifetimes.completed, side="left")
    candidates = _candidates(index, len(groups), lifetimes.size, begins, ends, len(moments))
    bytes_of = np.zeros((len(candidates), len(moments)), np.int64)
    place = np.full(len(groups) + 1, -1, np.int64)
    place[candidates] = np.arange(len(candidates))
    row = place[index]
    is_shown = (row >= 0) & (begins < ends)
    width = len(moments) + 1
    cells = len(candidates) * width
    came = np.bincount(
        row[is_shown] * width + begins[is_shown], lifetimes.size[is_shown], cells
    ).reshape(-1, width)
    went = np.bincount(
        row[is_shown] * width + ends[is_shown], lifetimes.size[is_shown], cells
    ).reshape(-1, width)
    bytes_of = np.cumsum(came - went, axis=1)[:, :-1].astype(np.int64)
    peaks = bytes_of.max(axis=1, initial=0)
    most = len(groups) if by in ("category", "size") else MOST_GROUPS
    largest = np.argsort(-peaks, kind="stable")[:most]
    largest = largest[peaks[largest] > 0]
    if by in ("category", "size"):
        largest = np.sort(largest)
    layers = bytes_of[largest]
    rest = total - layers.sum(axis=0)
    shown = [groups[candidates[one]] for one in largest.tolist()]
    if rest.any():
        return [*shown, EVERYTHING_ELSE], np.vstack((layers, rest))
    return shown, layers


def _candidates(
    index: NDArray[np.int64],
    groups: int,
    size: NDArray[np.int64],
    begins: NDArray[np.intp],
    ends: NDArray[np.intp],
    moments: int,
) -> NDArray[np.intp]:
    """Groups that may be among the largest: of very many, those that allocated most."""
    most = max(_MOST_CELLS // max(moments, 1), 64)
    if groups <= most:
        return np.arange(groups)
    volume = np.bincount(index, size * (begins < ends), groups)
    return np.sort(np.argsort(-volume, kind="stable")[:most])
