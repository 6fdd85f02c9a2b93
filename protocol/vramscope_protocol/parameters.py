"""The parameters of commands, one struct each. Sizes and times have their unit in the name."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

MAX_WATCH_S: Final = 60.0
"""Whoever looks at the memory map for longer asks again."""


class NoParams(Struct, forbid_unknown_fields=True):
    """The command takes no parameters."""


class WatchMapParams(Struct, forbid_unknown_fields=True):
    """For how long frames of the memory map are wanted."""

    seconds: Annotated[float, Meta(gt=0, le=MAX_WATCH_S)] = MAX_WATCH_S


class SnapshotParams(Struct, forbid_unknown_fields=True):
    """What a snapshot holds beside the segments."""

    traces: bool = False
    """With the history, if one is recorded."""


class HistoryParams(Struct, forbid_unknown_fields=True):
    """How to record, and for how long."""

    mode: Literal["state", "alloc", "all"] = "alloc"
    """``state``: stacks of live blocks alone; ``alloc``: every event, with the stacks of
    allocations; ``all``: with those of frees too."""
    stacks: bool = True
    """With Python stacks; ``state`` is nothing without them."""
    steps: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    """Stop after so many steps, with a snapshot of what was recorded."""
    max_mib: Annotated[int, Meta(ge=16, le=65_536)] = 256
    """Host memory that the recording may take, in MiB."""
    backward_lines: bool = False
    """Mark what a backward pass allocates with the line of the forward pass that it is for."""


class ProfileModulesParams(Struct, forbid_unknown_fields=True):
    """For how long modules are watched."""

    steps: Annotated[int, Meta(ge=1, le=50)] = 3
    """Optimizer steps."""


class OomReportParams(Struct, forbid_unknown_fields=True):
    """What a report that was asked for belongs to."""

    linked_to: Annotated[str, Meta(max_length=128)] = ""
    """Id of the report of a rank that ran out of memory."""


class ExplainGrowthParams(Struct, forbid_unknown_fields=True):
    """How to look at what grows."""

    looks: Annotated[int, Meta(ge=3, le=12)] = 4
    """Step ends that are compared."""
    every: Annotated[int, Meta(ge=1, le=1000)] = 1
    """Least number of steps between two of them."""
    max_ms: Annotated[float, Meta(ge=10, le=5000)] = 400
    """Longest time, in ms, that the search for holders may take at one step end."""
    max_steps: Annotated[int, Meta(ge=4, le=5000)] = 400
    """Give up waiting for growth after so many steps."""
    host: bool = False
    """Look at host memory instead: by the number of steps, not when device memory rises."""
    above_bytes: Annotated[int, Meta(ge=1)] | None = None
    """Look once within a step instead, when so much device memory is allocated."""


class BatchSizeParams(Struct, forbid_unknown_fields=True):
    """Samples that each rank takes at a time, and how often it does before the optimizer steps."""

    batch_size: Annotated[int, Meta(ge=1, le=1 << 24)]
    """Of one rank, for one forward pass."""
    accumulation: Annotated[int, Meta(ge=1, le=1 << 16)] | None = None
    """Forward passes for each optimizer step; none is what keeps the global batch."""
    change_global_batch: bool = False
    """Consent to another number of samples for each optimizer step."""


class AccumulationParams(Struct, forbid_unknown_fields=True):
    """How often a rank takes a batch before the optimizer steps."""

    accumulation: Annotated[int, Meta(ge=1, le=1 << 16)]
    """Forward passes for each optimizer step; the batch size is made to fit."""
    change_global_batch: bool = False
    """Keep the batch size instead: another number of samples for each optimizer step."""


class AllocatorSettingsParams(Struct, forbid_unknown_fields=True):
    """Settings of the caching allocator."""

    settings: Annotated[str, Meta(max_length=1000)]
    """As in PYTORCH_CUDA_ALLOC_CONF: "expandable_segments:True,max_split_size_mb:128". What is not
    named keeps its value."""


class MemoryFractionParams(Struct, forbid_unknown_fields=True):
    """The process's own cap."""

    fraction: Annotated[float, Meta(gt=0, le=1)]
    """Part of the device that PyTorch may hold; 1 is no cap."""


class GcThresholdsParams(Struct, forbid_unknown_fields=True):
    """When Python collects garbage by itself."""

    thresholds: Annotated[list[Annotated[int, Meta(ge=0, le=1 << 31)]], Meta(max_length=3)] = field(
        default_factory=list[int]
    )
    """As for ``gc.set_threshold``; empty leaves them."""
    enabled: bool | None = None
    """Whether it does so at all; none leaves it."""


class SamplingRateParams(Struct, forbid_unknown_fields=True):
    """How often the agent looks."""

    rate_hz: Annotated[float, Meta(gt=0, le=100)]


class PauseParams(Struct, forbid_unknown_fields=True):
    """For how long training stands still."""

    max_s: Annotated[float, Meta(gt=0, le=300)] = 60.0
    """It goes on by itself after so long: far below the time after which NCCL gives up."""
