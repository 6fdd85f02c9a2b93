"""The frames of one connection: what that server does not know yet of the newest look."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, Final, Protocol

from vramscope.collectors.self_cost import CpuMeter
from vramscope.guard import guarded
from vramscope.memory_map.block_rows import Columns, columns, grouped_columns, owners
from vramscope.memory_map.detail import Detail, detail_for, summary
from vramscope.memory_map.look import Look, SegmentState
from vramscope.memory_map.owners import Owners, OwnersSource
from vramscope.memory_map.pace import MapPace
from vramscope.memory_map.text_table import MAX_NEW_LENGTH, NO_TEXT, TextTable
from vramscope_protocol.map_columns import (
    BLOCK_COLUMNS,
    SEGMENT_COLUMNS,
    SUMMARISED,
    pack_columns,
)
from vramscope_protocol.messages import MapFrame, MapWanted

_ENVELOPE_BYTES: Final = 4096
_GONE_BYTES: Final = 9
"""An address in MessagePack."""


class MapSource(Protocol):
    """Where the looks come from: see ``MemoryMap``."""

    pace: MapPace
    owners: OwnersSource
    latest: Look | None
    limit_bytes: int | None
    device_free_bytes: int | None

    def watch(self, seconds: float, *, ask: bool = False) -> None:
        """Somebody looks for so long."""
        ...

    @property
    def is_watched(self) -> bool:
        """Whether frames are wanted."""
        ...

    @property
    def rate_hz(self) -> float:
        """Looks a second."""
        ...


class _Sent:
    """What was told of one segment."""

    __slots__ = ("owned_by", "state")

    def __init__(self, state: SegmentState, owned_by: list[tuple[int, str]] | None) -> None:
        self.state = state
        self.owned_by = owned_by
        """``None`` where a text was left for a later frame."""


class MapFeed:
    """Makes frames for one connection, on its thread. A look that comes while a frame is still
    being sent is not queued: the next frame is of whatever look is the newest then.

    Args:
        source: takes the looks.
        may_watch: whether this job lets its map be watched.
    """

    def __init__(self, source: MapSource, may_watch: Callable[[], bool] = lambda: True) -> None:
        self._source = source
        self._may_watch = may_watch
        self._number = 0
        self._look: Look | None = None
        self._wants_all = True
        self._texts = TextTable()
        self._sent: dict[int, _Sent] = {}
        self._detail: Detail | None = None
        self._owners: Owners | None = None

    def wanted(self, message: MapWanted) -> None:
        """The server asks for frames; ``full`` where it does not have what one would be based on.

        Any thread.
        """
        if not self._may_watch():
            return
        self._wants_all = self._wants_all or message.full
        self._source.watch(message.seconds, ask=message.full)

    def next_frame(self, max_bytes: int) -> MapFrame | None:
        """The frame that is due, ``None`` if there is no news or nobody looks."""
        source = self._source
        look = source.latest
        if look is None or not source.is_watched or (look is self._look and not self._wants_all):
            return None
        meter = CpuMeter()
        with guarded("map frame"):
            frame = self._frame(look, max_bytes)
            source.pace.account_frame(meter.end())
            self._look = look
            return frame
        # This look is not tried again and again; the next frame begins anew.
        self._look, self._detail = look, None
        return None

    def _frame(self, look: Look, max_bytes: int) -> MapFrame:
        room = max_bytes - _ENVELOPE_BYTES - 2 * MAX_NEW_LENGTH
        room -= _GONE_BYTES * len(self._sent)
        detail = detail_for(look.segments, room)
        is_whole = self._wants_all or detail != self._detail
        if is_whole:
            self._forget(detail)
        base, self._number = (0 if is_whole else self._number), self._number + 1
        shown = look.segments
        gone = [a for a in self._sent if a not in shown or not detail.is_shown(shown[a])]
        for address in gone:
            del self._sent[address]
        segments, blocks = self._changed(look, detail)
        first_text, texts = self._texts.take_new()
        source = self._source
        return MapFrame(
            number=self._number,
            base=base,
            time_ns=look.time_ns,
            step=look.step,
            is_step_end=look.is_step_end,
            rate_hz=source.rate_hz,
            took_us=look.took_ns // 1000,
            why_not=look.why_not,
            since_ns=look.since_ns,
            limit_bytes=source.limit_bytes,
            device_free_bytes=source.device_free_bytes,
            segment_count=len(segments["address"]),
            segments=pack_columns(SEGMENT_COLUMNS, segments),
            block_count=len(blocks["size"]),
            blocks=pack_columns(BLOCK_COLUMNS, blocks),
            gone=gone,
            first_text=first_text,
            texts=texts,
            summary=summary(look.segments, detail),
        )

    def _forget(self, detail: Detail) -> None:
        self._wants_all = False
        self._detail = detail
        self._texts = TextTable()
        self._sent = {}

    def _changed(self, look: Look, detail: Detail) -> tuple[dict[str, Any], dict[str, Any]]:
        known = self._source.owners()
        segments = {name: array(code) for name, code in SEGMENT_COLUMNS.items()}
        blocks = {name: array(code) for name, code in BLOCK_COLUMNS.items()}
        for address, state in look.segments.items():
            if not detail.is_shown(state):
                continue
            before = self._sent.get(address)
            is_same = before is not None and before.state is state
            if before is not None and is_same and before.owned_by and known is self._owners:
                continue
            owned_by = owners(state, known.category_of if known else _nobody)
            if before is not None and is_same and before.owned_by == owned_by:
                continue
            is_whole = detail.is_whole(state)
            shown = (columns if is_whole else grouped_columns)(state, owned_by)
            is_complete = self._add_blocks(blocks, shown)
            self._sent[address] = _Sent(state, owned_by if is_complete else None)
            _add_segment(segments, state, len(shown[0]), 0 if is_whole else SUMMARISED)
        self._owners = known
        return segments, blocks

    def _add_blocks(self, table: dict[str, Any], shown: Columns) -> bool:
        is_complete = True
        for column, values in zip(table.values(), shown, strict=True):
            if values and isinstance(values[0], str):
                numbers = list(map(self._texts.number, values))
                if None in numbers:
                    is_complete = False
                    numbers = [NO_TEXT if number is None else number for number in numbers]
                column.extend(numbers)
            else:
                column.extend(values)
        return is_complete


def _nobody(address: int) -> tuple[int, str]:
    del address
    return 0, ""


def _add_segment(columns: dict[str, Any], state: SegmentState, blocks: int, flags: int) -> None:
    row = (
        state.address,
        state.size,
        state.stream,
        state.pool_id[0],
        state.pool_id[1],
        state.page_bytes,
        state.flags | flags,
        blocks,
    )
    for column, value in zip(columns.values(), row, strict=True):
        column.append(value)
