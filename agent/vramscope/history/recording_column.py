"""The column of a step row that says who records a history."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

from vramscope.history.window import Window

NAME: Final = "step.recording"
NOBODY: Final = 0
OURS: Final = 1
THE_JOBS: Final = 2
ASK_INTERVAL_NS: Final = 50_000_000
"""PyTorch is asked so often at most: a step that is shorter repeats the answer."""


class OwnRecording(Protocol):
    """What is asked of our own recording."""

    @property
    def window(self) -> Window | None:
        """The recording that is going on."""
        ...


class AnyRecording(Protocol):
    """What is asked of PyTorch."""

    def is_recording(self) -> bool:
        """Whether a history is recorded, whoever has asked for it."""
        ...


class RecordingColumn:
    """Asks at the ends of steps. Training thread.

    Args:
        own: our own recording.
        pytorch: knows of any.
        clock_ns: says when it is to be asked again.
    """

    names: tuple[str, ...] = (NAME,)

    def __init__(
        self,
        own: OwnRecording,
        pytorch: AnyRecording,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._own = own
        self._pytorch = pytorch
        self._clock_ns = clock_ns
        self._is_anybodys = False
        self._ask_ns = 0

    def take(self) -> list[int]:
        """0 nobody records, 1 vramscope does, 2 the job does itself."""
        if self._own.window is not None:
            self._ask_ns = 0
            return [OURS]
        now_ns = self._clock_ns()
        if now_ns >= self._ask_ns:
            self._ask_ns = now_ns + ASK_INTERVAL_NS
            self._is_anybodys = self._pytorch.is_recording()
        return [THE_JOBS if self._is_anybodys else NOBODY]
