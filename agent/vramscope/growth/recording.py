"""The recording that a look needs: stacks of live blocks, by PyTorch, for as long as it is wanted.

One that is going on already, of the job's own or of a command, is used as it is; and ours ends when
a person asks for another one meanwhile.
"""

from __future__ import annotations

from typing import Final

from vramscope.history.history import History
from vramscope.history.window import Window
from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.parameters import HistoryParams

STACK_NS: Final = 500
"""What an allocation takes more while its stack is recorded: see docs/overhead.md."""
_HOST_MIB: Final = 256


class StackRecording:
    """Has stacks recorded from the end of one step to that of another.

    Args:
        history: owns the recording of this process.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._window: Window | None = None
        self._since_allocations = 0
        self.note = ""
        """What is to be said of it; empty is nothing."""

    def start(self, issued_by: str, allocations: int = 0) -> None:
        """Record, unless it is recorded already. Training thread, at a boundary.

        Args:
            issued_by: id of the command.
            allocations: how many there have been.
        """
        self._since_allocations = allocations
        try:
            self._window = self._history.start(
                HistoryParams(mode="state", max_mib=_HOST_MIB),
                "command",
                issued_by,
                gives_way=True,
            )
        except VramscopeError as error:
            self.note = f"the stacks are those of another recording: {error.message}"

    @property
    def is_on(self) -> bool:
        """Whether ours goes on."""
        return self._window is not None and not self._window.ended

    @property
    def why_ended(self) -> str:
        """Why our recording was ended by others; empty if it was not, or if there is none."""
        return "" if self._window is None else self._window.ended

    def stop(self) -> None:
        """Record no more, if it was ours. Any thread."""
        window, self._window = self._window, None
        if window is not None:
            self._history.abort(window, "the looks are over")

    def cost_ns(self, allocations: int) -> int:
        """What ours has taken of the job's time so far, by what one stack takes.

        Args:
            allocations: how many there have been.
        """
        return STACK_NS * max(0, allocations - self._since_allocations) if self.is_on else 0
