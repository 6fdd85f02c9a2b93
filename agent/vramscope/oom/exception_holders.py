"""Tensors that an exception keeps: of one that is being handled, or that Python showed last.

An exception has the frames that it came through, and they have their variables. It is the one thing
that is looked at before the search through all that the job can reach, because it takes next to
nothing, and on a busy machine that search may not come to its end in time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any, Final

from vramscope.holders.code_owner import Owner, owner_of
from vramscope.holders.frame_locals import is_function, locals_of
from vramscope.holders.holder import HolderFound, SourceLine

_MAX_CHAIN: Final = 8
_MAX_FRAMES: Final = 128
_MAX_MEMBERS: Final = 1000
_SEQUENCES: Final = (list, tuple)
_DICTIONARIES: Final = (dict,)
"""By their classes alone: a class derived from them may answer for something else."""
_HANDLED: Final = "the exception being handled"
_LAST: Final = ("last_exc", "last_value")

AddressOf = Callable[[Any], "int | None"]
"""Address of the storage of an object, if it is a tensor that is asked for."""


def held_by_exceptions(address_of: AddressOf) -> dict[int, HolderFound]:
    """Who of them holds what, by the addresses of storages. On the thread that ran out of memory.

    Args:
        address_of: tells the tensors that are asked for.
    """
    found: dict[int, HolderFound] = {}
    running = _running_frames()
    try:
        for root, error in _exceptions():
            for trace in _steps(error.__traceback__):
                frame = trace.tb_frame
                # What still runs holds its variables by itself.
                if id(frame) not in running:
                    _look_into(frame, trace.tb_lineno, root, address_of, found)
    finally:
        running.clear()
    return found


def _exceptions() -> Iterator[tuple[str, BaseException]]:
    roots: list[tuple[str, Any]] = [(_HANDLED, sys.exc_info()[1])]
    roots += [(f"sys.{name}", getattr(sys, name, None)) for name in _LAST]
    seen: set[int] = set()
    for root, first in roots:
        pending = [first]
        while pending and len(seen) < _MAX_CHAIN:
            error = pending.pop(0)
            if error is None or id(error) in seen or BaseException not in type(error).__mro__:
                continue
            seen.add(id(error))
            yield root, error
            pending += [error.__context__, error.__cause__]


def _steps(trace: TracebackType | None) -> Iterator[TracebackType]:
    for _ in range(_MAX_FRAMES):
        if trace is None:
            return
        yield trace
        trace = trace.tb_next


def _running_frames() -> set[int]:
    """Ids of the frames of this thread."""
    frames: set[int] = set()
    frame: FrameType | None = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        frames.add(id(frame))
        frame = frame.f_back
    return frames


def _look_into(
    frame: FrameType, line: int, root: str, address_of: AddressOf, found: dict[int, HolderFound]
) -> None:
    code = frame.f_code
    # What a module has is reached by name.
    if owner_of(code.co_filename) is Owner.OWN or not is_function(frame):
        return
    where = SourceLine(code.co_filename, line, code.co_name)
    for name, value in (locals_of(frame) or {}).items():
        for words, member in _members(value):
            address = address_of(member)
            if address is not None and address not in found:
                chain = [root, f"frame {code.co_name}", name, *words]
                found[address] = HolderFound("exception", chain, where, 1)


def _members(value: Any) -> Iterator[tuple[list[str], Any]]:
    """A value, and what lies in it if it is a list, a tuple or a dictionary."""
    yield [], value
    if type(value) in _SEQUENCES:
        for place, member in enumerate(value[:_MAX_MEMBERS]):
            yield [f"[{place}]"], member
    elif type(value) in _DICTIONARIES:
        for key, member in list(value.items())[:_MAX_MEMBERS]:
            words = f"[{key!r}]" if type(key) in (str, int) else "[...]"
            yield [words[:120]], member
