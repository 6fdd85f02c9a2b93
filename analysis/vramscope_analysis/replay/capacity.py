"""How much memory a recorded job could have, as far as its recording says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from vramscope_analysis.allocator.rounding import SMALL_SEGMENT_BYTES
from vramscope_analysis.replay.flushes import Flush, asked_of_device, flushes_of, reserved_before
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import Action

Source = Literal["given", "inferred", "unbounded", "varying"]


@dataclass(frozen=True)
class Capacity:
    """What bound a job, or is assumed to.

    Args:
        capacity_bytes: what the device had for this process; None: it never ran out.
        limit_bytes: the process's own cap (``set_per_process_memory_fraction``); None: none.
        lowest_bytes: most that was granted: no cap can have been below.
        highest_bytes: least that was refused: every cap was below; None: nothing was refused.
        source: ``given`` by the caller, ``inferred`` as what a failure measured, or else as the
            roundest size in between, ``unbounded`` when nothing was refused, ``varying`` when no
            constant cap explains what was refused (other processes took and gave back memory of
            the device).
        asked_flushes: flushes, by their first entry, that only a call of ``empty_cache`` explains.
    """

    capacity_bytes: int | None
    limit_bytes: int | None
    lowest_bytes: int
    highest_bytes: int | None
    source: Source
    asked_flushes: frozenset[int] = frozenset()

    @property
    def allowed_bytes(self) -> int | None:
        """The smaller of both; None: no end."""
        known = [size for size in (self.capacity_bytes, self.limit_bytes) if size is not None]
        return min(known) if known else None

    def refuses(self, flush: Flush) -> bool:
        """Whether the request behind a flush was refused at first, so that the flush is its own.

        A request that fits needs no flush: then the user asked for it, or a library did
        (cuDNN's search for the fastest algorithm ends with ``emptyCache``).
        """
        if flush.is_users or flush.is_partial or flush.first in self.asked_flushes:
            return False
        if flush.is_failure:
            return True
        wanted_bytes = flush.reserved_bytes + flush.asked_bytes
        if self.source == "varying":
            return wanted_bytes > self.lowest_bytes
        allowed = self.allowed_bytes
        return allowed is not None and wanted_bytes > allowed

    def collects(self, flush: Flush, threshold: float) -> bool:
        """Whether a flush may be garbage collection (``garbage_collect_cached_blocks``).

        Then more was held than the threshold allows.
        """
        if not may_be_collected(flush) or flush.first in self.asked_flushes:
            return False
        limit = self.limit_bytes
        return bool(threshold) and limit is not None and flush.reserved_bytes > threshold * limit


def given_capacity(
    recording: Recording, capacity_bytes: int | None, limit_bytes: int | None
) -> Capacity:
    """What the caller says about the recorded job."""
    refused = _failures(recording, is_limit=limit_bytes is not None)
    return Capacity(
        capacity_bytes,
        limit_bytes,
        recording.peak_reserved_bytes,
        min(refused, default=None),
        "given",
    )


def unbounded(recording: Recording) -> Capacity:
    """A job that was refused nothing: every flush was asked for."""
    return Capacity(None, None, recording.peak_reserved_bytes, None, "unbounded")


def bounded(recording: Recording, *, by_device: bool = False) -> Capacity | None:
    """A cap that explains every failure and every flush that may be one; None without such.

    Failures are certain: the trace has an ``oom`` entry. A flush may be a failure if its request
    did not fit below the peak, and if the stacks, where recorded, do not show another caller.
    With garbage collection a flush may also be that, at a part of the cap.

    Args:
        recording: the job.
        by_device: the cap is what the device had, at which nothing is collected.
    """
    threshold = 0.0 if by_device else recording.settings.garbage_collection_threshold
    failed = bool((recording.events.actions == Action.OOM).any())
    # Garbage is collected by the process's own limit, not by what the device has. Nothing tells
    # the two apart without a failure, but for pages a limit leaves more room.
    pages = recording.settings.expandable_segments and not failed
    is_limit = not by_device and (bool(threshold) or pages or has_limit(recording))
    refused = _failures(recording, is_limit=is_limit)
    lowest = most_granted(recording) if is_limit else recording.peak_reserved_bytes
    flushes = flushes_of(recording)
    collected = [flush for flush in flushes if threshold and may_be_collected(flush)]
    candidates = [flush for flush in flushes if may_be_refused(flush, lowest)]
    if not collected:
        refused += [flush.reserved_bytes + flush.asked_bytes for flush in candidates]
    elif not refused:
        refused.append(int(max(flush.reserved_bytes for flush in collected) / threshold))
    if not refused:
        return None
    highest = min(refused)
    if highest <= lowest:
        return Capacity(None, None, lowest, highest, "varying")
    guess = inferred(lowest, highest, is_limit=is_limit)
    measured = [] if is_limit else _measured(recording)
    # Other processes may take some for a while: the least that explains everything.
    size = min((each for each in measured if lowest <= each < highest), default=None)
    return guess if size is None else replace(guess, capacity_bytes=size)


def has_limit(recording: Recording) -> bool:
    """Whether the process certainly had a limit of its own: by its settings, or by a failure."""
    return recording.settings.per_process_memory_fraction < 1 or _device_had_more(recording)


def inferred(lowest: int, highest: int, *, is_limit: bool) -> Capacity:
    """The roundest cap in a range."""
    size = roundest(max(lowest, 1), highest)
    return Capacity(
        capacity_bytes=None if is_limit else size,
        limit_bytes=size if is_limit else None,
        lowest_bytes=lowest,
        highest_bytes=highest,
        source="inferred",
    )


def most_granted(recording: Recording) -> int:
    """Most that any limit of the process has allowed.

    That is what was reserved, except for pages: a request is let through by its own size, and may
    then map more (``alloc_block``).
    """
    events = recording.events
    takes = np.flatnonzero(events.segment_signs[events.segment_events] > 0)
    positions = events.segment_events[takes]
    is_map = events.actions[positions] == Action.SEGMENT_MAP
    granted = int(recording.reserved_bytes[takes][~is_map].max(initial=0))
    requests = np.flatnonzero(np.isin(events.actions, (Action.ALLOC, Action.OOM)))
    causes = np.searchsorted(requests, positions[is_map])
    # The first mapping of a request is the one that was let through.
    for at in np.flatnonzero(np.diff(causes, prepend=-1)).tolist():
        if causes[at] < len(requests):
            first = int(positions[is_map][at])
            asked_bytes = asked_of_device(recording, int(requests[causes[at]]))
            granted = max(granted, reserved_before(recording, first) + asked_bytes)
    return max(granted, recording.reserved_at_start_bytes)


def may_be_refused(flush: Flush, peak_reserved_bytes: int) -> bool:
    """Whether a constant cap can be behind a flush: its request would have gone beyond the peak."""
    return not flush.is_users and flush.reserved_bytes + flush.asked_bytes > peak_reserved_bytes


def may_be_collected(flush: Flush) -> bool:
    """Whether garbage collection can be behind a flush."""
    return not flush.is_users and flush.is_collectable


def refusals(recording: Recording) -> dict[int, int]:
    """For each request that may have been refused, a limit under which exactly that happens.

    Returns:
        By the request's position, bytes: what was held before the last memory went back, or, if
        that did not help, what was held in the end, and one byte less than was asked for.
    """
    limits: dict[int, int] = {}
    lowest = recording.peak_reserved_bytes
    for flush in flushes_of(recording):
        if may_be_refused(flush, lowest):
            limits[flush.cause] = flush.reserved_before_last_bytes + flush.asked_bytes - 1
    for event in np.flatnonzero(recording.events.actions == Action.OOM).tolist():
        asked_bytes = asked_of_device(recording, event)
        limits[event] = reserved_before(recording, event) + asked_bytes - 1
    return limits


def roundest(lowest: int, highest: int) -> int:
    """The size in [lowest, highest) that most powers of two divide.

    Raises:
        ValueError: the range is empty, or begins with 0.
    """
    if not 0 < lowest < highest:
        raise ValueError(f"expected a range above 0, got [{lowest}, {highest})")
    for power in range(highest.bit_length(), 0, -1):
        size = -(-lowest >> power) << power
        if size < highest:
            return size
    return lowest


def _failures(recording: Recording, *, is_limit: bool) -> list[int]:
    """Most that would have been reserved if each ``oom`` had been granted.

    A limit looks at what is asked for (``alloc_block``), the device at what is needed.
    """
    refused_bytes = asked_of_device if is_limit else _most_needed
    positions = np.flatnonzero(recording.events.actions == Action.OOM).tolist()
    return [reserved_before(recording, at) + refused_bytes(recording, at) for at in positions]


def _most_needed(recording: Recording, event: int) -> int:
    """Most memory that a request needed: whole pages, where the device is asked for pages.

    Fewer do where the request continues behind free ones (``map_block``).
    """
    asked_bytes = asked_of_device(recording, event)
    settings = recording.settings
    if not settings.expandable_segments or asked_bytes <= SMALL_SEGMENT_BYTES:
        return asked_bytes
    page_bytes = settings.large_segment_bytes
    return -(-asked_bytes // page_bytes) * page_bytes


def _measured(recording: Recording) -> list[int]:
    """What the device had for the process at each ``oom``: reserved, and what was left."""
    positions = np.flatnonzero(recording.events.actions == Action.OOM).tolist()
    free: list[int] = recording.events.addresses[positions].tolist()
    return [
        reserved_before(recording, at) + free_bytes
        for at, free_bytes in zip(positions, free, strict=True)
    ]


def _device_had_more(recording: Recording) -> bool:
    """Whether the device had what an ``oom`` was refused (``device_free``): then a limit did it."""
    events = recording.events
    positions = np.flatnonzero(events.actions == Action.OOM).tolist()
    return any(int(events.addresses[at]) >= _most_needed(recording, at) for at in positions)
