"""What a stack is called: the line of the user that it comes from, and what was called there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from vramscope_analysis.moments.frame_kinds import FrameKind, kinds_of, place_of
from vramscope_analysis.snapshot import Frame, Snapshot


@dataclass(frozen=True)
class StackName:
    """The words for one stack.

    Args:
        line: the user's line: ``train.py:20``; empty where no frame is Python's.
        function: the function that this line is in.
        called: what it called in the end, in a library or in PyTorch; empty if nothing of note.
        file: path of the file as recorded.
    """

    line: str
    function: str
    called: str
    file: str

    @property
    def label(self) -> str:
        """``train.py:20 forward``, or ``train.py:30 gpt_step › cross_entropy``."""
        start = f"{self.line} {self.function}"
        return f"{start} › {self.called}" if self.called else start


NAMELESS = StackName("", "", "", "")


class StackNames:
    """Names, and folded frames, of the stacks of one snapshot.

    The user's line is the innermost frame outside of PyTorch, Python and what is installed; where
    there is none, the innermost of an installed library; where there is none either, the
    innermost frame of Python.

    Args:
        snapshot: whose stacks.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._stacks = snapshot.stacks
        self.frames = snapshot.frames
        self._names: dict[int, StackName] = {}

    @cached_property
    def kinds(self) -> list[FrameKind]:
        """The kind of every frame."""
        return kinds_of(self.frames)

    def is_python(self, stack: int) -> bool:
        """Whether some frame of it is Python's."""
        return any(self.kinds[frame] != FrameKind.NATIVE for frame in self._stacks[stack])

    def name(self, stack: int) -> StackName:
        """The name of one stack."""
        found = self._names.get(stack)
        if found is None:
            found = self._names[stack] = self._named(self._stacks[stack])
        return found

    def folded(self, stack: int, *, fold: bool = True) -> tuple[int, ...]:
        """Its Python frames from the caller down, on request without what only calls on."""
        least = FrameKind.WRAPPER if fold else FrameKind.NATIVE
        frames = [frame for frame in self._stacks[stack] if self.kinds[frame] < least]
        if not frames:
            frames = [f for f in self._stacks[stack] if self.kinds[f] != FrameKind.NATIVE]
        return tuple(frames[::-1])

    def callers(self, stack: int) -> tuple[int, ...]:
        """The user's frames and those of libraries, from the caller down; else all that are
        not folded."""
        frames = [f for f in self._stacks[stack] if self.kinds[f] <= FrameKind.LIBRARY]
        return tuple(frames[::-1]) or self.folded(stack)

    def frame(self, index: int) -> Frame:
        """One frame."""
        return self.frames[index]

    def _named(self, stack: tuple[int, ...]) -> StackName:
        inner: dict[FrameKind, int] = {}
        for index in stack:
            inner.setdefault(self.kinds[index], index)
        for kind in (FrameKind.USER, FrameKind.LIBRARY, FrameKind.TORCH, FrameKind.WRAPPER):
            if kind in inner:
                frame = self.frames[inner[kind]]
                called = self._called(kind, inner, stack.index(inner[kind]), stack)
                return StackName(place_of(frame), frame.name, called, frame.filename)
        return NAMELESS

    def _called(
        self, kind: FrameKind, inner: dict[FrameKind, int], at: int, stack: tuple[int, ...]
    ) -> str:
        """What the user's line called: a library's own line, else the innermost of PyTorch."""
        if kind == FrameKind.USER and FrameKind.LIBRARY in inner:
            library = inner[FrameKind.LIBRARY]
            if stack.index(library) < at:
                frame = self.frames[library]
                return f"{place_of(frame)} {frame.name}"
        for index in stack[:at]:
            if self.kinds[index] == FrameKind.TORCH:
                return self.frames[index].name
        return ""
