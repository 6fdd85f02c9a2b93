"""Reads what an agent answers to the question what grows. Whatever it says, this does not raise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from vramscope_analysis.evidence.growth_report import Frame, GrowthGroup, GrowthReport, Holder

COMMAND: Final = "explain_growth"

MAX_GROUPS: Final = 64
MAX_FRAMES: Final = 64
MAX_HOLDERS: Final = 16
MAX_WORDS: Final = 16
MAX_LOOKS: Final = 64
MAX_TEXT: Final = 400
_MOST: Final = 1 << 53
"""Beyond it JSON's readers lose digits, and no memory is as large."""


def growth_answers(command: dict[str, Any]) -> Iterator[tuple[int, GrowthReport]]:
    """Reports in the receipts of a command, by rank."""
    if command["name"] != COMMAND:
        return
    for rank, receipt in command["receipts"].items():
        if receipt["state"] == "done" and isinstance(receipt["result"], Mapping):
            yield int(rank), growth_report(receipt["result"], receipt["time_ns"])


def growth_report(answer: Mapping[str, Any], time_ns: int) -> GrowthReport:
    """Read one report; what is not as it should be is left out.

    Args:
        answer: the receipt's result.
        time_ns: when the receipt was made.
    """
    complete = answer.get("complete")
    return GrowthReport(
        time_ns,
        _integers(answer.get("steps")),
        _integers(answer.get("live_bytes_at_looks")),
        tuple(_group(each) for each in _maps(answer.get("groups"), MAX_GROUPS)),
        tuple(_plain(each) for each in _maps(answer.get("host_groups"), MAX_GROUPS)),
        _plain(answer.get("garbage")),
        _float(answer.get("added_us_per_step")),
        complete if isinstance(complete, bool) else False,
        _texts(answer.get("notes")),
    )


def _group(group: Mapping[str, Any]) -> GrowthGroup:
    return GrowthGroup(
        tuple(_frame(each) for each in _maps(group.get("stack"), MAX_FRAMES)),
        group.get("in_backward") is True,
        _integer(group.get("bytes")) or 0,
        _integer(group.get("count")) or 0,
        _integers(group.get("bytes_at_looks")),
        _integers(group.get("counts_at_looks")),
        _texts(group.get("tensors")),
        tuple(_holder(each) for each in _maps(group.get("holders"), MAX_HOLDERS)),
        _integer(group.get("garbage_bytes")) or 0,
    )


def _holder(holder: Mapping[str, Any]) -> Holder:
    frame, is_growing = holder.get("frame"), holder.get("is_growing")
    return Holder(
        _text(holder.get("kind")) or "unknown",
        _texts(holder.get("chain")),
        _frame(frame) if isinstance(frame, Mapping) else None,
        _integer(holder.get("tensors")) or 0,
        is_growing if isinstance(is_growing, bool) else None,
    )


def _frame(frame: Mapping[str, Any]) -> Frame:
    return Frame(
        _text(frame.get("file")), _integer(frame.get("line")) or 0, _text(frame.get("function"))
    )


def _maps(value: Any, most: int) -> list[Mapping[str, Any]]:
    found = value[:most] if isinstance(value, (list, tuple)) else []
    return [each for each in found if isinstance(each, Mapping)]


def _integer(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if abs(value) <= _MOST else None  # NaN is not


def _float(value: Any) -> float | None:
    number = _integer(value)
    return None if number is None else float(value)


def _integers(value: Any) -> tuple[int, ...]:
    found = value[:MAX_LOOKS] if isinstance(value, (list, tuple)) else ()
    return tuple(number for each in found if (number := _integer(each)) is not None)


def _text(value: Any) -> str:
    return value[:MAX_TEXT].replace("\0", "") if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    found = value[:MAX_WORDS] if isinstance(value, (list, tuple)) else ()
    return tuple(text for each in found if (text := _text(each)))


def _plain(value: Any) -> dict[str, Any]:
    """An object of numbers, words and lists of words; the rest is left out."""
    if not isinstance(value, Mapping):
        return {}
    found: dict[str, Any] = {}
    for name, each in list(value.items())[:MAX_WORDS]:
        if isinstance(each, bool):
            kept: Any = each
        elif isinstance(each, (int, float)):
            kept = _integer(each)
        else:
            kept = _text(each) if isinstance(each, str) else list(_texts(each))
        if isinstance(name, str) and kept is not None:
            found[_text(name)] = kept
    return found
