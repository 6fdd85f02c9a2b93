"""Lets training stand still at the end of a step, for a time that is bounded.

The training thread waits inside the hook. The agent's own threads go on: samples are taken,
``resume`` comes through, and so does Ctrl-C.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from vramscope.commands.call import Call, Handler
from vramscope.commands.ongoing_commands import PROGRESS_INTERVAL_S
from vramscope_protocol.commands import Receipt

_OVER: Final = "the time was over"


class Pause:
    """The standstill of the training thread, and what ends it.

    Args:
        on_progress: told now and then, with a text, that a pause still lasts.
    """

    def __init__(self, on_progress: Callable[[Call, str], None]) -> None:
        self._on_progress = on_progress
        self._ended: threading.Event | None = None
        self._why = ""
        self._closed_because: str | None = None

    def handlers(self) -> Mapping[str, Handler]:
        """What runs the commands."""
        return {"pause": self._pause, "resume": self._resume}

    def end(self, why: str) -> bool:
        """Let training go on; whether it stood still. Any thread."""
        ended = self._ended
        if ended is None:
            return False
        self._why = why
        ended.set()
        return True

    def close(self, reason: str) -> None:
        """End the pause, and every further one at once."""
        self._closed_because = reason
        self.end(reason)

    def _pause(self, call: Call) -> Receipt:
        begun_s = time.monotonic()
        self._why = _OVER
        ended = self._ended = threading.Event()
        # Looked at after the event is there: whoever closes looks after it has said so.
        if self._closed_because is not None:
            self.end(self._closed_because)
        try:
            self._wait(call, ended, begun_s + call.params.max_s)
        finally:
            self._ended = None
        stood_s = time.monotonic() - begun_s
        stood = f"Training stood still for {stood_s:.1f} s after step {call.step}"
        return Receipt("done", message=f"{stood}, until {self._why}.")

    def _wait(self, call: Call, ended: threading.Event, until_s: float) -> None:
        while True:
            left_s = until_s - time.monotonic()
            if left_s <= 0 or ended.wait(min(left_s, PROGRESS_INTERVAL_S)):
                return
            left_s = max(0.0, until_s - time.monotonic())
            self._on_progress(call, f"paused, for {left_s:.0f} s more")

    def _resume(self, call: Call) -> Receipt:
        del call
        if self.end("it was resumed"):
            return Receipt("done", message="Training goes on.")
        return Receipt("done", message="Training did not stand still.")
