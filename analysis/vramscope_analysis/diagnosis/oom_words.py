"""An out-of-memory in two sentences: what happened, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.oom_causes import Cause
from vramscope_analysis.diagnosis.oom_message import is_probable
from vramscope_analysis.diagnosis.oom_reasons import besides_of, reason_of
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
    parts = [_where(case), reason_of(case, main)]
    asked = _asked(case)
    if asked and "asked for" not in summary_of(case, main):
        parts.insert(0, f"It {asked}.")
    if case.shortage.fits_in_pieces and main.name != "fragmentation":
        parts.append(_free_in_pieces(case))
    besides = [text for text in (besides_of(case, cause) for cause in causes[1:]) if text]
    parts += [f"Also: {text}" for text in besides[:1]]
    if case.shortage.is_at_own_limit:
        parts.append(_own_limit(case))
    recovered = case.report.recovered_step
    if recovered is not None:
        parts.append(f"The job went on: step {count_text(recovered)} ended after it.")
    return " ".join(part for part in parts if part and UNKNOWN_TEXT not in part)


def title_of(cause: Cause) -> str:
    """A few words for the top of a card."""
    return _TITLES.get(cause.name, "Out of memory")


def facts_of(case: OomCase, cause: Cause) -> list[str]:
    """Why it is this cause: short sentences."""
    shortage = case.shortage
    missing = ""
    if shortage.missing_bytes and shortage.request_bytes is not None:
        request = size_text(shortage.request_bytes)
        missing = f"{size_text(shortage.missing_bytes)} were missing for a request of {request}."
    return [fact for fact in (missing, reason_of(case, cause)) if fact]


def _head(case: OomCase) -> str:
    verb = "Ran out of memory" if case.report.recovered_step is not None else "Out of memory"
    if is_probable(case.report.message):
        verb = f"Probably {verb[0].lower()}{verb[1:]}"
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


_TITLES: Final = {
    "resize": "The new batch size does not fit",
    "spike": "One step needs far more than the others",
    "growing_demand": "Steps need more and more",
    "growth": "More is kept with every step",
    "fragmentation": "Free memory lies in pieces",
    "garbage": "Garbage that was not collected",
    "retained_exception": "An exception keeps tensors",
    "other_process": "Another process holds the memory",
    "outside": "Memory beside PyTorch's allocator",
    "cache": "PyTorch's cache kept it from others",
    "evaluation": "The evaluation does not fit",
    "checkpoint": "Saving does not fit",
    "first_step_state": "The optimizer's state does not fit",
    "large_request": "One request for more than there is",
    "too_big": "The first step does not fit",
    "limit": "No room to spare",
    "pinned_host": "No host memory left to pin",
    "host": "No host memory left",
}

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
    by = f"{times:,.0f} times more" if times >= 3 else "more"
    return (
        f"{_head(case)}, which needs at least {size_text(needed)}, {by} than any before "
        f"({size_text(highest)})."
    )


def _of_resize(case: OomCase, cause: Cause) -> str:
    before, after = case.new_batch or (0, 0)
    return f"{_head(case)}, the first with a batch size of {after:,} instead of {before:,}."


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
    "resize": _of_resize,
    "spike": _of_spike,
    "fragmentation": _of_pieces,
    "first_step_state": _of_state,
    "large_request": _of_large_request,
    "cache": _of_cache,
    "pinned_host": _of_pinned,
    "host": _of_host,
}
