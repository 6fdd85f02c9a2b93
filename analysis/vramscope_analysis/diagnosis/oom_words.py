"""An out-of-memory in two sentences: what happened, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.oom_causes import Cause, moving_ratio
from vramscope_analysis.diagnosis.words import UNKNOWN_TEXT, count_text, fitting, size_text

Words = Callable[[OomCase, Cause], str]


def summary_of(case: OomCase, cause: Cause) -> str:
    """One sentence of at most 110 characters: what happened, by how much, where."""
    asked = _asked(case)
    special = _SUMMARIES.get(cause.name)
    sentences = [special(case, cause)] if special else []
    sentences = [sentence for sentence in sentences if UNKNOWN_TEXT not in sentence]
    return fitting(*sentences, f"{_head(case)}: {asked}." if asked else f"{_head(case)}.")


def detail_of(case: OomCase, causes: list[Cause]) -> str:
    """Where it was, why, what was going on besides; what is not known is left out."""
    main = causes[0]
    parts = [_where(case), _DETAILS[main.name](case, main) if main.name in _DETAILS else ""]
    asked = _asked(case)
    if asked and "asked for" not in summary_of(case, main):
        parts.insert(0, f"It {asked}.")
    if case.shortage.fits_in_pieces and main.name != "fragmentation":
        parts.append(_free_in_pieces(case))
    also = [_ALSO[cause.name](case, cause) for cause in causes[1:] if cause.name in _ALSO]
    parts += [f"Also: {text}" for text in also[:1]]
    if case.shortage.is_at_own_limit:
        parts.append(_own_limit(case))
    recovered = case.report.recovered_step
    if recovered is not None:
        parts.append(f"The job went on: step {count_text(recovered)} ended after it.")
    return " ".join(part for part in parts if part and UNKNOWN_TEXT not in part)


def _head(case: OomCase) -> str:
    verb = "Ran out of memory" if case.report.recovered_step is not None else "Out of memory"
    if case.phase == "eval":
        verb += " in evaluation"
    elif case.phase:
        verb += f" in {case.phase}"
    if case.demand.is_first_step:
        return f"{verb} before the first step was over"
    step = case.report.step
    return verb if step is None else f"{verb} at step {count_text(step)}"


def _asked(case: OomCase) -> str:
    """``asked for 198 MiB, the largest piece left was 166 MiB``."""
    shortage = case.shortage
    if shortage.request_bytes is None:
        return ""
    asked = f"asked for {size_text(shortage.request_bytes)}"
    left = shortage.largest_left_bytes
    if left is None or left >= shortage.request_bytes:
        return asked
    return f"{asked}, the largest piece left was {size_text(left)}"


def _where(case: OomCase) -> str:
    if case.place is None:
        return f"In the {case.report.part} pass." if case.report.part == "backward" else ""
    if case.place.is_backward:
        return f"In the backward pass, called from {case.place.short} {case.place.function}."
    return f"In {case.place.text}."


def _free_in_pieces(case: OomCase) -> str:
    free = (case.shortage.pieces_bytes or 0) + (case.shortage.room_bytes or 0)
    return f"{size_text(free)} were free in all, but in pieces."


def _own_limit(case: OomCase) -> str:
    free = case.report.device_free_bytes
    left = "" if free is None else f"; the device had {size_text(free)} free"
    return f"The limit is the process's own, not the device's{left}."


# ---------------------------------------------------------------------------------------- summaries


def _of_other_process(case: OomCase, cause: Cause) -> str:
    return f"{_head(case)}: other processes hold {size_text(cause.bytes)} ({cause.who})."


def _of_garbage(case: OomCase, cause: Cause) -> str:
    return f"{_head(case)} with {size_text(cause.bytes)} of garbage that Python had not collected."


def _of_exception(case: OomCase, cause: Cause) -> str:
    return f"{_head(case)}: the traceback of an exception keeps {size_text(cause.bytes)}."


def _of_growth(case: OomCase, cause: Cause) -> str:
    kept = case.demand.kept
    since = "" if kept is None or kept.since_step is None else f" since step {kept.since_step:,}"
    return f"{_head(case)}: what steps keep grew by {size_text(cause.bytes)}{since}."


def _of_spike(case: OomCase, cause: Cause) -> str:
    needed, highest = case.shortage.needed_bytes, case.demand.highest_peak_bytes
    times = needed / highest if needed and highest else 0.0
    by = f"{times:,.0f} times as much as" if times >= 3 else "more than"
    return (
        f"{_head(case)}, which needs at least {size_text(needed)}: {by} any before "
        f"({size_text(highest)})."
    )


def _of_pieces(case: OomCase, cause: Cause) -> str:
    """The kind has no word of its own here: that it lies in pieces says it."""
    shortage = case.shortage
    free = (shortage.pieces_bytes or 0) + (shortage.room_bytes or 0)
    return (
        f"{_head(case)}: asked for {size_text(shortage.request_bytes)} in one piece; the largest "
        f"is {size_text(shortage.largest_left_bytes)}, of {size_text(free)} free."
    )


def _of_state(case: OomCase, cause: Cause) -> str:
    asked = size_text(case.shortage.request_bytes)
    left = size_text(case.shortage.largest_left_bytes)
    return f"Out of memory as the optimizer made its state: asked for {asked}, {left} were left."


def _of_large_request(case: OomCase, cause: Cause) -> str:
    place = f" at {case.place.short}" if case.place else ""
    allowed = size_text(case.shortage.allowed_bytes)
    return f"{_head(case)}: {size_text(cause.bytes)} in one piece{place}, of {allowed} in all."


def _of_cache(case: OomCase, cause: Cause) -> str:
    return (
        f"{_head(case)} outside of PyTorch, whose cache has {size_text(cause.bytes)} "
        "that it could give back."
    )


def _of_pinned(case: OomCase, cause: Cause) -> str:
    return f"{_head(case)}: the host had no more memory to pin."


def _of_host(case: OomCase, cause: Cause) -> str:
    return f"{_head(case)} of the host."


_SUMMARIES: Final[dict[str, Words]] = {
    "other_process": _of_other_process,
    "garbage": _of_garbage,
    "retained_exception": _of_exception,
    "growth": _of_growth,
    "spike": _of_spike,
    "fragmentation": _of_pieces,
    "first_step_state": _of_state,
    "large_request": _of_large_request,
    "cache": _of_cache,
    "pinned_host": _of_pinned,
    "host": _of_host,
}

# ------------------------------------------------------------------------------------------ details


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
    largest = next((t for t in case.report.largest if not t.get("category")), {}).get("tensor")
    return f"{text}{kept}." + (f" The largest tensor now is {largest}." if largest else "")


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
    return f"Steps had peaked at {size_text(case.demand.highest_peak_bytes)} before."


def _why_garbage(case: OomCase, cause: Cause) -> str:
    return "PyTorch's allocator does not run Python's collector before it gives up."


def _why_exception(case: OomCase, cause: Cause) -> str:
    held = f" ({cause.who})" if cause.who else ""
    return f"Its frames{held} keep the tensors of what failed before."


def _why_cache(case: OomCase, cause: Cause) -> str:
    return "Memory in whole free segments serves PyTorch alone until its cache is emptied."


_DETAILS: Final[dict[str, Words]] = {
    "fragmentation": _why_pieces,
    "growing_demand": _why_growing,
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


_ALSO: Final[dict[str, Words]] = {
    "growth": _also_growth,
    "other_process": _also_other,
    "garbage": _also_garbage,
}
