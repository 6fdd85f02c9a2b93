"""Objects of the functions that are running on this thread, found by where the functions stand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from vramscope.holders.frame_locals import is_function, locals_of

_MAX_FRAMES: Final = 200


def frames() -> Iterator[FrameType]:
    """Those that called the calling function, the innermost first."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


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


def values() -> Iterator[Any]:
    """Variables of every running function and of the modules that they stand in, one by one."""
    seen: set[int] = set()
    for frame in frames():
        if is_function(frame):
            yield from (locals_of(frame) or {}).values()
        if id(frame.f_globals) not in seen:
            seen.add(id(frame.f_globals))
            yield from list(frame.f_globals.values())
