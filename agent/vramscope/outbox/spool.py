"""What does not fit into memory while the server is away: a bounded queue on disk.

A spool belongs to one stream, that is to one life of one process: it is not a log to be found
again after a crash (nobody could finish that stream), only room. A killed process leaves its
folder behind; the next agent of the same user removes it (:func:`remove_stale_spools`).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import threading
import time
from collections import deque
from typing import Final

from vramscope.outbox.entry import Entry
from vramscope.outbox.losses import SPOOL_FULL, SPOOL_UNREADABLE, Losses
from vramscope.outbox.segment import Segment, SegmentError
from vramscope.private_folder import check_private, make_private_folder

REPORTS: Final = "ooms"
"""A folder among the spools that outlives processes on purpose."""

_LOCK_NAME: Final = "lock"
_YOUNG_S: Final = 60.0
"""A folder without a lock is left alone for so long: its owner may be about to lock it."""


class Spool:
    """First in, first out, in segment files. Appended by one thread, taken by another.

    Args:
        parent: folder of all spools of this user; made if missing, private.
        name: folder of this spool inside it.
        max_bytes: bound; reaching it drops the oldest segment and counts what was in it.
        losses: where that is counted.
    """

    def __init__(self, parent: str, name: str, max_bytes: int, losses: Losses) -> None:
        self._parent = parent
        self._folder = os.path.join(parent, name)
        self._max_bytes = max_bytes
        # Eight segments: a full spool then loses an eighth of its reach at a time.
        self._segment_bytes = max(1, min(max_bytes // 8, 8 << 20))
        self._losses = losses
        self._lock = threading.Lock()
        self._segments: deque[Segment] = deque()
        self._made = 0
        self._lock_descriptor: int | None = None
        self.size_bytes = 0

    def append(self, entry: Entry) -> None:
        """Add one entry at the end.

        Raises:
            OSError: it could not be written and is not in the spool; what was there still is.
        """
        with self._lock:
            segment = self._writable_segment()
            before_bytes = segment.size_bytes
            try:
                segment.append(entry)
            finally:
                if segment.is_read:  # nothing in it: the first write to a new file failed
                    self._remove(self._segments.pop())
            self.size_bytes += segment.size_bytes - before_bytes
            while self.size_bytes > self._max_bytes and self._segments:
                self._drop_oldest(SPOOL_FULL)

    def take(self) -> Entry | None:
        """Remove and return the oldest entry; ``None`` when there is none.

        A segment that cannot be read is counted as lost and passed over.
        """
        with self._lock:
            while self._segments:
                segment = self._segments[0]
                try:
                    entry = segment.take()
                except SegmentError:
                    self._drop_oldest(SPOOL_UNREADABLE)
                    continue
                # At once: an empty spool is one without segments, and holds no file open.
                if segment.is_read:
                    self._remove(self._segments.popleft())
                return entry
            return None

    @property
    def is_empty(self) -> bool:
        """Whether :meth:`take` would find nothing."""
        return not self._segments

    def remove(self, timeout_s: float = 1.0) -> None:
        """Delete the spool and what is still in it.

        Args:
            timeout_s: how long to wait for a thread that hangs in a disk access. The folder is
                left behind then, as a killed process leaves it.
        """
        if not self._lock.acquire(timeout=max(0.0, timeout_s)):
            return
        try:
            while self._segments:
                self._remove(self._segments.popleft())
            if self._lock_descriptor is not None:
                os.close(self._lock_descriptor)
                self._lock_descriptor = None
                shutil.rmtree(self._folder, ignore_errors=True)
        finally:
            self._lock.release()

    def forget(self) -> None:
        """Close this process's files and leave the spool to its owner: for a forked child."""
        for segment in self._segments:
            segment.close()
        if self._lock_descriptor is not None:
            os.close(self._lock_descriptor)  # a copy: the owner's lock is not released by this
            self._lock_descriptor = None

    def _writable_segment(self) -> Segment:
        if self._segments and self._segments[-1].size_bytes < self._segment_bytes:
            segment = self._segments[-1]
            # A cleaned-up /tmp: what is written to the unlinked file could never be read again.
            if segment.size_bytes == 0 or os.path.exists(segment.path):
                return segment
        self._make_folder()
        self._made += 1
        segment = Segment(os.path.join(self._folder, f"{self._made:06d}.segment"))
        self._segments.append(segment)
        return segment

    def _make_folder(self) -> None:
        make_private_folder(self._parent)
        make_private_folder(self._folder)
        lock_path = os.path.join(self._folder, _LOCK_NAME)
        if self._lock_descriptor is not None and os.path.exists(lock_path):
            return
        if self._lock_descriptor is not None:
            os.close(self._lock_descriptor)
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._lock_descriptor = os.open(lock_path, flags, 0o600)
        fcntl.flock(self._lock_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _drop_oldest(self, reason: str) -> None:
        segment = self._segments.popleft()
        segment.count_unread(self._losses, reason)
        self._remove(segment)

    def _remove(self, segment: Segment) -> None:
        segment.close()
        self.size_bytes -= segment.size_bytes
        # Gone, or not ours to delete any more: either way it takes no place of ours.
        with contextlib.suppress(OSError):
            os.unlink(segment.path)


def remove_stale_spools(parent: str) -> int:
    """Delete the spools whose process is gone, and return how many.

    A living owner holds a lock, which works across containers that share the folder.
    """
    try:
        check_private(parent)
        names = os.listdir(parent)
    except OSError:
        return 0
    return sum(_remove_if_stale(os.path.join(parent, name)) for name in names if name != REPORTS)


def _remove_if_stale(folder: str) -> bool:
    lock_path = os.path.join(folder, _LOCK_NAME)
    try:
        if not os.path.exists(lock_path):
            if time.time() - os.lstat(folder).st_mtime < _YOUNG_S:
                return False
        else:
            descriptor = os.open(lock_path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            finally:
                os.close(descriptor)
    except OSError:
        return False
    shutil.rmtree(folder, ignore_errors=True)
    return True
