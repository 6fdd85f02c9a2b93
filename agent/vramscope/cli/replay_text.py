"""What ``vramscope replay`` says to a person, from the object that ``--json`` prints."""

from __future__ import annotations

from typing import Any, Final

from vramscope.cli.text_table import text_table
from vramscope.size_text import size_text

Answer = dict[str, Any]

_HEAD: Final = ("SETTINGS", "PEAK RESERVED", "GAIN", "IN USE", "RETRIES", "DEVICE ALLOCS", "COSTS")
_NUMBERS: Final = frozenset({1, 2, 3, 4, 5})
_NOW: Final = " (now)"
_COLLECTION: Final = "garbage_collection_threshold"
_HOW_TO_LIMIT: Final = "give --capacity and --set per_process_memory_fraction=..."
_LATE: Final = (
    "What was there before the recording stays as it was, under all settings: a complete recording "
    "is a better witness."
)
_WASTE_FRACTION: Final = 0.01
"""Part of the peak from which on a waste is worth a word."""


def replay_text(answer: Answer) -> str:
    """A few lines, each with the word for what it is about, and the advice if there is any."""
    lines = [
        ("recording", _recording(answer)),
        ("made with", _made_with(answer)),
        ("beginning", _beginning(answer)),
        ("replay", _replay(answer)),
        *_mismatches(answer),
        *_asked(answer),
        ("peak reserved", _peak(answer)),
        ("in use then", _in_use(answer)),
        ("device calls", _device_calls(answer)),
        ("out of memory", _out_of_memory(answer)),
    ]
    width = max(len(label) for label, _ in lines) + 2
    text = "\n".join(f"{label:<{width}}{words}" for label, words in lines)
    return text if answer["advice"] is None else f"{text}\n\n{_advice(answer)}"


# ------------------------------------------------------------------------------- what was recorded


def _recording(answer: Answer) -> str:
    parts = [f"device {answer['device']}", _count(answer["events"], "event")]
    if answer["steps"]:
        parts.append(_count(answer["steps"], "optimizer step"))
    return f"{answer['source']}: {', '.join(parts)}"


def _made_with(answer: Answer) -> str:
    oldest, newest = answer["torch_versions_that_fit"]
    version = answer["torch_version"]
    guess = ""
    if answer["torch_version_is_guessed"] and _release(version) > _release(newest):
        guess = f" (guessed from the blocks that it chose; its keys are those of {newest})"
    elif answer["torch_version_is_guessed"] and oldest != newest:
        guess = f" (guessed; {oldest} to {newest} write such snapshots)"
    return f"torch {version}{guess}, {_settings(answer['recorded_settings_text'])}"


