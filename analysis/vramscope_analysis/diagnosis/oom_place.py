"""The line that asked for memory when there was none, and whose code it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vramscope_analysis.diagnosis.words import place_text
from vramscope_analysis.evidence.entry_values import amount_in, entries_in, text_in
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.moments.frame_kinds import FrameKind, kind_of
from vramscope_analysis.snapshot import Frame

_SEARCHES: Final = {
    "accelerate/utils/memory.py",
    "tuner/batch_size_scaling.py",
    "ultralytics/utils/autobatch.py",
}
"""Files whose frames mean that somebody tries batch sizes until one fits."""
_TOP: Final = "<module>"
"""Function of a line that is in none."""
_PINNING: Final = ("pin_memory",)


@dataclass(frozen=True)
class Place:
    """Where in the program memory was asked for.

    Args:
        file, line, function: the innermost line of the user, else of a library.
        called: what it called in the end, in a library or in PyTorch; empty if nothing of note.
        is_backward: it is the line that began the backward pass, which has no Python lines.
    """

    file: str
    line: int
    function: str
    called: str = ""
    is_backward: bool = False

    @property
    def text(self) -> str:
        """``train.py:30 gpt_step › cross_entropy``."""
        name = f"{self.short} {self.function}".strip() if self.function != _TOP else self.short
        return f"{name} › {self.called}" if self.called else name

    @property
    def short(self) -> str:
        """``train.py:30``."""
        return place_text(self.file, self.line)


def place_of_oom(report: OomReport) -> Place | None:
    """The line that asked; None if nobody knows.

    PyTorch's backward pass runs on a thread without Python lines: then it is the line that waits
    for it on another thread.
    """
    asking = _asking(report)
    own = _place(asking) if asking is not None else None
    if own is not None:
        return own
    for thread in report.threads:
        frames = _frames(thread)
        if any(_is_backward(frame) for frame in frames):
            place = _place(thread)
            if place is not None:
                return Place(place.file, place.line, place.function, "backward", True)
    return None


def is_search_for_batch_size(report: OomReport) -> bool:
    """Whether the line lies within a search for the largest batch, which runs out on purpose."""
    files = [_slashed(text_in(frame, "file")) for frame in _asking_frames(report)]
    return any(file.endswith(tuple(_SEARCHES)) for file in files)


def is_pinning(report: OomReport) -> bool:
    """Whether pinned memory of the host was asked for."""
    return any(text_in(frame, "function") in _PINNING for frame in _asking_frames(report)[:4])


def optimizer_in(report: OomReport) -> str:
    """File of PyTorch's optimizer whose step asked, such as ``adamw``; empty if none did."""
    for frame in _asking_frames(report):
        folder, _, name = _slashed(text_in(frame, "file")).rpartition("/")
        if folder.endswith("torch/optim") and name not in ("optimizer.py", "lr_scheduler.py"):
            return name.removesuffix(".py")
    return ""


def is_making_state(report: OomReport) -> bool:
    """Whether an optimizer was making its state for a parameter (``_init_group``)."""
    return any(
        text_in(frame, "function") in ("_init_group", "init_state")
        and "torch/optim/" in _slashed(text_in(frame, "file"))
        for frame in _asking_frames(report)
    )


def place_in(frames: Iterable[Mapping[str, Any]]) -> Place | None:
    """The line of the user, or of a library, among frames, the innermost first."""
    return _place({"frames": list(frames)})


def _asking(report: OomReport) -> Mapping[str, Any] | None:
    for thread in report.threads:
        if thread.get("raised") is True:
            return thread
    named = [thread for thread in report.threads if thread.get("name") == report.thread]
    return named[0] if named and report.thread else None


def _asking_frames(report: OomReport) -> Sequence[Mapping[str, Any]]:
    asking = _asking(report)
    return [] if asking is None else _frames(asking)


def _frames(thread: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [frame for frame in entries_in(thread, "frames") if text_in(frame, "file")]


def _place(thread: Mapping[str, Any]) -> Place | None:
    called = ""
    library: Place | None = None
    for told in _frames(thread):
        frame = Frame(text_in(told, "file"), amount_in(told, "line"), text_in(told, "function"))
        kind = kind_of(frame)
        if kind == FrameKind.USER:
            if library is not None:
                called = f"{library.short} {library.function}"
            return Place(frame.filename, frame.line, frame.name, called)
        if kind == FrameKind.LIBRARY and library is None:
            library = Place(frame.filename, frame.line, frame.name, called)
        if kind == FrameKind.TORCH:
            called = called or frame.name
    return library


def _is_backward(frame: Mapping[str, Any]) -> bool:
    return text_in(frame, "function") in ("backward", "_engine_run_backward") and (
        "torch/" in _slashed(text_in(frame, "file"))
    )


def _slashed(path: str) -> str:
    return path.replace("\\", "/")
