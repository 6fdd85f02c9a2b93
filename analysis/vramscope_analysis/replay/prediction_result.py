"""What a prediction says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from vramscope_analysis.allocator import AllocatorSettings, Version
from vramscope_analysis.replay.capacity import Capacity

Reason = Literal["out_of_memory", "recorded_out_of_memory"]


@dataclass(frozen=True)
class Moment:
    """A moment of the recording.

    Args:
        event: position of the entry.
        time_us: its time, microseconds since the epoch.
        step: the optimizer step that it lies in, from 0; None if the recording names none.
    """

    event: int
    time_us: int
    step: int | None


@dataclass(frozen=True)
class OutOfMemory(Moment):
    """A request that would have failed.

    Args:
        requested_bytes: what the job asked for.
        segment_bytes: what the device was asked for.
        reserved_bytes: held then, after everything cached was given back.
        allocated_bytes: of that, in blocks that were handed out.
        allowed_bytes: most that could be held.
        needed_bytes: most that would have been reserved from here on if memory had no end from
            here on; where the recorded job failed too, only what this request needed.
    """

    requested_bytes: int
    segment_bytes: int
    reserved_bytes: int
    allocated_bytes: int
    allowed_bytes: int
    needed_bytes: int


@dataclass(frozen=True)
class End:
    """Where a prediction ends before the recording does: what comes after is unknown.

    Args:
        at: the moment.
        reason: ``out_of_memory``: the job would have run out of memory where the recorded one did
            not; ``recorded_out_of_memory``: the recorded one did, but this one would not have.
    """

    at: Moment
    reason: Reason


@dataclass(frozen=True)
class Prediction:
    """A job under other settings, up to where it is known what the job would have done.

    Args:
        settings: the settings.
        version: torch release that was followed.
        capacity: what the job could have.
        events: entries of the recording.
        peak_reserved_bytes: most that was held from the device.
        peak_allocated_bytes: most that blocks took.
        peak_active_bytes: the same with blocks that other streams still used.
        peak: when the most was reserved for the first time; None if nothing ever was.
        fragmentation_at_peak: then, the part of reserved that was not allocated.
        rounding_waste_at_peak_bytes: then, how much larger blocks were than what was asked for.
        device_allocs: segments and mappings taken (``num_device_alloc``).
        device_frees: segments and mappings given back (``num_device_free``).
        retries: times that the whole cache was given back for one request
            (``num_alloc_retries``).
        ooms: requests that failed.
        oom: the first of them.
        end: where the prediction ends early; None if it covers the recording.
        counters: ``memory_stats()`` at the end.
    """

    settings: AllocatorSettings
    version: Version
    capacity: Capacity
    events: int
    peak_reserved_bytes: int
    peak_allocated_bytes: int
    peak_active_bytes: int
    peak: Moment | None
    fragmentation_at_peak: float
    rounding_waste_at_peak_bytes: int
    device_allocs: int
    device_frees: int
    retries: int
    ooms: int
    oom: OutOfMemory | None
    end: End | None
    counters: dict[str, Any]
