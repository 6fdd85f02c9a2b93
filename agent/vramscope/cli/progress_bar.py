"""A bar on stderr for what takes long: only on a terminal, and gone when the work is done."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, TextIO

DELAY_S: Final = 0.5
"""What is done sooner shows no bar."""
INTERVAL_S: Final = 0.1
"""Between two drawings."""
_WIDEST: Final = 40
_NARROWEST: Final = 10


class ProgressBar:
    """Draws how far the work is; a context manager that wipes its line at the end.

    Args:
        stream: where to draw; stderr by default. Nothing is drawn where it is no terminal.
        clock: seconds that never go back.
    """

    def __init__(
        self, stream: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock
        self._columns = _columns_of(self._stream)
        self._drawn = 0
        self._next_s = clock() + DELAY_S

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._wipe()

    def stage(self, name: str) -> Callable[[int, int], None]:
        """What a piece of work is to call with (done, total), in any unit, as often as it likes."""
        started_s = self._clock()

        def advance(done: int, total: int) -> None:
            if not self._columns:
                return
            now_s = self._clock()
            if now_s >= self._next_s:
                self._next_s = now_s + INTERVAL_S
                self._draw(_line(name, done, total, now_s - started_s, self._columns))

        return advance

    def _draw(self, line: str) -> None:
        self._write("\r" + line.ljust(self._drawn))
        self._drawn = len(line)

    def _wipe(self) -> None:
        if self._drawn:
            self._write("\r" + " " * self._drawn + "\r")
            self._drawn = 0

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._columns = 0  # the terminal went away: the work goes on without a bar


def _columns_of(stream: TextIO | None) -> int:
    """Width of the terminal behind a stream, 0 if there is none."""
    try:
        if stream is None or not stream.isatty():
            return 0
        # A terminal that does not know its width says 0.
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 0


def _line(name: str, done: int, total: int, elapsed_s: float, columns: int) -> str:
    """One line: "replaying [####......]  42 %  0:08 left", never wider than the terminal."""
    part = min(max(done / total, 0.0), 1.0) if total > 0 else 0.0
    left = f"  {_clock_text(elapsed_s * (1 - part) / part)} left" if part > 0 else ""
    numbers = f" {part:4.0%}{left}".replace("%", " %")
    # One column stays free: a terminal wraps when its last one is written.
    room = min(columns - 1 - len(name) - len(numbers) - 3, _WIDEST)
    if room < _NARROWEST:
        return f"{name}{numbers}"[: columns - 1]
    filled = int(part * room)
    return f"{name} [{'#' * filled}{'.' * (room - filled)}]{numbers}"


def _clock_text(seconds: float) -> str:
    whole = int(seconds + 0.5)
    return f"{whole // 60}:{whole % 60:02d}"
