"""What grows in a process, by line and by holder, as its agent found out at step boundaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Frame:
    """One line of Python."""

    file: str
    line: int
    function: str = ""


@dataclass(frozen=True)
class Holder:
    """Why a tensor of a group is alive.

    Args:
        kind: ``attribute``, ``global``, ``closure``, ``local``, ``exception``, ``autograd_graph``,
            ``lru_cache``, ``hook``, ``data_loader``, ``ipc``, ``garbage``, ``cpp`` or ``unknown``.
        chain: from the name that a person knows to the tensor, in words:
            ``T.results``, ``['acc']``, ``list of 40``.
        frame: the live line that it is a local of, or where a hook or a cache was defined.
        tensors: how many of those that were looked at are held so.
        is_growing: whether the container held fewer at an earlier look; None is not known.
        stored_at: the statement that puts tensors there, found in the source: the ``append``, the
            ``total = total + ...``; None is not known, or not the only one.
        limited_at: a statement beside it that takes out again, or compares how many there are; None
            is not known, or there is none.
    """

    kind: str
    chain: tuple[str, ...] = ()
    frame: Frame | None = None
    tensors: int = 0
    is_growing: bool | None = None
    stored_at: Frame | None = None
    limited_at: Frame | None = None


@dataclass(frozen=True)
class GrowthGroup:
    """Live memory of one source that grew from look to look.

    Args:
        stack: where it was allocated, the innermost line first; empty is not recorded.
        in_backward: allocated by a backward pass, which has no Python lines.
        bytes, count: what is live of it at the last look and was not at the first.
        bytes_at_looks, counts_at_looks: what was live at each of the aligned looks.
        tensors: samples in words: ``float32[512, 1024]``.
        holders: why they live, the most frequent first.
        garbage_bytes: how much of it only waits for Python's collector.
        category: what it is counted as: ``parameters``, ``gradients``, ``optimizer_state``,
            ``buffers``, or empty.
        is_written: whether one of them was written to while somebody watched, of what is held and
            not grows; None is not known.
    """

    stack: tuple[Frame, ...] = ()
    in_backward: bool = False
    bytes: int = 0
    count: int = 0
    bytes_at_looks: tuple[int, ...] = ()
    counts_at_looks: tuple[int, ...] = ()
    tensors: tuple[str, ...] = ()
    holders: tuple[Holder, ...] = ()
    garbage_bytes: int = 0
    category: str = ""
    is_written: bool | None = None


@dataclass(frozen=True)
class WaitingGroup:
    """Memory of one source that was free already, and waited for another stream.

    Args:
        stack: where it was allocated, the innermost line first.
        bytes, count: what waited at one step end.
        stream: whose it is: what it waits for is another one.
    """

    stack: tuple[Frame, ...] = ()
    bytes: int = 0
    count: int = 0
    stream: int = 0


@dataclass(frozen=True)
class GrowthReport:
    """The answer to the question what grows.

    Args:
        time_ns: when it was given.
        steps: the steps at whose ends it looked.
        live_bytes_at_looks: allocated memory at each look.
        groups: what grew, the fastest first.
        host_groups: the same for growing host memory: by type of object, where it could be told.
        garbage: what the collector would free: ``bytes``, ``tensors``, ``cycle`` (names).
        added_us_per_step: what looking has cost.
        complete: False when a budget or an error ended it early; ``notes`` say which.
        held: the largest live tensors that no step works with, by who holds them, whether they
            grow or not: no parameters, gradients or optimizer state that are in use.
        waiting: what waited for another stream at the step end at which most did, by the lines
            that allocated it, the largest first.
        holders_follow: what holds the groups is still searched for; another answer follows.
    """

    time_ns: int = 0
    steps: tuple[int, ...] = ()
    live_bytes_at_looks: tuple[int, ...] = ()
    groups: tuple[GrowthGroup, ...] = ()
    host_groups: tuple[Mapping[str, Any], ...] = ()
    garbage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    added_us_per_step: float | None = None
    complete: bool = True
    notes: tuple[str, ...] = ()
    held: tuple[GrowthGroup, ...] = ()
    waiting: tuple[WaitingGroup, ...] = ()
    holders_follow: bool = False
