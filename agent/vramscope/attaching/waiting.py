"""Waiting for a process that has been asked: armed, picked up, answered, or given up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from vramscope.attaching.outcome import Answer, AttachError
from vramscope.attaching.request import Request
from vramscope.injection import InjectionError, Interpreter, dump_main_thread, native_wait
from vramscope.processes.process import Process, is_same_life

DEFAULT_WAIT_S: Final = 30.0
PAGE_WAIT_S: Final = 12.0
"""For a server to take the stream, which may have to be started first; a bit longer than the
process itself waits."""
_ARM_AGAIN_S: Final = 2
_POLL_S: Final = 0.01


class Wait:
    """Waits for one answer.

    Args:
        process: who is to answer.
        interpreter: its Python, to be asked what it is doing when it does not.
        request: where the answer will be.
        wait_s: how long to wait until the process has taken the request.
        say: told, in a line, what the wait is for when it takes longer than a moment.
        arm_again: called every two seconds until the process has taken the request: where two
            are armed at a time, one may be lost.
    """

    def __init__(
        self,
        process: Process,
        interpreter: Interpreter,
        request: Request,
        *,
        wait_s: float,
        say: Callable[[str], None],
        arm_again: Callable[[], object] | None = None,
    ) -> None:
        self._process = process
        self._interpreter = interpreter
        self._request = request
        self._wait_s = wait_s
        self._say = say
        self._arm_again = arm_again

    def answer(self) -> Answer:
        """The answer of the process.

        Raises:
            AttachError: there is none in time, or the process has ended.
        """
        if not self._until(self._request.is_picked_up, self._wait_s, self._still_armed):
            self._give_up()
        answer = self._first_answer()
        if not answer.final:
            self._until(lambda: self._is_final(), PAGE_WAIT_S)
            answer = self._request.answer() or answer
        return answer

    def _first_answer(self) -> Answer:
        # An import over a network disk may take its time; a process that was stopped, for ever.
        limit_s = max(self._wait_s, DEFAULT_WAIT_S)
        if not self._until(lambda: self._request.answer() is not None, limit_s):
            raise AttachError(
                f"process {self._process.pid} has taken the request and does not answer "
                f"within {limit_s:g} s; it may still be attached later",
                "unanswered",
            )
        answer = self._request.answer()
        assert answer is not None  # it is replaced whole, and never taken away
        return answer

    def _is_final(self) -> bool:
        answer = self._request.answer()
        return answer is not None and answer.final

    def _until(
        self,
        is_done: Callable[[], bool],
        limit_s: float,
        meanwhile: Callable[[int], object] | None = None,
    ) -> bool:
        """Whether it is done in time; ``meanwhile`` is called with each whole second that passes.

        Raises:
            AttachError: the process has ended.
        """
        started_s = time.monotonic()
        seconds = 0
        while not is_done():
            if not is_same_life(self._process):
                if is_done():  # with its last breath
                    return True
                raise AttachError(
                    f"process {self._process.pid} has ended before it answered", "gone"
                )
            elapsed_s = time.monotonic() - started_s
            if elapsed_s > limit_s:
                return False
            if meanwhile is not None and elapsed_s > seconds + 1:
                seconds += 1
                meanwhile(seconds)
            time.sleep(_POLL_S)
        return True

    def _still_armed(self, seconds: int) -> None:
        if seconds == 1:
            self._say(
                f"armed, waiting: the main thread of process {self._process.pid} is "
                f"{self._native_wait()}"
            )
        if self._arm_again is not None and seconds % _ARM_AGAIN_S == 0:
            self._arm_again()

    def _give_up(self) -> None:
        """Take the request back; return only if the process was quicker.

        Raises:
            AttachError: it is taken back; says what the process is doing instead.
        """
        if not self._request.cancel():
            return
        raise AttachError(
            f"given up after {self._wait_s:g} s: the main thread of process "
            f"{self._process.pid} has not come back to Python; it is {self._native_wait()}. "
            "Nothing was changed; try again with a longer --wait",
            "blocked",
            self._stack(),
        )

    def _native_wait(self) -> str:
        return native_wait(self._process.pid) or "in an unknown state"

    def _stack(self) -> str:
        """The Python stack of the main thread, where that can be had."""
        try:
            stack = dump_main_thread(self._interpreter)
        except InjectionError:
            return ""
        return stack or ""