def _release(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _beginning(answer: Answer) -> str:
    if answer["is_complete"]:
        return "complete: it starts with the first allocation"
    return _inferred(answer["inferred"])


def _inferred(state: Answer) -> str:
    """How much of what was there before the first event is known."""
    blocks = {name: state[f"{name}_blocks"] for name in ("recorded", "inferred", "guessed")}
    parts = [
        f"{blocks['recorded']:,} still there at the end",
        f"{blocks['inferred']:,} inferred",
        f"{blocks['guessed']:,} guessed",
    ]
    doubt = ""
    if state["uncertain_bytes"]:
        doubt = f", whose sizes may be {size_text(state['uncertain_bytes'])} too small in all"
    total = _count(sum(blocks.values()), "block")
    return (
        f"missing (recorded late, or the ring wrapped): {total} before, {', '.join(parts)}{doubt}"
    )


def _replay(answer: Answer) -> str:
    segments, blocks = _count(answer["segment_events"], "segment event"), answer["blocks"]
    if answer["is_exact"]:
        if not _has_requests(answer):
            return "nothing to compare: no request for memory was recorded"
        return (
            f"exact: all {segments} and the addresses of all {_count(blocks, 'block')} as recorded"
        )
    # The replay may make events that nobody recorded: more may differ than there are.
    parts = [
        f"{answer['segment_mismatches']:,} differences in {segments}",
        f"{answer['block_mismatches']:,} of {_count(blocks, 'block')} lie elsewhere",
    ]
    if answer["final_mismatches"]:
        parts.append(f"{_count(answer['final_mismatches'], 'difference')} in what is left")
    if answer["unknown_frees"]:
        parts.append(f"{_count(answer['unknown_frees'], 'free')} of unknown blocks")
    return ", ".join(parts)


def _has_requests(answer: Answer) -> bool:
    return bool(answer["blocks"] or answer["recorded_ooms"])


def _mismatches(answer: Answer) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    if answer["first_mismatches"]:
        first = answer["first_mismatches"][0]
        where = f"first at event {first['event']:,}"
        lines.append(("", f"{where}: expected {first['expected']}, got {first['got']}"))
    if answer["better_torch_versions"]:
        version = answer["better_torch_versions"][0]
        lines.append(("", f"the rules of torch {version} fit better: try --torch {version}"))
    if answer["is_far_off"]:
        lines.append(("", "too far from what was recorded: do not trust what it predicts"))
    return lines


# ---------------------------------------------------------------------------------- what was asked


def _asked(answer: Answer) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    if answer["changed_settings"]:
        lines.append(("what if", _settings(answer["settings_text"])))
    if answer["settings"][_COLLECTION] and answer["limit_bytes"] is None:
        lines.append(("", f"{_COLLECTION} does nothing without a memory limit: {_HOW_TO_LIMIT}"))
    return [*lines, ("memory", _memory(answer))]


def _memory(answer: Answer) -> str:
    source, limit_bytes = answer["capacity_source"], answer["limit_bytes"]
    if source == "unbounded":
        return "without end: nothing was refused"
    if source == "varying":
        return "as much as was refused each time: no constant limit explains it"
    device = size_text(answer["capacity_bytes"])
    limit = f"a limit of {size_text(limit_bytes)}"
    text = device if limit_bytes is None else limit
    if source == "given":
        return f"{text}, as given"
    recorded, refused = answer["recorded_peak_reserved_bytes"], answer["least_refused_bytes"]
    return (
        f"{text}, inferred: {size_text(recorded)} were reserved and "
        f"{size_text(refused)} were refused"
    )


def _peak(answer: Answer) -> str:
    recorded = answer["recorded_peak_reserved_bytes"]
    predicted = answer["predicted_peak_reserved_bytes"]
    if predicted == recorded:
        return f"{size_text(predicted)}, as recorded"
    change = f", {(predicted - recorded) / recorded:+.1%}".replace("%", " %") if recorded else ""
    return f"{size_text(predicted)} predicted, {size_text(recorded)} recorded{change}"


def _in_use(answer: Answer) -> str:
    if not answer["predicted_peak_reserved_bytes"]:
        return "nothing"
    used = 1 - answer["fragmentation_at_peak"]
    used_bytes = round(used * answer["predicted_peak_reserved_bytes"])
    waste_bytes = answer["rounding_waste_at_peak_bytes"]
    waste = f", of which rounding wastes {size_text(waste_bytes)}" if waste_bytes else ""
    where = "" if answer["peak"] is None else f", {_where(answer['peak'])}"
    return f"{size_text(used_bytes)} ({_percent(used)}){where}{waste}"


def _device_calls(answer: Answer) -> str:
    retries = answer["retries"]
    return (
        f"{answer['device_allocs']:,} to allocate, {answer['device_frees']:,} to free, "
        f"the cache flushed for a retry {_count(retries, 'time')}"
    )


def _out_of_memory(answer: Answer) -> str:
    oom = answer["out_of_memory"]
    if oom is None:
        if answer["end"] is not None:
            return f"no, but the recorded job did {_where(answer['end']['at'])}: the end is unknown"
        return "no"
    missing_bytes = oom["needed_bytes"] - oom["allowed_bytes"]
    # Where the recorded job failed at the same request, what it did instead is in the recording.
    need = "the rest of the job" if answer["end"] is not None else "this request"
    return (
        f"{_where(oom)}: {size_text(oom['requested_bytes'])} were asked for with "
        f"{size_text(oom['reserved_bytes'])} of {size_text(oom['allowed_bytes'])} reserved; "
        f"{size_text(missing_bytes)} more would do for {need}"
    )


# -------------------------------------------------------------------------------------- the advice


def cost_words(advice: Answer) -> list[str]:
    """What settings cost beyond the recorded ones, the worst first; empty for nothing."""
    if advice["is_recorded"]:
        return []
    costs: list[str] = []
    if advice["more_retries"] > 0:
        costs.append(f"costs {_count(advice['more_retries'], 'more retry', 'more retries')}")
    if advice["more_device_allocs"] > 0:
        allocs = _count(advice["more_device_allocs"], "more device allocation")
        costs.append(f"{allocs} than now")
    least_bytes = _WASTE_FRACTION * advice["predicted_peak_reserved_bytes"]
    if advice["more_rounding_waste_bytes"] > least_bytes:
        costs.append(f"rounding wastes {size_text(advice['rounding_waste_at_peak_bytes'])} at peak")
    if advice["settings"][_COLLECTION]:
        assumed = ", assumed" if advice["limit_is_assumed"] else ""
        limit = f"{size_text(advice['limit_bytes'])}{assumed}"
        costs.append(f"needs set_per_process_memory_fraction ({limit})")
    return costs


def _advice(answer: Answer) -> str:
    table = text_table([_HEAD, *map(_row, answer["advice"])], right=_NUMBERS)
    doubt = "" if answer["is_complete"] else f"\n  {_LATE}"
    return f"{_verdict(answer)}{doubt}\n\n{table}"


def _verdict(answer: Answer) -> str:
    if not _has_requests(answer):
        return "Advice: none, because no request for memory was recorded."
    if answer["is_far_off"]:
        return "Advice: none, because the replay is too far from what was recorded."
    rows: list[Answer] = answer["advice"]
    now = next(row for row in rows if row["is_recorded"])
    best = next((row for row in rows if row["settings_text"] == answer["advised"]), None)
    if best is None:
        if now["oom"]:
            return "Advice: none of these settings avoids running out of memory."
        return "Advice: keep the settings; no other saves 64 MiB and 2 %."
    head = f"Advice: PYTORCH_CUDA_ALLOC_CONF={best['settings_text'] or '(unset)'}"
    costs = "; ".join(best["costs"]) or "costs nothing that the replay can see"
    return f"{head}\n  {_gain_words(best, now)}; {costs}."


def _gain_words(best: Answer, now: Answer) -> str:
    if now["oom"]:
        return "gets past where the job ran out of memory"
    if now["retries"] and not best["retries"]:
        return f"avoids {_count(now['retries'], 'retry', 'retries')}"
    peak_bytes = now["predicted_peak_reserved_bytes"]
    gain = f"{size_text(best['gain_bytes'])} ({_percent(best['gain_bytes'] / peak_bytes)})"
    return f"reserves {gain} less than the {size_text(peak_bytes)} of now"


def _row(advice: Answer) -> tuple[str, ...]:
    oom = advice["out_of_memory"]
    name = advice["settings_text"] or "defaults"
    peak_bytes = advice["predicted_peak_reserved_bytes"]
    return (
        name + (_NOW if advice["is_recorded"] else ""),
        size_text(peak_bytes),
        "" if advice["is_recorded"] or oom else size_text(advice["gain_bytes"]),
        _percent(1 - advice["fragmentation_at_peak"]) if peak_bytes else "",
        f"{advice['retries']:,}",
        f"{advice['device_allocs']:,}",
        "; ".join([f"out of memory {_where(oom)}"] if oom else advice["costs"]),
    )


# -------------------------------------------------------------------------------------- the words


def _settings(text: str) -> str:
    return text or "default settings"


def _where(moment: Answer) -> str:
    event = f"event {moment['event']:,}"
    return f"at {event}" if moment["step"] is None else f"in step {moment['step']} ({event})"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _percent(fraction: float) -> str:
    return f"{fraction * 100:.1f} %"
