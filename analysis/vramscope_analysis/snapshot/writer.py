"""Writing a snapshot as PyTorch's own tools read it."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.action import Action, BlockState
from vramscope_analysis.snapshot.dicts import Dicts
from vramscope_analysis.snapshot.pickles.opcodes import Op
from vramscope_analysis.snapshot.pickles.pickle_writer import (
    PickleWriter,
    integer_opcodes,
    scalar_opcodes,
)
from vramscope_analysis.snapshot.snapshot import Snapshot
from vramscope_analysis.snapshot.tables.encoded_columns import (
    EncodedColumn,
    EncodedNumbers,
    EncodedObjects,
    Rows,
)
from vramscope_analysis.snapshot.tables.stacks import NO_STACK
from vramscope_analysis.snapshot.tables.table_writer import TableWriter
from vramscope_analysis.snapshot.tables.tables import Trace


def write_snapshot(snapshot: Snapshot, file: BinaryIO) -> None:
    """Write a pickle of protocol 4, the newest that PyTorch's viewer reads.

    ``pickle.load`` gives what ``to_plain`` does. Stacks that are equal become one list.
    """
    SnapshotWriter(snapshot, file).write()


class SnapshotWriter:
    """Writes one snapshot straight from its columns."""

    def __init__(self, snapshot: Snapshot, file: BinaryIO) -> None:
        self._snapshot = snapshot
        self._out = PickleWriter(file)
        self._frames = Dicts(snapshot).frame_dicts
        self._stacks: dict[int, bytes] = {NO_STACK: bytes([Op.EMPTY_LIST])}
        self._blocks = self._block_writer()

    def write(self) -> None:
        """Write everything."""
        out = self._out
        out.write(bytes([Op.EMPTY_DICT, Op.MARK]))
        for key in self._snapshot.keys:
            out.text(key)
            if key == "segments":
                self._segment_writer().write(0, len(self._snapshot.segments))
            elif key == "device_traces":
                self._write_traces()
            elif key == "host_traces" and self._snapshot.host_trace is not None:
                self._write_trace(self._snapshot.host_trace)
            else:
                out.value(self._snapshot.kept(key))
        out.write(bytes([Op.SETITEMS]))
        out.finish()

    def _write_traces(self) -> None:
        self._out.write(bytes([Op.EMPTY_LIST, Op.MARK]))
        for trace in self._snapshot.traces:
            self._write_trace(trace)
        self._out.write(bytes([Op.APPENDS]))

    def _write_trace(self, trace: Trace) -> None:
        address = EncodedNumbers(trace.address, integer_opcodes)
        columns: dict[str, EncodedColumn] = {
            "action": self._words(trace.action, Action),
            "addr": address,
            "device_free": address,
            "size": EncodedNumbers(trace.size, integer_opcodes),
            "stream": EncodedNumbers(trace.stream, integer_opcodes),
            "time_us": EncodedNumbers(trace.time_us, integer_opcodes),
            "pool_id": EncodedNumbers(trace.pool_id, _pair_opcodes),
            "compile_context": self._texts(trace.compile_context, trace.texts),
            "user_metadata": self._texts(trace.user_metadata, trace.texts),
            "frames": self._stack_column(trace.stack),
        }
        TableWriter(self._out, trace.layout, columns).write(0, len(trace))

    def _segment_writer(self) -> TableWriter:
        table = self._snapshot.segments
        types = np.where(table.is_small, 1, 0)
        columns: dict[str, EncodedColumn] = {
            "device": EncodedNumbers(table.device, integer_opcodes),
            "address": EncodedNumbers(table.address, integer_opcodes),
            "total_size": EncodedNumbers(table.total_size, integer_opcodes),
            "allocated_size": EncodedNumbers(table.allocated_size, integer_opcodes),
            "active_size": EncodedNumbers(table.active_size, integer_opcodes),
            "requested_size": EncodedNumbers(table.requested_size, integer_opcodes),
            "stream": EncodedNumbers(table.stream, integer_opcodes),
            "segment_type": self._texts(types, ["large", "small"]),
            "segment_pool_id": EncodedNumbers(table.pool_id, _pair_opcodes),
            "is_expandable": EncodedNumbers(table.is_expandable, scalar_opcodes),
            "frames": self._stack_column(table.stack),
            "blocks": _EncodedBlocks(self._snapshot, self._blocks),
        }
        return TableWriter(self._out, table.layout, columns)

    def _block_writer(self) -> TableWriter:
        table = self._snapshot.blocks
        columns: dict[str, EncodedColumn] = {
            "address": EncodedNumbers(table.address, integer_opcodes),
            "size": EncodedNumbers(table.size, integer_opcodes),
            "requested_size": EncodedNumbers(table.requested_size, integer_opcodes),
            "state": self._words(table.state, BlockState),
            "frames": self._stack_column(table.stack),
        }
        return TableWriter(self._out, table.layout, columns)

    def _texts(self, column: NDArray[Any], texts: list[str]) -> EncodedColumn:
        return EncodedObjects(column, lambda out, number: out.value_again(texts[number]), {})

    def _words(self, column: NDArray[np.uint8], words: type[IntEnum]) -> EncodedColumn:
        names = {int(word): word.name.lower() for word in words}
        return EncodedObjects(column, lambda out, number: out.value_again(names[number]), {})

    def _stack_column(self, column: NDArray[np.int32]) -> EncodedColumn:
        return EncodedObjects(column, self._write_stack, self._stacks)

    def _write_stack(self, out: PickleWriter, number: int) -> bytes:
        out.write(bytes([Op.EMPTY_LIST]))
        fetch = out.memoize()
        out.write(bytes([Op.MARK]))
        for frame in self._snapshot.stacks[number]:
            out.value(self._frames[frame])
        out.write(bytes([Op.APPENDS]))
        return fetch


class _EncodedBlocks(EncodedColumn):
    """The lists of blocks of segments: every one of them is new."""

    def __init__(self, snapshot: Snapshot, writer: TableWriter) -> None:
        self._segments = snapshot.segments
        self._writer = writer

    def unwritten(self, rows: Rows) -> Rows:
        return np.arange(len(rows))

    def write(self, out: PickleWriter, row: int) -> None:
        self._writer.write(*self._segments.block_range(row))

    def opcodes(self, rows: Rows) -> list[bytes]:
        # Never asked for a row: in each there is something new.
        assert not len(rows)
        return []


def _pair_opcodes(pair: list[int]) -> bytes:
    return integer_opcodes(pair[0]) + integer_opcodes(pair[1]) + bytes([Op.TUPLE2])
