"""The series that vramscope knows by name: unit and one-sentence definition of each.

Allocator series carry PyTorch's own key (``torch.cuda.memory_stats``). Every number that the page
shows is defined here once; the hover text, ``docs/concepts.md`` and the API read it from here.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Series(Struct, frozen=True):
    """One well-known series."""

    name: str
    unit: str
    definition: str


TIME_NS: Final = "time_ns"
STEP: Final = "step"
PHASE: Final = "phase"

PHASES: Final[dict[int, str]] = {
    0: "train",
    1: "eval",
    2: "checkpoint",
    3: "data_wait",
    15: "other",
}
"""Phases that every agent knows, by the code in the series ``phase``."""

OTHER_PHASE: Final = 15
"""Code of the user's phases beyond those whose names are kept."""

FIRST_USER_PHASE: Final = 16
"""From here on codes stand for names of the user, told by the first event "phase" that has one."""

_ALLOCATOR = (
    (
        "allocated_bytes.all",
        "Bytes in blocks handed out to tensors, each rounded up to its block size.",
    ),
    ("requested_bytes.all", "Bytes that were asked for, before rounding."),
    ("active_bytes.all", "Allocated bytes plus freed blocks that still wait for another stream."),
    ("reserved_bytes.all", "Bytes that PyTorch holds from the device: segments, used or cached."),
    (
        "inactive_split_bytes.all",
        "Free pieces of segments that are partly in use: cannot be returned.",
    ),
)
_ALLOCATOR_COUNTS = (
    ("allocation.all.current", "Blocks handed out now."),
    ("segment.all.current", "Segments held from the device (cudaMalloc)."),
    ("active.all.current", "Blocks in use or waiting for another stream."),
    ("inactive_split.all.current", "Free pieces of partly used segments."),
    ("num_alloc_retries", "Times the whole cache was flushed to satisfy a request."),
    ("num_ooms", "Out-of-memory errors that the allocator raised."),
    ("num_sync_all_streams", "Times the allocator waited for all streams to free memory."),
    ("num_device_alloc", "Calls that took memory from the device."),
    ("num_device_free", "Calls that gave memory back to the device."),
)

_CACHE = (
    ("returnable_bytes", "Free memory of segments that `empty_cache` would give back."),
    (
        "stranded_bytes",
        "Free memory that it could not: between live blocks of a segment, or in a page of an "
        "expandable one that is partly in use.",
    ),
    ("private_pool_bytes", "Free memory that CUDA graphs or pools of the job keep to themselves."),
    ("largest_free_bytes", "Largest free block outside of private pools."),
)

_CATEGORIES = (
    ("parameters_bytes", "Parameters of modules, used in training or not."),
    ("gradients_bytes", "Gradients at the end of the step."),
    ("optimizer_state_bytes", "State of the optimizers, master copies of parameters included."),
    ("buffers_bytes", "Buffers of modules."),
    ("gradients_kept_bytes", "Gradients that were there when the backward of the step began."),
)

_HOST = (
    ("rss_bytes", "B", "Resident memory of the training process."),
    ("shared_bytes", "B", "Part of it that other processes may map as well."),
    ("swap_bytes", "B", "Memory of the process that was moved to swap."),
    ("locked_bytes", "B", "Memory that the process told the kernel to keep in place (mlock)."),
    (
        "os_pinned_bytes",
        "B",
        "Memory that the kernel counts as pinned for a device; not every driver's is in it.",
    ),
    ("threads", "", "Threads of the process."),
    (
        "anonymous_bytes",
        "B",
        "Resident memory that it has written itself: neither of files nor shared.",
    ),
    ("pinned_bytes", "B", "Pinned memory that PyTorch's host allocator has handed out."),
    ("pinned_reserved_bytes", "B", "Pinned memory that it holds, cached blocks included."),
    ("limit_bytes", "B", "Lowest memory limit of the control groups (container, job) it is in."),
    ("limit_used_bytes", "B", "What counts against that limit, file cache included."),
    ("workers", "", "Processes that it started with multiprocessing: DataLoader workers."),
    ("workers_rss_bytes", "B", "Resident memory of these, added up; shared pages count in each."),
    ("workers_shared_bytes", "B", "Shared memory in them, added up; it counts in each."),
    (
        "workers_pss_bytes",
        "B",
        "Memory of these, added up; a page that several processes share counts in part.",
    ),
    ("shm_used_bytes", "B", "In use in the file system for shared memory, by everybody."),
    ("shm_size_bytes", "B", "Size of that file system."),
    ("shm_torch_bytes", "B", "Files in it that PyTorch made for this user and that have a name."),
)
_GC = (
    ("collections", "", "Garbage collections of Python since attach."),
    ("full_collections", "", "Those of the oldest generation, which walk through every object."),
    ("pause_us", "us", "Time that all collections took."),
    ("full_pause_us", "us", "Time that those of the oldest generation took."),
    ("longest_pause_us", "us", "Longest collection since the sample before."),
    ("collected", "", "Objects in reference cycles that were freed."),
    ("uncollectable", "", "Objects that could not be freed."),
)

