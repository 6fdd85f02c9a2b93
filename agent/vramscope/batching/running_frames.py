"""Objects of the functions that are running on this thread, found by where the functions stand."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Final

from vramscope.holders.frame_locals import is_function, locals_of

_MAX_FRAMES: Final = 200


def frames() -> list[FrameType]:
    """Those that called the calling function, the innermost first.

    Without that of the calling function itself: with the answer in a variable of its own it would
    be a cycle, in which all of them and their tensors would stay until a garbage collection.
    """
    frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    found: list[FrameType] = []
    while frame is not None and len(found) < _MAX_FRAMES:
        found.append(frame)
        frame = frame.f_back
    return found


def variables(module: str, functions: tuple[str, ...]) -> dict[str, Any] | None:
    """Variables of the innermost running function of a module that has one of these names.

    The caller drops the answer soon: it keeps the values alive.
    """
    path = getattr(sys.modules.get(module), "__file__", None)
    if path is None:
        return None
    for frame in frames():
        if frame.f_code.co_filename == path and frame.f_code.co_name in functions:
            return locals_of(frame)
    return None


def values() -> list[Any]:
    """Variables of every running function and of the modules that they stand in.

    The caller drops the answer soon: it keeps the values alive.
    """
    seen: set[int] = set()
    found: list[Any] = []
    for frame in frames():
        if is_function(frame):
            found += (locals_of(frame) or {}).values()
        if id(frame.f_globals) not in seen:
            seen.add(id(frame.f_globals))
            found += list(frame.f_globals.values())
    return found
