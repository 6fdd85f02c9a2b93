"""Writes pickles of protocol 4 that hold plain data, without having it all in memory."""

from __future__ import annotations

import struct
from typing import Any, BinaryIO

from vramscope_analysis.snapshot.errors import SnapshotError, shown
from vramscope_analysis.snapshot.kinds import is_dict, is_list, is_tuple
from vramscope_analysis.snapshot.pickles.opcodes import Op

_FRAME_BYTES = 1 << 16
# Items of a list between MARK and APPENDS.
BATCH = 1000
_CONSTANTS = {None: Op.NONE, True: Op.NEWTRUE, False: Op.NEWFALSE}
_TUPLES = {0: Op.EMPTY_TUPLE, 1: Op.TUPLE1, 2: Op.TUPLE2, 3: Op.TUPLE3}


class PickleWriter:
    """Writes opcodes in their order. What is written a second time is fetched from the memo.

    Nothing but the opcodes that PyTorch's viewer knows is written (``unpickle`` in MemoryViz.js).
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._memo_size = 0
        self._texts: dict[str, bytes] = {}
        # Containers by identity; they are kept so that the identity stays theirs.
        self._containers: dict[int, bytes] = {}
        self._kept: list[Any] = []
        file.write(bytes([Op.PROTO, 4]))

    def write(self, opcodes: bytes) -> None:
        """Whole opcodes."""
        self._pending.append(opcodes)
        self._pending_bytes += len(opcodes)
        if self._pending_bytes >= _FRAME_BYTES:
            self._flush()

    def memoize(self) -> bytes:
        """Put what was written last into the memo; the opcodes that fetch it."""
        self.write(bytes([Op.MEMOIZE]))
        index = self._memo_size
        self._memo_size += 1
        if index < 256:
            return bytes([Op.BINGET, index])
        return bytes([Op.LONG_BINGET]) + index.to_bytes(4, "little")

    def finish(self) -> None:
        """Write STOP and everything that is still pending."""
        self.write(bytes([Op.STOP]))
        self._flush()

    def fetched_text(self, text: str) -> bytes | None:
        """The opcodes that fetch a text from the memo; None if it is not in there."""
        return self._texts.get(text)

    def value(self, value: Any) -> None:
        """Any plain value, as often as it stands in the data."""
        if type(value) is str:
            self.text(value)
        elif id(value) in self._containers:
            self.write(self._containers[id(value)])
        elif is_tuple(value) or is_list(value) or is_dict(value):
            self._container(value)
        else:
            self.write(scalar_opcodes(value))

    def value_again(self, value: Any) -> bytes:
        """Write a value; the opcodes that give the same once more."""
        self.value(value)
        if type(value) is str:
            return self._texts[value]
        if is_tuple(value) or is_list(value) or is_dict(value):
            return self._containers[id(value)]
        return scalar_opcodes(value)

    def text(self, text: str) -> None:
        """A text: fetched from the memo from the second time on."""
        fetch = self._texts.get(text)
        if fetch is not None:
            self.write(fetch)
            return
        self.write(text_opcodes(text))
        self._texts[text] = self.memoize()

    def _container(self, value: Any) -> None:
        if is_tuple(value):
            self._tuple(value)
        elif is_list(value):
            self.write(bytes([Op.EMPTY_LIST]))
            self._remember(value)
            for start in range(0, len(value), BATCH):
                self.write(bytes([Op.MARK]))
                for item in value[start : start + BATCH]:
                    self.value(item)
                self.write(bytes([Op.APPENDS]))
        else:
            self.write(bytes([Op.EMPTY_DICT]))
            self._remember(value)
            self.write(bytes([Op.MARK]))
            for key, part in value.items():
                self.value(key)
                self.value(part)
            self.write(bytes([Op.SETITEMS]))

    def _tuple(self, value: tuple[Any, ...]) -> None:
        is_long = len(value) not in _TUPLES
        if is_long:
            self.write(bytes([Op.MARK]))
        for item in value:
            self.value(item)
        self.write(bytes([Op.TUPLE if is_long else _TUPLES[len(value)]]))
        self._remember(value)

    def _remember(self, container: Any) -> None:
        self._containers[id(container)] = self.memoize()
        self._kept.append(container)

    def _flush(self) -> None:
        payload = b"".join(self._pending)
        self._file.write(bytes([Op.FRAME]) + struct.pack("<Q", len(payload)) + payload)
        self._pending, self._pending_bytes = [], 0


def scalar_opcodes(value: Any) -> bytes:
    """A number, True, False or None."""
    if type(value) is bool or value is None:
        return bytes([_CONSTANTS[value]])
    if type(value) is int:
        return integer_opcodes(value)
    if type(value) is float:
        return bytes([Op.BINFLOAT]) + struct.pack(">d", value)
    raise SnapshotError(f"expected plain data, got {shown(value)}")


def integer_opcodes(value: int) -> bytes:
    """An integer in its shortest form (``save_long``)."""
    if 0 <= value < 1 << 8:
        return bytes([Op.BININT1, value])
    if 0 <= value < 1 << 16:
        return bytes([Op.BININT2]) + value.to_bytes(2, "little")
    if -(1 << 31) <= value < 1 << 31:
        return bytes([Op.BININT]) + value.to_bytes(4, "little", signed=True)
    # One bit more, for the sign.
    bits = (value + (value < 0)).bit_length()
    raw = value.to_bytes(bits // 8 + 1, "little", signed=True)
    if len(raw) < 256:
        return bytes([Op.LONG1, len(raw)]) + raw
    return bytes([Op.LONG4]) + len(raw).to_bytes(4, "little") + raw


def text_opcodes(text: str) -> bytes:
    """A text, not from the memo."""
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) < 256:
        return bytes([Op.SHORT_BINUNICODE, len(raw)]) + raw
    return bytes([Op.BINUNICODE]) + len(raw).to_bytes(4, "little") + raw
