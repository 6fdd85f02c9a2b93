"""The recording that a look needs: stacks of live blocks, by PyTorch, for as long as it is wanted.

One that is going on already, of the job's own or of a command, is used as it is.
"""

from __future__ import annotations

from vramscope.history.history import History
from vramscope.history.window import Window
from vramscope_protocol.commands import HistoryParams
from vramscope_protocol.errors import VramscopeError

_HOST_MIB = 256


class StackRecording:
    """Has stacks recorded from the end of one step to that of another.

    Args:
        history: owns the recording of this process.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._window: Window | None = None
        self.note = ""
        """What is to be said of it; empty is nothing."""

    def start(self, issued_by: str) -> None:
        """Record, unless it is recorded already. Training thread, at a boundary."""
        try:
            self._window = self._history.start(
                HistoryParams(mode="state", max_mib=_HOST_MIB), "command", issued_by
            )
        except VramscopeError as error:
            self.note = f"the stacks are those of another recording: {error.message}"

    @property
    def why_ended(self) -> str:
        """Why our recording is over; empty while it goes on, or if there is none of ours."""
        return "" if self._window is None else self._window.ended

    def stop(self) -> None:
        """Record no more, if it was ours. Any thread."""
        if self._window is not None:
            self._history.abort(self._window, "the looks are over")
