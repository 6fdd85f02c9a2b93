"""Commands that have begun and go on over further steps, until they give their receipt.

Whoever takes one out of the dictionary owns it (``dict.pop`` is atomic) and puts it back when it
still goes on. So no two threads are in the same one, and none waits for another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from vramscope.commands.call import Ongoing
from vramscope.guard import Attempt, summary
from vramscope.sampling.clock import Clock
from vramscope_protocol.commands import CommandState, Receipt
from vramscope_protocol.errors import VramscopeError

INTERRUPTED: Final = "interrupted by the job while it ran"
PROGRESS_INTERVAL_S: Final = 10.0
"""How often a command that goes on says how far it is."""

_MAX_DEADLINE_S: Final = 24 * 3600.0

Update = Callable[[str, CommandState, Receipt], None]


class _Going(Struct):
    ongoing: Ongoing
    deadline_s: float
    """Longest time from one boundary to the next."""
    deadline_ns: int
    told_ns: int
    step: int


class OngoingCommands:
    """Polls what goes on, ends what met no boundary for its deadline, and reports.

    Args:
        clock: for deadlines.
        update: takes each change of state; must not block.
    """

    def __init__(self, clock: Clock, update: Update) -> None:
        self._clock = clock
        self._update = update
        self._going: dict[str, _Going] = {}
        self._closed_because: str | None = None

    def __len__(self) -> int:
        return len(self._going)

    def add(self, identity: str, ongoing: Ongoing, deadline_s: float, step: int) -> None:
        """Take a command that has begun at ``step``; on the thread that began it."""
        now_ns = self._clock.monotonic_ns()
        limit_s = min(max(0.0, deadline_s), _MAX_DEADLINE_S)
        deadline_ns = now_ns + round(limit_s * 1e9)
        self._put(identity, _Going(ongoing, limit_s, deadline_ns, now_ns, step))

    def poll(self, step: int) -> bool:
        """Ask each how far it is; on the training thread. Whether one has ended."""
        ended = False
        for identity in list(self._going):
            going = self._going.pop(identity, None)
            if going is None:
                continue
            going.step = step
            receipt: Receipt | None = None
            is_through = False
            try:
                with Attempt() as attempt:
                    receipt = going.ongoing.poll(step)
                if attempt.error is not None:
                    receipt = self._cancelled(going, failure(attempt.error))
                is_through = True
            finally:
                if not is_through:  # Ctrl-C: it goes on to the job, after the receipt
                    receipt = self._cancelled(going, INTERRUPTED)
                ended |= self._settle(identity, going, receipt, at_boundary=True)
        return ended

    def poll_on_agent_thread(self) -> None:
        """The same for what finishes between boundaries; on the sampler thread."""
        for identity in list(self._going):
            going = self._going.pop(identity, None)
            if going is None:
                continue
            receipt: Receipt | None = None
            with Attempt() as attempt:
                receipt = going.ongoing.poll_on_agent_thread()
            if attempt.error is not None:
                receipt = self._cancelled(going, failure(attempt.error))
            self._settle(identity, going, receipt, at_boundary=False)

    def expire(self) -> None:
        """End what has met no boundary for as long as its deadline."""
        now_ns = self._clock.monotonic_ns()
        for identity, going in list(self._going.items()):
            if now_ns >= going.deadline_ns and self._going.pop(identity, None) is not None:
                reason = f"no optimizer step within {going.deadline_s:g} s"
                self._finish(identity, going, self._cancelled(going, reason))

    def close(self, reason: str) -> None:
        """End all, and whatever comes back from a poll that is running now."""
        self._closed_because = reason
        for identity in list(self._going):
            going = self._going.pop(identity, None)
            if going is not None:
                self._finish(identity, going, self._cancelled(going, reason))

    def _settle(
        self, identity: str, going: _Going, receipt: Receipt | None, *, at_boundary: bool
    ) -> bool:
        now_ns = self._clock.monotonic_ns()
        if receipt is not None and receipt.state == "running":  # a part of the answer
            receipt.step = going.step
            going.told_ns = now_ns
            self._update(identity, "running", receipt)
        elif receipt is not None:
            self._finish(identity, going, receipt)
            return True
        if at_boundary:
            going.deadline_ns = now_ns + round(going.deadline_s * 1e9)
        if now_ns - going.told_ns >= PROGRESS_INTERVAL_S * 1e9:
            going.told_ns = now_ns
            text = going.ongoing.progress
            self._update(identity, "running", Receipt("running", going.step, message=text))
        self._put(identity, going)
        return False

    def _put(self, identity: str, going: _Going) -> None:
        self._going[identity] = going
        # Looked at after it is in: whoever closes looks after it has said so.
        if self._closed_because is not None:
            self.close(self._closed_because)

    def _finish(self, identity: str, going: _Going, receipt: Receipt) -> None:
        if receipt.step is None:
            receipt.step = going.step
        self._update(identity, receipt.state, receipt)

    def _cancelled(self, going: _Going, reason: str) -> Receipt:
        receipt = Receipt("failed", message=reason)
        with Attempt() as attempt:
            receipt = going.ongoing.cancel(reason)
        if attempt.error is not None:
            text = f"{reason}; ending it failed: {failure(attempt.error)}"
            receipt = Receipt("failed", message=text)
        return receipt


def failure(error: Exception) -> str:
    """What went wrong, in one line for a receipt."""
    return error.message if isinstance(error, VramscopeError) else summary(error)
