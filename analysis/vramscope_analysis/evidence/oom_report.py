"""What was known at the moment at which a process ran out of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vramscope_analysis.evidence.columns import NO_ROWS, Rows


@dataclass(frozen=True, eq=False)
class OomReport:
    """One time out of memory.

    Args:
        id: of its stored report.
        time_ns, step, phase, part: when: ``phase`` is a stretch's name or empty, ``part`` is
            ``forward``, ``backward``, ``optimizer`` or empty.
        thread: name of the thread that asked.
        source: ``observer`` (PyTorch told), ``exception`` (seen as it ended the job), ``counter``
            (only the count of PyTorch rose) or ``host``.
        message: PyTorch's text, where there was one.
        request_bytes: what was asked for, rounded as the allocator does.
        segment_bytes: what the allocator asked of the driver for it.
        allowed_bytes: what the process may have at most.
        device_free_bytes, device_total_bytes: as the driver says.
        counters: the allocator's counters by their names.
        free_blocks: free memory by pool and stream: ``pool``, ``stream``, ``bytes``, ``count``,
            ``largest_bytes``, ``returnable_bytes``; ``largest_segment_bytes`` of segments that live
            blocks keep from being whole again, and ``pinned_by``, the sizes of these.
        by_stack: live bytes by line: ``file``, ``line``, ``function``, ``bytes``, ``count``, and
            ``frames``, the innermost first; ``category`` where the stack tells it.
        by_size: live blocks by their size: ``requested_bytes``, ``count``, ``bytes``.
        by_category: live bytes by category, as they were at the end of the last step.
        largest: the largest live tensors: ``tensor``, ``bytes``, ``category``, ``name``,
            ``held_by``, and ``holder`` with the fields of ``Holder``.
        garbage_bytes: what only waits for Python's collector; None is not looked for.
        processes, outside: as in ``RankEvidence``.
        samples, steps: the last minute and the last steps.
        settings: the allocator's settings.
        threads: ``name``, ``raised`` (the one that asked) and ``frames`` of every thread, the
            innermost first.
        recovered_step: a step that ended after it, in the same process; None is none.
        world_size: ranks of the job.
        grad_enabled: whether autograd recorded operations then; None is not known.
        new_sizes: sizes ``before`` and ``after``, if it was the first step after a command had
            changed them: ``batch_size``, ``accumulation``, ``global_batch``; else empty.
        skipped: times out of memory since the report before, that left none of their own.
        complete: False where the process had no time to tell all.
    """

    id: str = ""
    time_ns: int = 0
    step: int | None = None
    phase: str = ""
    part: str = ""
    thread: str = ""
    source: str = "observer"
    message: str = ""
    request_bytes: int | None = None
    segment_bytes: int | None = None
    allowed_bytes: int | None = None
    device_free_bytes: int | None = None
    device_total_bytes: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    free_blocks: tuple[Mapping[str, Any], ...] = ()
    by_stack: tuple[Mapping[str, Any], ...] = ()
    by_size: tuple[Mapping[str, Any], ...] = ()
    by_category: Mapping[str, int] = field(default_factory=dict[str, int])
    largest: tuple[Mapping[str, Any], ...] = ()
    garbage_bytes: int | None = None
    processes: tuple[Mapping[str, Any], ...] = ()
    outside: tuple[Mapping[str, Any], ...] = ()
    samples: Rows = NO_ROWS
    steps: Rows = NO_ROWS
    settings: str | None = None
    threads: tuple[Mapping[str, Any], ...] = ()
    recovered_step: int | None = None
    world_size: int = 1
    grad_enabled: bool | None = None
    new_sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    skipped: int = 0
    complete: bool = True
