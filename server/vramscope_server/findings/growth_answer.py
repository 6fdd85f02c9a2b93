"""Reads what an agent answers to the question what grows. Whatever it says, this does not raise."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from typing import Any, Final, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

from vramscope_analysis.diagnosis.questions import COMMAND
from vramscope_analysis.evidence.entry_values import is_object
from vramscope_analysis.evidence.growth_report import GrowthReport
from vramscope_server.findings.plain_data import plain_text, plain_value

MAX_ITEMS: Final = 64
"""Of any list, and of any object."""
MAX_TEXT: Final = 400
_MOST: Final = 1 << 53
"""Beyond it JSON's readers lose digits, and no memory is as large."""

Read = Callable[[Any], Any]


class Answer(NamedTuple):
    """What one rank answered, and what it looked at.

    Args:
        key: the same for the same answer.
        is_of_host: at host memory and at nothing else.
        is_within_step: at what is held in the midst of a step.
    """

    rank: int
    key: tuple[str, int]
    time_ns: int
    told: Mapping[str, Any]
    is_of_host: bool
    is_within_step: bool

    def report(self) -> GrowthReport:
        """What it says. Reading takes milliseconds: not twice."""
        return growth_report(self.told, self.time_ns)


def growth_answers(command: dict[str, Any]) -> Iterator[Answer]:
    """Reports in the receipts of a command."""
    if command["name"] != COMMAND:
        return
    is_of_host = command["params"].get("host") is True
    is_within_step = command["params"].get("above_bytes") is not None
    for rank, receipt in command["receipts"].items():
        if not isinstance(receipt.get("result"), Mapping):
            continue
        told: Mapping[str, Any] = receipt["result"]
        is_so_far = receipt["state"] == "running" and told.get("holders_follow") is True
        if receipt["state"] == "done" or is_so_far:
            time_ns = receipt["time_ns"]
            key = command.get("id", ""), time_ns
            yield Answer(int(rank), key, time_ns, told, is_of_host, is_within_step)


def growth_report(answer: Mapping[str, Any], time_ns: int) -> GrowthReport:
    """Read one report; what is not as it should be is as if it were not there.

    Args:
        answer: the receipt's result.
        time_ns: when the receipt was made.
    """
    report: GrowthReport = _reader(GrowthReport)(answer)
    return replace(report, time_ns=time_ns, complete=answer.get("complete") is True)


@cache
def _reader(kind: Any) -> Read:
    """How a value of a type is read; None is no value of it."""
    if is_dataclass(kind):
        return _dataclass_reader(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _reader(next(each for each in inner if each is not types.NoneType))
    if origin is tuple:
        return partial(_tuple, read=_reader(inner[0]))
    if origin is Mapping:
        return _object
    return _PLAIN[kind]


def _dataclass_reader(kind: Any) -> Read:
    hints = get_type_hints(kind)
    readers = {field.name: _reader(hints[field.name]) for field in fields(kind)}
    required = {"file": "", "line": 0, "kind": "unknown"}

    def read(value: Any) -> Any:
        if not is_object(value):
            return None
        found = {name: reader(value.get(name)) for name, reader in readers.items()}
        known = {name: each for name, each in found.items() if each is not None}
        return kind(**({name: required[name] for name in required if name in readers} | known))

    return read


def _object(value: Any) -> dict[str, Any] | None:
    """An object of plain values, whatever they are called."""
    found: dict[str, Any] | None = plain_value(value) if is_object(value) else None
    return found


def _tuple(value: Any, read: Read) -> tuple[Any, ...] | None:
    if not isinstance(value, (list, tuple)):
        return None
    found = (read(each) for each in cast("list[Any]", value)[:MAX_ITEMS])
    return tuple(each for each in found if each is not None)


def _integer(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if abs(value) <= _MOST else None  # NaN is not


def _text(value: Any) -> str | None:
    return plain_text(value, MAX_TEXT) if isinstance(value, str) else None


def _bool(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


_PLAIN: Final[dict[Any, Read]] = {
    int: _integer,
    float: _number,
    str: _text,
    bool: _bool,
    Any: lambda _: None,
}
