"""The full account of a device: every byte of it in one part, at an instant or at a step's peak.

Readings of the driver, of PyTorch and of the tensors are not of the same instant, so they need not
fit together. What PyTorch counts is taken first, the driver's readings get what is left, and what
no reading explains is a part of its own. So parts are never negative, and always sum up exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

Moment = Literal["instant", "end", "peak"]
"""When: any time, the end of a step, or the highest of allocated memory within a step."""

Account = dict[str, int | None]
"""Bytes by part; ``None`` where they are not known, and within a sibling that says so."""

FORWARD: Final = 1
OPTIMIZER: Final = 3

PARTS: Final[dict[str, tuple[str, ...]]] = {
    "device": ("reserved", "outside", "other_processes", "driver", "unknown", "free"),
    "reserved": (
        "allocated",
        "pending_free",
        "returnable",
        "private_pool",
        "stranded",
        "cache_not_split",
    ),
    "allocated": (
        "parameters",
        "optimizer_state",
        "buffers",
        "gradients",
        "activations",
        "not_split",
    ),
}
"""What each part consists of, in the order in which it is shown."""

DEFINITIONS: Final[dict[str, str]] = {
    "device": "Memory of the device.",
    "reserved": "What PyTorch holds from the device.",
    "outside": "What this process holds besides: CUDA context, libraries, NCCL.",
    "other_processes": "What other processes hold.",
    "driver": "What the driver keeps for itself.",
    "unknown": "In use, and by nothing that was seen to use it.",
    "free": "Free on the device.",
    "allocated": "Blocks handed out to tensors.",
    "pending_free": "Freed blocks that another stream may still use.",
    "returnable": "Free segments in the cache, which emptying the cache gives back.",
    "private_pool": "Free memory of private pools (CUDA graphs, memory pools).",
    "stranded": "Free pieces of segments in use, which cannot be given back.",
    "cache_not_split": "Free in the cache; whether it can be given back is not known.",
    "parameters": "Parameters.",
    "optimizer_state": "State of the optimizers, master copies of parameters included.",
    "buffers": "Buffers of modules.",
    "gradients": "Gradients of parameters.",
    "activations": "All other tensors: activations, batches, workspaces.",
    "not_split": "Tensors whose category is not known at this moment.",
}
"""Each part in one sentence."""


@dataclass(frozen=True)
class Reading:
    """What was measured, in bytes; ``None`` is not known.

    Args:
        total, used, free, process, other: the driver's numbers (``device.*_bytes``) of one sample.
        sample_reserved: what PyTorch held in that same sample.
        reserved, active, allocated: PyTorch's counters at the moment.
        peak_reserved, peak_active, peak_allocated: the highest of each within the step.
        peak_part: the part of the step in which allocated was highest.
        parameters, gradients, optimizer_state, buffers: by category, at the end of the step.
        gradients_kept: gradients that were there when the step's backward began.
        optimizer_state_before: that of the end of the step before.
        returnable, stranded, private_pool: of the cache, as of the last look at it.
    """

    total: int | None = None
    used: int | None = None
    free: int | None = None
    process: int | None = None
    other: int | None = None
    sample_reserved: int | None = None
    reserved: int | None = None
    active: int | None = None
    allocated: int | None = None
    peak_reserved: int | None = None
    peak_active: int | None = None
    peak_allocated: int | None = None
    peak_part: int | None = None
    parameters: int | None = None
    gradients: int | None = None
    optimizer_state: int | None = None
    buffers: int | None = None
    gradients_kept: int | None = None
    optimizer_state_before: int | None = None
    returnable: int | None = None
    stranded: int | None = None
    private_pool: int | None = None


COLUMNS_OF_STEP: Final = {
    "reserved": "reserved_bytes.all.current",
    "active": "active_bytes.all.current",
    "allocated": "allocated_bytes.all.current",
    "peak_reserved": "step.peak_reserved_bytes",
    "peak_active": "step.peak_active_bytes",
    "peak_allocated": "step.peak_allocated_bytes",
    "peak_part": "step.peak_part",
    "parameters": "category.parameters_bytes",
    "gradients": "category.gradients_bytes",
    "optimizer_state": "category.optimizer_state_bytes",
    "buffers": "category.buffers_bytes",
    "gradients_kept": "category.gradients_kept_bytes",
}
"""The columns of a step row that readings are taken from, by the name in ``Reading``."""


class _Whole:
    """Something that is divided: a part takes what it claims, and never more than is left."""

    def __init__(self, size: int) -> None:
        self.left = size

    def take(self, claimed: int | None) -> int | None:
        if claimed is None:
            return None
        taken = min(max(claimed, 0), self.left)
        self.left -= taken
        return taken

    def take_rest(self) -> int:
        rest, self.left = self.left, 0
        return rest


def account(reading: Reading, moment: Moment) -> Account:
    """Divide the device among its parts.

    Args:
        reading: what was measured.
        moment: which of the readings count.

    Returns:
        Every part by name. Those that are known of :data:`PARTS` sum up to their whole.
    """
    parts: Account = dict.fromkeys(
        ("device", *(part for children in PARTS.values() for part in children))
    )
    is_peak = moment == "peak"
    reserved = reading.peak_reserved if is_peak else reading.reserved
    active = reading.peak_active if is_peak else reading.active
    allocated = reading.peak_allocated if is_peak else reading.allocated
    _divide_device(parts, reading, reserved)
    if parts["reserved"] is None:
        return parts
    whole = _Whole(parts["reserved"])
    parts["allocated"] = whole.take(allocated)
    parts["pending_free"] = whole.take(_difference(active, allocated))
    if not is_peak:
        # The last look at the cache was not at the peak.
        parts["stranded"] = whole.take(reading.stranded)
        parts["private_pool"] = whole.take(reading.private_pool)
        parts["returnable"] = whole.take(reading.returnable)
    parts["cache_not_split"] = whole.take_rest()
    if parts["allocated"] is not None:
        _divide_allocated(parts, reading, moment)
    return parts


def _divide_device(parts: Account, reading: Reading, reserved: int | None) -> None:
    sizes = (reading.total, reading.used, reserved)
    size = next((each for each in sizes if each is not None), None)
    if size is None:
        return
    parts["device"] = size = max(size, 0)
    whole = _Whole(size)
    parts["reserved"] = whole.take(reserved)
    outside = _difference(reading.process, reading.sample_reserved)
    outside = parts["outside"] = whole.take(_within(outside, reading.used, reading.sample_reserved))
    other = parts["other_processes"] = whole.take(
        _within(reading.other, reading.used, reading.process)
    )
    if reading.total is None:
        parts["unknown"] = whole.take_rest()
        return
    parts["driver"] = whole.take(
        _difference(_difference(reading.total, reading.used), reading.free)
    )
    if reserved is None and reading.sample_reserved is not None:
        # The driver's numbers are of an instant at which PyTorch held something else.
        parts["unknown"] = whole.take_rest()
    elif reading.used is not None and reading.sample_reserved is not None:
        # From one sample; the counters may be of another instant, which only moves what is free.
        named = reading.sample_reserved + (outside or 0) + (other or 0)
        parts["unknown"] = whole.take(reading.used - named)
        parts["free"] = whole.take_rest()
    else:
        parts["free"] = whole.take(reading.free)
        parts["unknown"] = whole.take_rest()


def _divide_allocated(parts: Account, reading: Reading, moment: Moment) -> None:
    whole = _Whole(parts["allocated"] or 0)
    state, state_maybe = _optimizer_state(reading, moment)
    gradients, gradients_maybe = _gradients(reading, moment)
    parts["parameters"] = whole.take(reading.parameters)
    parts["buffers"] = whole.take(reading.buffers)
    parts["optimizer_state"] = whole.take(state)
    parts["gradients"] = whole.take(gradients)
    if None in (reading.parameters, reading.buffers, state, gradients):
        parts["not_split"] = whole.take_rest()
    else:
        parts["not_split"] = whole.take(state_maybe + gradients_maybe)
        parts["activations"] = whole.take_rest()


def _optimizer_state(reading: Reading, moment: Moment) -> tuple[int | None, int]:
    """How much there was for sure, and how much more there may have been."""
    after = reading.optimizer_state
    if after is None or moment != "peak" or reading.peak_part == OPTIMIZER:
        return after, 0
    before = min(reading.optimizer_state_before or 0, after)
    return before, after - before


def _gradients(reading: Reading, moment: Moment) -> tuple[int | None, int]:
    """How much there was for sure, and how much more there may have been."""
    end, kept = reading.gradients, reading.gradients_kept
    is_peak = moment == "peak"
    if end is None or moment == "end" or (is_peak and reading.peak_part == OPTIMIZER):
        return end, 0
    if is_peak and reading.peak_part == FORWARD and kept is not None:
        return kept, 0
    sure = min(kept or 0, end)
    return sure, end - sure


def _within(size: int | None, used: int | None, before: int | None) -> int | None:
    """A part of what is used: the driver's two answers are never of quite the same moment."""
    if size is None or used is None or before is None:
        return size
    return max(0, min(size, used - before))


def _difference(whole: int | None, part: int | None) -> int | None:
    return None if whole is None or part is None else whole - part


def divide(whole: int | None, named: Iterable[tuple[str, int | None]]) -> list[tuple[str, int]]:
    """Divide a part among what is known to be in it, by name.

    Args:
        whole: the part's bytes.
        named: names and bytes; those without bytes are left out.

    Returns:
        Names and bytes that sum up to the part; what nothing explains has the name "".
    """
    if whole is None:
        return []
    left = _Whole(max(whole, 0))
    shares = [(name, left.take(claimed)) for name, claimed in named]
    found = [(name, share) for name, share in shares if share]
    rest = left.take_rest()
    return [*found, ("", rest)] if rest else found
