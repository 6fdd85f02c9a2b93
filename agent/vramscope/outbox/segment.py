"""One append-only file of the spool: records framed by their length and checksum."""

from __future__ import annotations

import os
import struct
import zlib
from typing import Final

from vramscope.outbox.entry import OTHER, SAMPLES, STEPS, Entry
from vramscope.outbox.losses import Losses

# length of the frame, checksum of all that follows, seq, table, rows, kind
_HEADER: Final = struct.Struct("<IIQiIB")
_CHECKED_FROM: Final = 8
_MAX_FRAME_BYTES: Final = 16 << 20


class SegmentError(Exception):
    """What is left of the segment cannot be read."""


class Segment:
    """A file that is written at its end by one thread and read from its start by another.

    Not locked: the spool does that. What the file must hold is known from memory, so a torn or
    foreign tail is neither read nor trusted.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.size_bytes = 0
        """Bytes of whole records; anything behind them is the rest of a failed write."""
        self._remaining = [0, 0, 0]
        self._last_seq = 0
        self._read_bytes = 0
        self._unread = 0
        self._writer: int | None = None
        self._reader: int | None = None

    @property
    def is_read(self) -> bool:
        """Whether every record was taken."""
        return self._unread == 0

    def append(self, entry: Entry) -> None:
        """Write one record.

        Raises:
            OSError: nothing was added.
        """
        body = _HEADER.pack(len(entry.frame), 0, entry.seq, entry.table, entry.rows, entry.kind)
        body = body[_CHECKED_FROM:] + entry.frame
        record = struct.pack("<II", len(entry.frame), zlib.crc32(body)) + body
        if self._writer is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._writer = os.open(self.path, flags, 0o600)
        # At a fixed place: a failed write leaves a torn record that the next one covers.
        written = 0
        while written < len(record):
            written += os.pwrite(self._writer, record[written:], self.size_bytes + written)
        self.size_bytes += len(record)
        self._remaining[entry.kind] += entry.rows
        self._unread += 1
        self._last_seq = entry.seq

    def take(self) -> Entry:
        """Read the next record; only while not :attr:`is_read`.

        Raises:
            SegmentError: it is not there or not what was written.
        """
        try:
            if self._reader is None:
                self._reader = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            entry = self._read_record(self._reader)
        except OSError as error:
            raise SegmentError(f"{error.strerror}: {self.path}") from error
        self._remaining[entry.kind] -= entry.rows
        self._unread -= 1
        return entry

    def count_unread(self, losses: Losses, reason: str) -> None:
        """Count what was not taken as lost."""
        losses.count(
            reason,
            samples=self._remaining[SAMPLES],
            steps=self._remaining[STEPS],
            messages=self._remaining[OTHER],
            seq=self._last_seq,
        )

    def close(self) -> None:
        """Close the files; what is written stays."""
        for descriptor in (self._writer, self._reader):
            if descriptor is not None:
                os.close(descriptor)
        self._writer = self._reader = None

    def _read_record(self, reader: int) -> Entry:
        header = os.pread(reader, _HEADER.size, self._read_bytes)
        if len(header) < _HEADER.size:
            raise SegmentError(f"the file ends inside a record: {self.path}")
        length, checksum, seq, table, rows, kind = _HEADER.unpack(header)
        if length > _MAX_FRAME_BYTES:
            raise SegmentError(f"a record is damaged: {self.path}")
        frame = os.pread(reader, length, self._read_bytes + _HEADER.size)
        if zlib.crc32(header[_CHECKED_FROM:] + frame) != checksum:
            raise SegmentError(f"a record is damaged: {self.path}")
        self._read_bytes += _HEADER.size + length
        return Entry(seq, kind, rows, table, frame)
