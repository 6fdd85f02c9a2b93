"""The Python stack of every thread, as lines."""

from __future__ import annotations

import os
import threading
from types import FrameType
from typing import Any, Final

from vramscope.history.no_collection import current_frames
from vramscope.holders.code_owner import Owner, owner_of

MAX_THREADS: Final = 128
MAX_FRAMES: Final = 64

_STAND_IN: Final = threading._DummyThread  # pyright: ignore[reportPrivateUsage]  # no public name
_OWN_PREFIX: Final = "vramscope-"

Line = dict[str, Any]


def thread_stacks(raised_in: int | None) -> list[dict[str, Any]]:
    """Each thread with its frames, the innermost first; the one that ran out of memory first.

    A thread of autograd that runs no Python is not there.

    Args:
        raised_in: the thread that ran out of memory, by its number.
    """
    threads = {thread.ident: thread for thread in threading.enumerate()}
    frames = current_frames()
    try:
        order = sorted(frames, key=lambda ident: (ident != raised_in, ident not in threads, ident))
        return [
            _row(threads.get(ident), ident, frames[ident], is_raised=ident == raised_in)
            for ident in order[:MAX_THREADS]
        ]
    finally:
        # It holds this very frame: a cycle, which would keep the job's frames and their tensors.
        frames.clear()


def _row(
    thread: threading.Thread | None, ident: int, frame: FrameType, *, is_raised: bool
) -> dict[str, Any]:
    name = f"thread {ident}" if thread is None else thread.name
    # One that Python did not start has got a stand-in where somebody has asked for it in there.
    is_known = thread is not None and not isinstance(thread, _STAND_IN)
    return {
        "name": name[:200],
        "daemon": thread.daemon if thread is not None and is_known else None,
        "is_own": name.startswith(_OWN_PREFIX),
        "raised": is_raised,
        "frames": stack_lines(frame, without_ours=is_raised),
    }


def stack_lines(frame: FrameType | None, *, without_ours: bool = False) -> list[Line]:
    """Lines of a stack, the innermost first.

    Args:
        frame: the innermost.
        without_ours: leave out frames of vramscope: they only tell that this report is written.
    """
    lines: list[Line] = []
    while frame is not None and len(lines) < MAX_FRAMES:
        code = frame.f_code
        if not (without_ours and owner_of(code.co_filename) is Owner.OWN):
            # Of a frame that is just being entered the line is not known.
            number: int | None = frame.f_lineno
            lines.append({"file": code.co_filename, "line": number or 0, "function": code.co_name})
        frame = frame.f_back
    return lines


def traceback_lines(error: BaseException) -> list[Line]:
    """Lines that an exception came through, the innermost first."""
    lines: list[Line] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        number: int | None = trace.tb_lineno
        lines.append({"file": code.co_filename, "line": number or 0, "function": code.co_name})
        trace = trace.tb_next
    return lines[: -MAX_FRAMES - 1 : -1]


def part_of_step(lines: list[Line], *, in_backward: bool) -> str:
    """The part of a training step that a stack is in: "" if it is in none that can be told."""
    if in_backward:
        return "backward"
    for line in lines:
        file: str = line["file"].replace(os.sep, "/")
        if "/torch/optim/" in file:
            return "optimizer"
        if file.endswith("/torch/nn/modules/module.py"):
            return "forward"
        if file.endswith("/torch/autograd/graph.py") and "backward" in line["function"]:
            return "backward"
    return ""
