"""The variables of functions that are running, read without changing anything.

``frame.f_locals`` of a running function makes a dictionary that stays with the frame, up to Python
3.12: its old values would be kept alive for as long as the function runs. It is also the very
dictionary that a ``locals()`` of the job has returned. So it is asked for only where none is there
yet, and emptied again. From 3.13 on it is a view.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from vramscope.history.no_collection import current_frames
from vramscope.holders.code_owner import Owner, owner_of

_OPTIMIZED: Final = 0x1
"""Flag of code whose variables are not in a dictionary: functions."""

_WORD: Final = ctypes.sizeof(ctypes.c_void_p)
_OURS: Final = 3
"""References to that dictionary: the frame's, our variable, that of the call which counts. With
more, the job has it too."""
_IS_PLAIN: Final = sys.implementation.name == "cpython" and not hasattr(sys, "gettotalrefcount")


def live_frames() -> list[FrameType]:
    """Frames of all threads that are running, the outermost of each thread first, without ours."""
    tops = current_frames()
    # This very frame must not be in a variable of its own, nor be left in that dictionary: a
    # cycle, in which all frames of the job below it would stay until a garbage collection.
    tops[threading.get_ident()] = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    found: list[FrameType] = []
    while tops:
        frames = _outwards(tops.popitem()[1])
        found += reversed(frames)
    return found


def _outwards(frame: FrameType | None) -> list[FrameType]:
    frames: list[FrameType] = []
    while frame is not None:
        if owner_of(frame.f_code.co_filename) is not Owner.OWN:
            frames.append(frame)
        frame = frame.f_back
    return frames


def is_function(frame: FrameType) -> bool:
    """Whether its variables are those of a function, not of a module or class body."""
    return bool(frame.f_code.co_flags & _OPTIMIZED)


def locals_of(frame: FrameType) -> dict[str, Any] | None:
    """Variables of a function that runs or waits, by name; ``None`` if they cannot be had safely.

    The caller must drop the answer soon: it keeps the values alive.
    """
    if sys.version_info >= (3, 13):
        return dict(frame.f_locals)
    if sys.version_info >= (3, 12):
        return dict(_variables(frame))
    if not _may_ask(frame):
        return None
    snapshot = frame.f_locals
    found = dict(snapshot)
    # Not if the job, on another thread, has got the same one meanwhile.
    if sys.getrefcount(snapshot) <= _OURS:
        snapshot.clear()
    return found


def _variables(frame: FrameType) -> Iterator[tuple[str, Any]]:
    get = ctypes.pythonapi.PyFrame_GetVar
    get.restype = ctypes.py_object
    get.argtypes = [ctypes.py_object, ctypes.py_object]
    code = frame.f_code
    for name in dict.fromkeys((*code.co_varnames, *code.co_cellvars, *code.co_freevars)):
        try:
            yield name, get(frame, name)
        except NameError:  # not set yet, or deleted
            continue


def _may_ask(frame: FrameType) -> bool:
    """Whether the dictionary of a frame is nobody's but the frame's. Python 3.10 and 3.11."""
    if not _IS_PLAIN or frame.f_trace is not None:
        # A tracer of another thread may be told of it at this moment. What it was told of is put
        # back afterwards, from a dictionary that it would find emptied.
        return False
    address = _snapshot_address(frame)
    if address is None:
        return False
    if address == 0:
        return True
    snapshot = ctypes.cast(address, ctypes.py_object).value
    return type(snapshot) is dict and sys.getrefcount(snapshot) <= _OURS


def _snapshot_address(frame: FrameType) -> int | None:
    """Address of the dictionary that a frame has, 0 for none, ``None`` if this is not known.

    The structures are those of ``cpython/frameobject.h`` and ``internal/pycore_frame.h``. What
    is at the places of other fields is compared first.
    """
    code, module = id(frame.f_code), id(frame.f_globals)
    if sys.version_info >= (3, 11):
        start = _words(id(frame), 4)[3]
        if not start:
            return None
        words = _words(start, 6)  # function, globals, builtins, locals, code, frame object
        # One that is over is no longer referred to.
        is_known = (words[1], words[4]) == (module, code) and words[5] in (0, id(frame))
        return words[3] if is_known else None
    words = _words(id(frame), 8)  # three of the head, back, code, builtins, globals, locals
    return words[7] if (words[4], words[6]) == (code, module) else None


def _words(address: int, count: int) -> list[int]:
    return list((ctypes.c_size_t * count).from_address(address))
