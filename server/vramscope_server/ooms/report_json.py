"""The JSON of a report, as an agent sent it: what nobody could pass on is not in what is read."""

from __future__ import annotations

import json
from typing import Any, Final, cast

MAX_DEPTH: Final = 32
"""Lists and objects within each other; reports of agents have a few. What reads deeper ones would
have to count its own calls."""


def read_json(data: bytes) -> dict[str, Any]:
    """The object in the bytes of a report; empty if they are other JSON.

    Raises:
        ValueError: they are no JSON, or it is too deep.
    """
    try:
        decoded: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected a report in JSON: {error}") from None
    if type(decoded) is not dict:
        return {}
    sayable: dict[str, Any] = _sayable(decoded, MAX_DEPTH)
    return sayable


def _sayable(value: Any, depth: int) -> Any:
    """The value without halves of characters: names of files may hold them, answers may not."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="replace").decode()
    is_list, is_object = type(value) is list, type(value) is dict
    if not is_list and not is_object:
        return value
    if depth == 0:
        raise ValueError(f"expected a report of at most {MAX_DEPTH} levels of JSON")
    if is_list:
        return [_sayable(each, depth - 1) for each in cast("list[Any]", value)]
    entries = cast("dict[str, Any]", value).items()
    return {_sayable(name, depth): _sayable(each, depth - 1) for name, each in entries}
