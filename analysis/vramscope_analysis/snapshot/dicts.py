"""From tables back to PyTorch's nested structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.action import Action, BlockState
from vramscope_analysis.snapshot.tables.layout import Extra, Layout
from vramscope_analysis.snapshot.tables.tables import Trace

if TYPE_CHECKING:
    from vramscope_analysis.snapshot.snapshot import Snapshot

Rows = NDArray[np.intp]
# From row numbers to the values of one key.
Values = Callable[[Rows], list[Any]]


class Dicts:
    """Makes dicts of the rows of a snapshot's tables. Frames are made once and shared."""

    def __init__(self, snapshot: Snapshot, *, frames: bool = True) -> None:
        """``frames``: whether the dicts get their key "frames"."""
        self._snapshot = snapshot
        self._with_frames = frames
        self.frame_dicts: list[dict[str, Any]] = []
        if frames:
            self.frame_dicts = self._all_frames()

    def snapshot(self) -> dict[str, Any]:
        """The whole snapshot."""
        known: dict[str, Callable[[], Any]] = {
            "segments": lambda: self.segments(_all(len(self._snapshot.segments))),
            "device_traces": lambda: [
                self.entries(trace, _all(len(trace))) for trace in self._snapshot.traces
            ],
            "host_traces": self._host_entries,
        }
        kept = self._snapshot.kept
        return {key: known[key]() if key in known else kept(key) for key in self._snapshot.keys}

    def segments(self, rows: Rows) -> list[dict[str, Any]]:
        """Segments with their blocks."""
        table = self._snapshot.segments
        return self._dicts(
            table.layout,
            {
                "device": _numbers(table.device),
                "address": _numbers(table.address),
                "total_size": _numbers(table.total_size),
                "allocated_size": _numbers(table.allocated_size),
                "active_size": _numbers(table.active_size),
                "requested_size": _numbers(table.requested_size),
                "stream": _numbers(table.stream),
                "segment_type": lambda rows: [
                    "small" if small else "large" for small in table.is_small[rows].tolist()
                ],
                "segment_pool_id": _pairs(table.pool_id),
                "is_expandable": _numbers(table.is_expandable),
                "frames": self._stacks(table.stack),
                "blocks": lambda rows: [
                    self.blocks(np.arange(*table.block_range(row))) for row in rows.tolist()
                ],
            },
            rows,
        )

    def blocks(self, rows: Rows) -> list[dict[str, Any]]:
        """Blocks."""
        table = self._snapshot.blocks
        return self._dicts(
            table.layout,
            {
                "address": _numbers(table.address),
                "size": _numbers(table.size),
                "requested_size": _numbers(table.requested_size),
                "state": _words(table.state, BlockState),
                "frames": self._stacks(table.stack),
            },
            rows,
        )

    def entries(self, trace: Trace, rows: Rows) -> list[dict[str, Any]]:
        """Trace entries."""
        return self._dicts(
            trace.layout,
            {
                "action": _words(trace.action, Action),
                "addr": _numbers(trace.address),
                "device_free": _numbers(trace.address),
                "size": _numbers(trace.size),
                "stream": _numbers(trace.stream),
                "time_us": _numbers(trace.time_us),
                "pool_id": _pairs(trace.pool_id),
                "compile_context": _texts(trace.compile_context, trace.texts),
                "user_metadata": _texts(trace.user_metadata, trace.texts),
                "frames": self._stacks(trace.stack),
            },
            rows,
        )

    def _host_entries(self) -> list[dict[str, Any]]:
        trace = self._snapshot.host_trace
        return [] if trace is None else self.entries(trace, _all(len(trace)))

    def _all_frames(self) -> list[dict[str, Any]]:
        table = self._snapshot.frames
        return self._dicts(
            table.layout,
            {
                "filename": _texts(table.filename, table.texts),
                "name": _texts(table.name, table.texts),
                "line": _numbers(table.line),
            },
            _all(len(table)),
        )

    def _stacks(self, column: NDArray[np.int32]) -> Values:
        def values(rows: Rows) -> list[Any]:
            return [self._stack(index) for index in column[rows].tolist()]

        return values

    def _stack(self, index: int) -> list[dict[str, Any]]:
        if index < 0:
            return []
        return [self.frame_dicts[frame] for frame in self._snapshot.stacks[index]]

    def _dicts(
        self, layout: Layout, columns: Mapping[str, Values], rows: Rows
    ) -> list[dict[str, Any]]:
        dicts: list[dict[str, Any]] = [{}] * len(rows)
        shapes = layout.shape[rows]
        present: list[int] = np.unique(shapes).tolist()
        for index in present:
            places = np.flatnonzero(shapes == index)
            of_shape = rows[places]
            shape = layout.shapes[index]
            keys = [key for key in shape if self._with_frames or key != "frames"]
            values = [_values(key, columns, layout.extras, of_shape) for key in keys]
            made: list[tuple[Any, ...]] = [()] * len(places)
            if keys:
                made = list(zip(*values, strict=True))
            for place, row in zip(places.tolist(), made, strict=True):
                dicts[place] = dict(zip(keys, row, strict=True))
        return dicts


def _values(
    key: str, columns: Mapping[str, Values], extras: Mapping[str, Extra], rows: Rows
) -> list[Any]:
    """The values of one key in rows that all have it: kept aside ones first, else the column's."""
    extra = extras.get(key)
    if extra is None:
        return columns[key](rows)
    has = extra.has(rows)
    if has.all():
        return extra.of(rows)
    values = columns[key](rows)
    places = np.flatnonzero(has)
    for place, value in zip(places.tolist(), extra.of(rows[places]), strict=True):
        values[place] = value
    return values


def _all(rows: int) -> Rows:
    return np.arange(rows, dtype=np.intp)


def _numbers(column: NDArray[Any]) -> Values:
    return lambda rows: column[rows].tolist()


def _pairs(column: NDArray[np.int64]) -> Values:
    return lambda rows: list(map(tuple, column[rows].tolist()))


def _texts(column: NDArray[np.int32], texts: list[str]) -> Values:
    return lambda rows: [texts[index] for index in column[rows].tolist()]


def _words(column: NDArray[np.uint8], words: type[IntEnum]) -> Values:
    names = {int(word): word.name.lower() for word in words}
    return lambda rows: [names[number] for number in column[rows].tolist()]