_STEP_PEAKS = (
    ("allocated", "allocated bytes"),
    ("active", "active bytes"),
    ("reserved", "reserved bytes"),
    ("requested", "requested bytes"),
)
_PARTS = (
    ("forward", "before backward passes"),
    ("backward", "within backward passes"),
    ("optimizer", "within steps of optimizers"),
)

SERIES: Final[dict[str, Series]] = {
    series.name: series
    for series in (
        Series(TIME_NS, "ns", "Time of the row, nanoseconds since the epoch."),
        Series(STEP, "", "Optimizer steps finished when the row was taken."),
        Series(
            PHASE,
            "",
            "Code of the phase that the process was in: 0 train, 1 eval, 2 checkpoint, "
            "3 waiting for data, 16 and more named by the user.",
        ),
        *(
            Series(
                f"{key}.{gauge}",
                "B",
                definition
                if gauge == "current"
                else f"Highest value since the last reset. {definition}",
            )
            for key, definition in _ALLOCATOR
            for gauge in ("current", "peak")
        ),
        Series(
            "allocated_bytes.all.allocated",
            "B",
            "Bytes allocated in total since the start; its difference is the allocation rate.",
        ),
        *(Series(name, "", definition) for name, definition in _ALLOCATOR_COUNTS),
        *(
            Series(f"cache.{name}", "B", f"{definition} As of the last look at the segments.")
            for name, definition in _CACHE
        ),
        Series("device.total_bytes", "B", "Memory of the device."),
        Series("device.used_bytes", "B", "Memory in use on the device, by every process."),
        Series("device.free_bytes", "B", "Memory free on the device."),
        Series("device.process_bytes", "B", "Memory that the driver counts to this process."),
        Series("device.other_bytes", "B", "Memory that the driver counts to other processes."),
        Series("device.utilization_percent", "%", "Share of time in which a kernel ran."),
        Series("device.power_mw", "mW", "Power draw of the device."),
        Series("device.temperature_c", "°C", "Temperature of the device."),
        *(Series(f"host.{name}", unit, definition) for name, unit, definition in _HOST),
        *(Series(f"gc.{name}", unit, definition) for name, unit, definition in _GC),
        Series("step.duration_us", "us", "Time from the previous optimizer step to this one."),
        Series("step.data_wait_us", "us", "Part of it that went by waiting for a batch."),
        Series(
            "step.batch_samples",
            "",
            "Samples that this rank took within the step, of all batches that it accumulated.",
        ),
        Series("step.batch_count", "", "Batches that it accumulated within the step."),
        Series("step.batch_size", "", "Samples of the largest of them: of one forward pass."),
        Series(
            "step.recording",
            "",
            "Who records a memory history: 0 nobody, 1 vramscope, 2 the job itself.",
        ),
        *(
            Series(
                f"step.peak_{name}_bytes",
                "B",
                f"Highest value of {what} within the step, whatever the job resets.",
            )
            for name, what in _STEP_PEAKS
        ),
        Series(
            "step.allocated_volume_bytes", "B", "Bytes allocated within the step, all blocks added."
        ),
        Series(
            "step.autocast_cache_bytes",
            "B",
            "Bytes that copies of weights held when an autocast region ended within the step, and "
            "nothing else any more: the most of its first two regions. Of every eighth step.",
        ),
        Series(
            "step.peak_part",
            "",
            "Part of the step in which its allocated bytes were highest: 1 forward, 2 backward, "
            "3 optimizer, 0 outside of these, or in a step that was not split.",
        ),
        *(
            Series(f"part.{name}.{gauge}", unit, f"{words} {where}, in a step that was split.")
            for name, where in _PARTS
            for gauge, unit, words in (
                ("peak_bytes", "B", "Highest value of allocated bytes"),
                ("volume_bytes", "B", "Bytes allocated"),
                ("time_us", "us", "Time of the training thread, waiting for data left out,"),
            )
        ),
        *(
            Series(f"category.{name}", "B", f"{definition} As of the last look at the tensors.")
            for name, definition in _CATEGORIES
        ),
        Series("agent.sample_us", "us", "Time that taking this sample took."),
        Series("agent.cpu_us", "us", "CPU time of the agent's threads since attach."),
        Series(
            "agent.gil_us",
            "us",
            "Time that the sampling thread held the GIL since attach: its turns without the calls "
            "that give it away.",
        ),
    )
}
"""Every well-known series by name, in display order."""


def unit_of(name: str) -> str:
    """Unit of a series; allocator keys that are not listed are bytes if their name says so."""
    name = name.partition("@")[0]  # of a further device
    known = SERIES.get(name)
    if known is not None:
        return known.unit
    return "B" if name.partition(".")[0].endswith("_bytes") else ""
