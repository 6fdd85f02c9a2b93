"""Why memory ran out: each cause that the numbers support, the one that explains most first.

A cause is what was out of the ordinary, and it counts only if it is large enough: without it, the
request would have been granted. So each is held against ``Shortage.missing_bytes``, and against
what the same job had needed before. In this order, because each of the later ones is what is left
when the earlier are ruled out:

1. who was refused was not PyTorch's allocator at all (``pinned_host``, ``host``, ``cache``);
2. memory that nobody needed any more was still taken (``retained_exception``, ``garbage``);
3. others had it (``other_process``, ``outside``);
4. it was asked for by something that is not training (``evaluation``, ``checkpoint``, ...);
5. more was kept from step to step (``growth``), or for the first time (``first_step_state``);
6. a command had made the batch larger just before (``resize``);
7. there was enough, in pieces (``fragmentation``), as the same job had fitted before;
8. this step needed more than those before (``growing_demand``, ``spike``);
9. it never fitted (``large_request``, ``too_big``), or never with room to spare (``limit``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.oom_message import is_of_another_allocator, is_probable
from vramscope_analysis.diagnosis.oom_place import is_making_state, is_pinning
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.entry_values import amount_in, entry_in, text_in, texts_in

_SAME: Final = 1.02
"""Needs that differ by less are the same."""
_SPIKE: Final = 1.25
"""A moving part from here on, in terms of the highest before, is no variation of the usual."""
_LARGE_SHARE: Final = 0.05
"""Part of the device from which on another process is worth naming though it always was there."""
_STEPS_LEFT: Final = 50
"""If perfect packing had carried a growing demand for fewer steps, the growth is the cause."""
_EXCEPTION: Final = "exception"
_GARBAGE: Final = "garbage"


@dataclass(frozen=True)
class Cause:
    """One explanation that holds.

    Args:
        name: ``spike``, ``fragmentation``, ...
        confidence: how sure it is that this, and nothing else, was it.
        bytes: how much it accounts for; None is not known.
        who: a name for it in words: a process, a phase, a holder.
    """

    name: str
    confidence: float
    bytes: int | None = None
    who: str = ""


Judge = Callable[[OomCase], Cause | None]


def causes_of(case: OomCase) -> list[Cause]:
    """Every cause that holds, the main one first; never empty."""
    found = [cause for cause in (judge(case) for judge in _JUDGES) if cause is not None]
    return found or [Cause("unknown", 0.6 if is_probable(case.report.message) else 0.3)]


def held_by(tensors: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """Those of the largest tensors that a holder of this kind keeps."""
    return [tensor for tensor in tensors if _holder_kind(tensor) == kind]


def _holder_kind(tensor: Mapping[str, Any]) -> str:
    return text_in(entry_in(tensor, "holder"), "kind")


# -------------------------------------------------------------------------- not PyTorch's allocator


def _host(case: OomCase) -> Cause | None:
    if case.report.source == "host":
        return Cause("host", 0.9)
    if is_pinning(case.report) and is_of_another_allocator(case.report.message):
        return Cause("pinned_host", 0.9)
    return None


def _cache(case: OomCase) -> Cause | None:
    """Somebody allocated past the allocator, whose cache could have been given back to it."""
    if not is_of_another_allocator(case.report.message):
        return None
    returnable = case.shortage.returnable_bytes
    if returnable is None or returnable <= (case.shortage.room_bytes or 0):
        return Cause("outside", 0.6)
    return Cause("cache", 0.8, returnable)


# ------------------------------------------------------------------------ nobody needed it any more


def _retained_exception(case: OomCase) -> Cause | None:
    """An earlier one: where only an exception told, what it holds is what failed just now."""
    if case.report.source == "exception":
        return None
    held = held_by(case.report.largest, _EXCEPTION)
    size = sum(amount_in(tensor, "bytes") for tensor in held)
    if not size or not _explains(case, size):
        return None
    return Cause("retained_exception", 0.9, size, _chain(held[0]))


def _garbage(case: OomCase) -> Cause | None:
    held = held_by(case.report.largest, _GARBAGE)
    size = max(
        case.report.garbage_bytes or 0,
        sum(amount_in(tensor, "bytes") for tensor in held),
        _gone_meanwhile(case),
    )
    return Cause("garbage", 0.9, size) if _explains(case, size) else None


def _gone_meanwhile(case: OomCase) -> int:
    """What was allocated at the failure and no longer when the blocks were looked at.

    Writing a report makes objects, and that may set Python's collector off.
    """
    allocated = case.report.counters.get("allocated_bytes.all.current")
    if allocated is None or not case.report.by_size:
        return 0
    return max(allocated - sum(amount_in(row, "bytes") for row in case.report.by_size), 0)


# ------------------------------------------------------------------------------------ others had it


def _other_process(case: OomCase) -> Cause | None:
    """Others hold at least what was missing, and came or grew lately, or hold a good part."""
    held = case.shortage.other_bytes
    if case.shortage.is_at_own_limit or not held or not _explains(case, held):
        return None
    total = case.report.device_total_bytes or case.shortage.allowed_bytes
    grown = _risen(case.report.samples, "device.other_bytes")
    came_lately = grown is not None and _explains(case, grown)
    if not came_lately and (total is None or held < _LARGE_SHARE * total):
        return None
    others = [process for process in case.report.processes if not process.get("own")]
    largest = max(others, key=lambda process: amount_in(process, "bytes"))
    return Cause("other_process", 0.9 if came_lately else 0.6, held, process_text(largest))


def process_text(process: Mapping[str, Any]) -> str:
    """``pid 4123, jupyter``."""
    command = text_in(process, "command") or text_in(process, "name")
    return ", ".join(filter(None, (f"pid {process.get('pid', '?')}", command[:40])))


def _outside(case: OomCase) -> Cause | None:
    """This process took more beside the allocator than it had a minute ago."""
    if case.shortage.is_at_own_limit:
        return None
    samples = case.report.samples
    beside = samples.numbers("device.process_bytes") - samples.numbers("reserved_bytes.all.current")
    known = beside[~np.isnan(beside)]
    if len(known) < 2:
        return None
    grown = int(known[-1] - known.min())
    parts = sorted(case.report.outside, key=lambda part: -amount_in(part, "bytes"))
    who = text_in(parts[0], "name") if parts else ""
    return Cause("outside", 0.7, grown, who) if _explains(case, grown) else None


# ------------------------------------------------------------------------------- it is not training


def _phase(case: OomCase) -> Cause | None:
    """A phase beside training, unless it had been through before and more is kept since then."""
    if not case.phase:
        return None
    kept = case.demand.kept
    if case.passed_stretches and kept is not None and _explains(case, kept.bytes):
        return None
    names = {"eval": "evaluation", "checkpoint": "checkpoint"}
    return Cause(names.get(case.phase, "phase"), 0.85, case.moving_bytes, case.phase)


# ------------------------------------------------------------------------------------- more is kept


def _growth(case: OomCase) -> Cause | None:
    """What is kept grew. Outputs of a step that are still referenced at its end grow with the
    batch: then what the step needs besides grows by more."""
    kept, growing = case.demand.kept, case.demand.growing
    if kept is None or not _explains(case, kept.bytes):
        return None
    if growing is not None and growing.bytes > kept.bytes:
        return None
    return Cause("growth", 0.6 if kept.is_jump else 0.8, kept.bytes)


def _first_step_state(case: OomCase) -> Cause | None:
    """The optimizer makes its state when it steps first: whoever tried a batch did not see it."""
    has_state = case.report.by_category.get("category.optimizer_state_bytes")
    in_optimizer = case.report.part == "optimizer" and not has_state and case.demand.is_first_step
    if not is_making_state(case.report) and not in_optimizer:
        return None
    return Cause("first_step_state", 0.85)


# ---------------------------------------------------------------------- somebody asked for more


def _resize(case: OomCase) -> Cause | None:
    """It is the first step of a larger batch, and no step of the smaller one had needed as much."""
    if case.new_batch is None or case.new_batch[1] <= case.new_batch[0]:
        return None
    ratio = moving_ratio(case)
    if ratio is not None and ratio <= 1:
        return None
    needed, highest = case.shortage.needed_bytes, case.demand.highest_peak_bytes
    size = None if needed is None or highest is None else max(needed - highest, 0)
    return Cause("resize", 0.9, size or None)


# ---------------------------------------------------------------------------- enough, but in pieces


def _fragmentation(case: OomCase) -> Cause | None:
    """Enough was free, no piece of it was large enough, and the job had been served as much before:
    other steps needed no less, or the segment that once was taken for as much is carved up.

    Where needs grow from step to step, pieces put together would only have put it off.
    """
    shortage, growing = case.shortage, case.demand.growing
    if not shortage.fits_in_pieces:
        return None
    if growing is not None and growing.per_step > 0:
        spare = (shortage.pieces_bytes or 0) + (shortage.room_bytes or 0)
        left = (spare - (shortage.request_bytes or 0)) / growing.per_step
        if left < _STEPS_LEFT:
            return None
    ratio = moving_ratio(case)
    if was_served_before(case):
        return Cause("fragmentation", 0.9, shortage.pieces_bytes)
    if ratio is None:
        return Cause("fragmentation", 0.6, shortage.pieces_bytes)
    return None if ratio > _SPIKE else Cause("fragmentation", 0.7, shortage.pieces_bytes)


def was_served_before(case: OomCase) -> bool:
    """Whether the job had got as much before: a step had, or one request that is most of it."""
    ratio, shortage = moving_ratio(case), case.shortage
    if ratio is not None and ratio <= _SAME:
        return True
    return shortage.was_whole and 2 * (shortage.request_bytes or 0) >= (shortage.needed_bytes or 0)


# ----------------------------------------------------------------------------- this step needs more


def _large_request(case: OomCase) -> Cause | None:
    """One request that would not have fitted if everything else had been freed."""
    request, allowed = case.shortage.request_bytes, case.shortage.allowed_bytes
    if request is None or allowed is None or request <= allowed:
        return None
    return Cause("large_request", 0.9, request)


def _growing_demand(case: OomCase) -> Cause | None:
    growing = case.demand.growing
    if growing is None or not _explains(case, growing.bytes):
        return None
    return Cause("growing_demand", 0.8, growing.bytes)


def _spike(case: OomCase) -> Cause | None:
    ratio = moving_ratio(case)
    needed, highest = case.shortage.needed_bytes, case.demand.highest_peak_bytes
    if needed is None or highest is None or ratio is None or ratio <= _SPIKE:
        return None
    return Cause("spike", 0.85 if ratio > 1.5 else 0.7, needed - highest)


def _too_big(case: OomCase) -> Cause | None:
    return Cause("too_big", 0.8) if case.demand.is_first_step else None


def _limit(case: OomCase) -> Cause | None:
    """No step was out of the ordinary: the usual ones had come that close."""
    if case.demand.is_first_step or case.shortage.needed_bytes is None:
        return None
    return Cause("limit", 0.5)


_JUDGES: Final[tuple[Judge, ...]] = (
    _host,
    _cache,
    _retained_exception,
    _garbage,
    _other_process,
    _outside,
    _phase,
    _growth,
    _first_step_state,
    _resize,
    _fragmentation,
    _growing_demand,
    _spike,
    _large_request,
    _too_big,
    _limit,
)


def _explains(case: OomCase, size: int) -> bool:
    """Whether this much would have been enough to grant the request."""
    missing = case.shortage.missing_bytes
    return size > 0 and (missing is None or size >= missing)


def moving_ratio(case: OomCase) -> float | None:
    """What this step had needed so far beyond the constant part, against the most before."""
    moving, highest = case.moving_bytes, case.demand.highest_moving_bytes
    if moving is None or not highest:
        return None
    return moving / highest


def _risen(samples: Rows, name: str) -> int | None:
    values = samples.numbers(name)
    known = values[~np.isnan(values)]
    return int(known[-1] - known.min()) if len(known) >= 2 else None


def _chain(tensor: Mapping[str, Any]) -> str:
    return ", ".join(texts_in(tensor, "held_by")[:4])
