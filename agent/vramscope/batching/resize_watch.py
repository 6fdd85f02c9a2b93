"""A change of sizes until its first step is over: its receipt, and the way back.

Where memory runs out in that step, one rank goes back to the sizes before. Several ranks do not:
one that went back alone would take other batches than the rest, which would wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vramscope.batching.sizes import Sizes
from vramscope.batching.switch import Switch
from vramscope.guard import Attempt, summary
from vramscope.size_text import size_text
from vramscope_protocol.commands import Receipt

if TYPE_CHECKING:
    from vramscope.batching.resize import Resizing


class ResizeWatch:
    """Waits until the change is made and its first step is over. Implements ``Ongoing``.

    Args:
        resizing: what makes it.
        switch: the change.
        now: the sizes before.
        before: as the receipt tells them.
        words: sentences of the receipt.
    """

    def __init__(
        self,
        resizing: Resizing,
        switch: Switch,
        now: Sizes,
        before: dict[str, Any],
        words: list[str],
    ) -> None:
        self._resizing = resizing
        self._switch = switch
        self._now = now
        self._before = before
        self._words = words
        self._ooms = resizing.ooms()
        self._was_made = switch.is_made
        self._is_going_back = False
        self._answer: Receipt | None = None

    @property
    def progress(self) -> str:
        """What it waits for."""
        return "the first step with it" if self._switch.is_made else self._words[1]

    def poll(self, step: int) -> Receipt | None:
        """A step has ended."""
        del step
        if self._answer is not None:
            return self._answer
        if self._resizing.error is not None:
            return self._receipt("failed", f"It could not be made: {self._resizing.error}.")
        if self._ran_out() and self._was_made:
            return self._set_back()
        if self._was_made:
            return self._receipt("done", *self._words, self._peaks())
        if self._switch.is_made:
            self._was_made = True
            self._ooms = self._resizing.ooms()
        return None

    def poll_on_agent_thread(self) -> Receipt | None:
        """A loop that catches the error, and takes another batch, may never end a step again."""
        if self._answer is None and not self._is_going_back and self._was_made and self._ran_out():
            self._is_going_back = True
            self._resizing.before_next_fetch(self._go_back)
        return self._answer

    def cancel(self, reason: str) -> Receipt:
        """The change stays, for it is that of all ranks; only nobody looks at it any more."""
        made = "It was made." if self._switch.is_made else "It is still made at its batch."
        return self._receipt("failed", f"{reason[:1].upper()}{reason[1:]}.", made)

    def _ran_out(self) -> bool:
        return self._resizing.ooms() > self._ooms

    def _go_back(self) -> None:
        self._answer = self._set_back()

    def _set_back(self) -> Receipt:
        if self._now.ranks > 1:
            text = "It stays, for the other ranks have it too: set it back with another command."
            return self._out(text)
        with Attempt() as attempt:
            plan = self._resizing.plan()
            plan.check(self._now)
            self._resizing.begin(plan, self._now)
            return self._out(f"It was rolled back. {plan.effect()}", self._now)
        return self._out(f"It could not be rolled back: {summary(attempt.error or Exception())}.")

    def _out(self, text: str, sizes: Sizes | None = None) -> Receipt:
        receipt = self._receipt("failed", "Memory ran out in the first step with it.", text)
        receipt.result = {"ran_out": True}
        if sizes is not None:
            receipt.after = dict(sizes.told())
        return receipt

    def _receipt(self, state: str, *words: str) -> Receipt:
        after = {**self._switch.wanted.told(), "peak_bytes": self._resizing.peak_bytes()}
        return Receipt(
            "done" if state == "done" else "failed",
            before=self._before,
            after=after,
            message=" ".join(filter(None, words)),
        )

    def _peaks(self) -> str:
        before, after = self._before["peak_bytes"], self._resizing.peak_bytes()
        if before is None or after is None:
            return ""
        return f"The peak of a step was {size_text(before)}, and {size_text(after)} in the first."
