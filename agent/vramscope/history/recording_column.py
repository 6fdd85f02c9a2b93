"""The column of a step row that says who records a history."""

from __future__ import annotations

from typing import Final, Protocol

from vramscope.history.window import Window

NAME: Final = "step.recording"
NOBODY: Final = 0
OURS: Final = 1
THE_JOBS: Final = 2


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
    """Asks at the end of each step. Training thread.

    Args:
        own: our own recording.
        pytorch: knows of any.
    """

    names: tuple[str, ...] = (NAME,)

    def __init__(self, own: OwnRecording, pytorch: AnyRecording) -> None:
        self._own = own
        self._pytorch = pytorch

    def take(self) -> list[int]:
        """0 nobody records, 1 vramscope does, 2 the job does itself."""
        if self._own.window is not None:
            return [OURS]
        return [THE_JOBS if self._pytorch.is_recording() else NOBODY]
