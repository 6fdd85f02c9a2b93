"""Python stacks as PyTorch's history keeps them: taken cheaply, put into words when asked for.

A stack is kept as code objects and instruction offsets (``CapturedTraceback``): no names and no
line numbers are looked up, and no frame of the job is kept alive.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from types import CodeType
from typing import Any, Final, TypeAlias

import vramscope
import vramscope_analysis
from vramscope.launch import Program

Stack: TypeAlias = tuple[tuple[CodeType, int], ...]
"""``(code, offset of the instruction)`` of each frame, innermost first."""

MAX_KNOWN: Final = 1 << 16
"""Stacks remembered, so that a stack that comes again takes no memory."""

_OWN_FOLDERS: Final = tuple(
    os.path.dirname(os.path.abspath(str(package.__file__))) + os.sep
    for package in (vramscope, vramscope_analysis)
)
_DEMO_FOLDER: Final = os.path.join(_OWN_FOLDERS[0], "demo", "")
# Below this frame lies the command that runs the job, not the job.
_LAUNCHER: Final = Program.run.__code__


def is_own_file(filename: str) -> bool:
    """Whether a source file is one of vramscope's, and not the demo's job."""
    return filename.startswith(_OWN_FOLDERS) and not filename.startswith(_DEMO_FOLDER)


class Stacks:
    """Takes the stack of the calling thread, and keeps equal ones once."""

    def __init__(self) -> None:
        # By the ids of the code objects: to hash a code object itself is to hash all of its
        # instructions. The stacks keep the objects alive, so no id is used twice.
        self._known: dict[tuple[int, ...], Stack] = {}
        self._is_own: dict[str, bool] = {}

    def gather(self) -> Stack:
        """The stack from here to the job's outermost frame, without our own innermost frames."""
        frame: Any = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # documented
        is_own = self._is_own
        while frame is not None:
            filename = frame.f_code.co_filename
            if not (is_own[filename] if filename in is_own else self._learn(filename)):
                break
            frame = frame.f_back
        innermost = frame
        key: list[int] = []
        while frame is not None:
            code = frame.f_code
            if code is _LAUNCHER:
                break
            key.append(id(code))
            key.append(frame.f_lasti)
            frame = frame.f_back
        ids = tuple(key)
        stack = self._known.get(ids)
        return stack if stack is not None else self._remember(ids, innermost)

    def _learn(self, filename: str) -> bool:
        is_own = self._is_own[filename] = is_own_file(filename)
        return is_own

    def _remember(self, ids: tuple[int, ...], frame: Any) -> Stack:
        codes: list[CodeType] = []
        for _ in range(len(ids) // 2):
            codes.append(frame.f_code)
            frame = frame.f_back
        stack = tuple(zip(codes, ids[1::2], strict=True))
        if len(self._known) >= MAX_KNOWN:
            # A job that compiles code without end. Entries keep their stacks, only later equal
            # ones are not recognised as such.
            self._known.clear()
        self._known[ids] = stack
        return stack


class FrameLists:
    """Puts stacks into the words of a snapshot, each stack and each frame once."""

    def __init__(self) -> None:
        self._lists: dict[int, list[dict[str, Any]]] = {}
        self._frames: dict[tuple[int, int], dict[str, Any]] = {}

    def frames(self, stack: Stack) -> list[dict[str, Any]]:
        """``name``, ``filename`` and ``line`` of each frame, innermost first.

        The stack must stay alive as long as this object: it is told by its identity.
        """
        found = self._lists.get(id(stack))
        if found is None:
            found = self._lists[id(stack)] = [
                self._frame(code, offset)
                for code, offset in stack
                if not is_own_file(code.co_filename)
            ]
        return found

    def _frame(self, code: CodeType, offset: int) -> dict[str, Any]:
        key = (id(code), offset)
        frame = self._frames.get(key)
        if frame is None:
            frame = self._frames[key] = {
                "name": code.co_name,
                "filename": code.co_filename,
                "line": _line(code.co_lines(), offset) or code.co_firstlineno,
            }
        return frame


def _line(lines: Iterable[tuple[int, int, int | None]], offset: int) -> int | None:
    for start, end, line in lines:
        if start <= offset < end:
            return line
    return None
