"""Why it is the cause that was found, and what was so besides: one sentence or two of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.oom_causes import Cause, moving_ratio
from vramscope_analysis.diagnosis.oom_message import is_probable
from vramscope_analysis.diagnosis.words import UNKNOWN_TEXT, size_text
from vramscope_analysis.evidence.entry_values import text_in

Words = Callable[[OomCase, Cause], str]


def reason_of(case: OomCase, cause: Cause) -> str:
    """Why it was that; empty where that is not known, or says nothing new."""
    return _known(_REASONS[cause.name](case, cause)) if cause.name in _REASONS else ""


def besides_of(case: OomCase, cause: Cause) -> str:
    """The same of a cause that is not the main one."""
    return _known(_BESIDES[cause.name](case, cause)) if cause.name in _BESIDES else ""


def _known(text: str) -> str:
    return "" if UNKNOWN_TEXT in text else text


def _why_pieces(case: OomCase, cause: Cause) -> str:
    text = "What is free lies in pieces between live blocks."
    needed, highest = case.shortage.needed_bytes, case.demand.highest_peak_bytes
    if case.shortage.was_whole:
        carved = size_text(case.shortage.carved_bytes)
        return f"{text} A segment of {carved}, once taken whole, is carved up by what stays in it."
    if needed is not None and highest is not None and needed <= highest:
        return f"{text} Steps before had peaked at up to {size_text(highest)}, and fitted."
    ratio = moving_ratio(case)
    if ratio is not None and ratio <= 1:
        most = size_text(case.demand.highest_moving_bytes)
        text += f" Steps before had needed up to {most} beyond what stays, and got it."
    return text


def _why_growing(case: OomCase, cause: Cause) -> str:
    growing = case.demand.growing
    if growing is None:
        return ""
    rest = "; what is kept between steps did not" if case.demand.kept is None else ""
    return (
        f"What a step needs grew by {size_text(growing.per_step)} with every step, as when "
        f"sequences get longer{rest}."
    )


def _why_spike(case: OomCase, cause: Cause) -> str:
    demand = case.demand
    text = f"Steps had peaked at {size_text(demand.usual_peak_bytes)} as a rule"
    lowest, highest = demand.lowest_peak_bytes, demand.highest_peak_bytes
    if lowest is not None and highest is not None and highest > 1.05 * lowest:
        text = (
            f"Steps had peaked at {size_text(lowest)} to {size_text(highest)}, "
            "depending on their data"
        )
    kept = "" if demand.kept else "; nothing had piled up between them"
    own = [text_in(t, "tensor") for t in case.report.largest if not t.get("category")]
    return f"{text}{kept}." + (f" The largest tensor now is {own[0]}." if own and own[0] else "")


def _why_resize(case: OomCase, cause: Cause) -> str:
    before, _ = case.new_batch or (0, 0)
    highest = size_text(case.demand.highest_peak_bytes)
    return f"A command had changed it just before; steps with {before:,} had peaked at {highest}."


def _why_growth(case: OomCase, cause: Cause) -> str:
    kept = case.demand.kept
    if kept is None:
        return ""
    if kept.is_jump:
        return f"It came at once, at step {kept.since_step}, and stayed."
    return f"That is {size_text(kept.per_step)} per step, kept from one to the next."


def _why_too_big(case: OomCase, cause: Cause) -> str:
    constant, scaling = case.demand.constant_bytes, case.scaling_bytes
    if constant is None or scaling is None:
        return ""
    come = "" if case.demand.has_gradients else " Gradients and the optimizer's state are to come."
    return (
        f"Parameters, buffers and state take {size_text(constant)}; "
        f"what the batch needs had reached {size_text(scaling)}.{come}"
    )


def _why_state(case: OomCase, cause: Cause) -> str:
    text = "A forward and a backward pass alone do not show it"
    return f"{text}: whoever tries a batch has to step the optimizer too."


def _why_evaluation(case: OomCase, cause: Cause) -> str:
    usual = case.demand.usual_peak_bytes
    if usual is None:
        return "It was not a training step."
    return f"Training steps peak at {size_text(usual)} as a rule; they are not what ran out."


def _why_other(case: OomCase, cause: Cause) -> str:
    return f"This process holds {size_text(case.shortage.reserved_bytes)}."


def _why_limit(case: OomCase, cause: Cause) -> str:
    highest, allowed = case.demand.highest_peak_bytes, case.shortage.allowed_bytes
    now = ", more than it may have now" if highest and allowed and highest > allowed else ""
    return f"Steps had peaked at {size_text(highest)} before{now}."


def _why_garbage(case: OomCase, cause: Cause) -> str:
    return "PyTorch's allocator does not run Python's collector before it gives up."


def _why_exception(case: OomCase, cause: Cause) -> str:
    held = f" ({cause.who})" if cause.who else ""
    return f"Its frames{held} keep the tensors of what failed before."


def _why_cache(case: OomCase, cause: Cause) -> str:
    return "Memory in whole free segments serves PyTorch alone until its cache is emptied."


def _why_unknown(case: OomCase, cause: Cause) -> str:
    if not is_probable(case.report.message):
        return ""
    held, allowed = case.shortage.reserved_bytes, case.shortage.allowed_bytes
    return (
        "PyTorch failed while it put an error into words, as it does where NVML does not answer; "
        f"it held {size_text(held)} of {size_text(allowed)}."
    )


_REASONS: Final[dict[str, Words]] = {
    "fragmentation": _why_pieces,
    "unknown": _why_unknown,
    "growing_demand": _why_growing,
    "resize": _why_resize,
    "spike": _why_spike,
    "growth": _why_growth,
    "too_big": _why_too_big,
    "first_step_state": _why_state,
    "evaluation": _why_evaluation,
    "checkpoint": _why_evaluation,
    "phase": _why_evaluation,
    "other_process": _why_other,
    "limit": _why_limit,
    "garbage": _why_garbage,
    "retained_exception": _why_exception,
    "cache": _why_cache,
}


def _also_growth(case: OomCase, cause: Cause) -> str:
    return f"what steps keep had grown by {size_text(cause.bytes)}."


def _also_other(case: OomCase, cause: Cause) -> str:
    return f"other processes hold {size_text(cause.bytes)} ({cause.who})."


def _also_garbage(case: OomCase, cause: Cause) -> str:
    return f"{size_text(cause.bytes)} were garbage that Python had not collected."


_BESIDES: Final[dict[str, Words]] = {
    "growth": _also_growth,
    "other_process": _also_other,
    "garbage": _also_garbage,
}
