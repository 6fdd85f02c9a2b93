"""Writes a snapshot to a file, bit by bit, so that the job hardly notices.

The pickler of the standard library is C code that holds the GIL. It hands over 64 KiB at a time:
there this file lets go of it, for longer than the pickler has held it.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import time
import zlib
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from vramscope.size_text import size_text

PROTOCOL: Final = 4
"""The newest that PyTorch's viewer reads; Python 3.14 would write 5."""

_GZIP: Final = 31  # zlib's number for the gzip format with the largest window
_LEVEL: Final = 1
_REST: Final = 3.0
"""Pause after each piece, in times of what the piece took."""
_LONGEST_REST_S: Final = 0.02
_FREED_AT_ONCE: Final = 2000


class WriteStopped(Exception):
    """The file is not finished: somebody asked for it, or it grew too large."""


class PickleFile(Struct, frozen=True):
    """A pickle, gzipped, in a file."""

    path: str
    raw_bytes: int
    wire_bytes: int
    sha256: str
    """Of the pickle."""


class _Output:
    """What the pickler writes to."""

    def __init__(
        self,
        descriptor: int,
        max_bytes: int,
        is_cancelled: Callable[[], bool],
        rest: Callable[[float], None],
    ) -> None:
        self._descriptor = descriptor
        self._max_bytes = max_bytes
        self._is_cancelled = is_cancelled
        self._rest = rest
        self._gzip = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self._hash = hashlib.sha256()
        self._last_s = time.perf_counter()
        self.raw_bytes = 0
        self.wire_bytes = 0

    def write(self, data: bytes) -> int:
        """Take a piece of the pickle."""
        took_s = time.perf_counter() - self._last_s
        self.raw_bytes += len(data)
        self._hash.update(data)
        self._put(self._gzip.compress(data))
        if self._is_cancelled():
            raise WriteStopped("the process ended before it was written")
        self._rest(min(took_s * _REST, _LONGEST_REST_S))
        self._last_s = time.perf_counter()
        return len(data)

    def finish(self) -> str:
        """Write what is left; the pickle's hash."""
        self._put(self._gzip.flush())
        return self._hash.hexdigest()

    def _put(self, data: bytes) -> None:
        self.wire_bytes += len(data)
        if self.wire_bytes > self._max_bytes:
            raise WriteStopped(
                f"it takes more than the {size_text(self._max_bytes)} of disk that are left for it"
            )
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]


def write_pickle(
    snapshot: dict[str, Any],
    path: str,
    max_bytes: int,
    *,
    is_cancelled: Callable[[], bool],
    rest: Callable[[float], None] = time.sleep,
) -> PickleFile:
    """Write a snapshot to a new file, and take it apart in memory.

    Args:
        snapshot: as PyTorch returns it; empty afterwards.
        path: of the file.
        max_bytes: of the file.
        is_cancelled: asked after each piece.
        rest: called after each piece, with how long to leave the GIL alone.

    Raises:
        OSError: the file cannot be written; nothing of it is left.
        WriteStopped: it was cancelled, or became too large; nothing of it is left.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
        try:
            output = _Output(descriptor, max_bytes, is_cancelled, rest)
            pickle.Pickler(output, PROTOCOL).dump(snapshot)
            digest = output.finish()
            return PickleFile(path, output.raw_bytes, output.wire_bytes, digest)
        except BaseException:
            os.unlink(path)
            raise
        finally:
            os.close(descriptor)
    finally:
        _take_apart(snapshot, rest)


def _take_apart(snapshot: dict[str, Any], rest: Callable[[float], None]) -> None:
    """Free the snapshot in pieces: all at once would hold the GIL for as long as it took."""
    lists = [*snapshot.get("device_traces", ()), snapshot.get("segments", [])]
    snapshot.clear()
    for each in lists:
        while each:
            start_s = time.perf_counter()
            del each[-_FREED_AT_ONCE:]
            rest(min((time.perf_counter() - start_s) * _REST, _LONGEST_REST_S))
