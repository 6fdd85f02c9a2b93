"""A change of sizes until its first step is over: its receipt, and the way back.

Where memory runs out in that step, the job goes back to the sizes before. Several ranks do so only
together: one that went back alone would take other batches than the rest, which would wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vramscope.batching.first_step import FirstStep
from vramscope.batching.redraw import drawn
from vramscope.batching.sizes import NewSizes, Sizes
from vramscope.batching.switch import Switch
from vramscope.commands.ongoing_commands import failure
from vramscope.guard import Attempt
from vramscope.size_text import size_text
from vramscope_protocol.commands import Receipt

if TYPE_CHECKING:
    from vramscope.batching.plan import Plan
    from vramscope.batching.resize import Resizing

_RAN_OUT: Final = "Memory ran out in the first step with it"
_STAYS: Final = "Set it back with another command if it does not fit."


class ResizeWatch:
    """Waits until the change is made and its first step is over. Implements ``Ongoing``.

    Args:
        resizing: what makes it.
        switch: the change.
        now: the sizes before.
        before: as the receipt tells them.
        words: sentences of the receipt.
        together: where several ranks meet until that step is over; ``None`` of one rank.
        step: steps that were over when it began.
    """

    def __init__(
        self,
        resizing: Resizing,
        switch: Switch,
        now: Sizes,
        before: dict[str, Any],
        words: list[str],
        together: FirstStep | None,
        step: int,
    ) -> None:
        self._resizing = resizing
        self._switch = switch
        self._now = now
        self._before = before
        self._words = words
        self._together = together
        self._ooms = resizing.ooms()
        self._was_made = False
        self._is_going_back = False
        self._answer: Receipt | None = None
        if switch.is_made:
            self._begin_first_step(step)

    @property
    def progress(self) -> str:
        """What it waits for."""
        return "the first step with it" if self._switch.is_made else self._words[1]

    def poll(self, step: int) -> Receipt | None:
        """A step has ended."""
        if self._answer is not None:
            return self._answer
        if self._resizing.error is not None:
            self._leave()
            return self._receipt("failed", f"It could not be made: {self._resizing.error}.")
        if self._was_made:
            return self._judged(step)
        if self._switch.is_made:
            self._begin_first_step(step)
        return None

    def poll_on_agent_thread(self) -> Receipt | None:
        """A loop that catches the error, and takes another batch, may never end a step again."""
        is_alone = self._together is None and not self._is_going_back
        if self._answer is None and is_alone and self._was_made and self._ran_out():
            self._is_going_back = True
            self._resizing.before_next_fetch(lambda _: self._go_back())
        return self._answer

    def cancel(self, reason: str) -> Receipt:
        """The change stays, for it is that of all ranks; only nobody looks at it any more."""
        self._leave()
        ended = f"{reason[:1].upper()}{reason[1:]}."
        if self._was_made and self._ran_out():
            return self._out((), f"It was not rolled back: {reason}.")
        made = "It was made." if self._switch.is_made else "It is still made at its batch."
        return self._receipt("failed", ended, made)

    def _judged(self, step: int) -> Receipt:
        """Its first step is over."""
        together, answer = self._together, None
        if together is not None:
            answer = self._met(together, f"the end of step {step}")
        elif self._ran_out():
            answer = self._set_back(())
        return answer or self._receipt("done", *self._words, self._peaks())

    def _begin_first_step(self, step: int) -> None:
        self._was_made = True
        self._ooms = self._resizing.ooms()
        sizes = NewSizes(step, self._now.told(), self._switch.wanted.told())
        self._resizing.first_step_begins(sizes)
        if self._together is not None and self._switch.index_sampler is not None:
            self._resizing.before_next_fetch(self._at_fetch)

    def _at_fetch(self, iterator: Any) -> None:
        """Several ranks: a batch is asked for, and the step is not over."""
        together = self._together
        if self._answer is not None or together is None:
            return
        if getattr(iterator, "_index_sampler", None) is self._switch.index_sampler:
            self._answer = self._met(together, f"batch {drawn(iterator)} of its epoch")
        if self._answer is None:
            self._resizing.before_next_fetch(self._at_fetch)

    def _met(self, together: FirstStep, place: str) -> Receipt | None:
        """What follows from how it went on all ranks up to here; ``None`` if it went well."""
        ran_out = self._ran_out()
        heard = together.meet(place, ran_out=ran_out)
        if heard.why_not and (ran_out or heard.ran_out):
            self._leave()
            return self._out(heard.ran_out, f"It was not rolled back: {heard.why_not}.", _STAYS)
        if heard.why_not:
            self._leave()
            words = (f"How its first step went elsewhere is not known: {heard.why_not}.",)
            return self._receipt("done", *self._words, *words)
        return self._set_back(heard.ran_out) if heard.ran_out else None

    def _ran_out(self) -> bool:
        return self._resizing.ooms() > self._ooms

    def _go_back(self) -> None:
        self._answer = self._set_back(())

    def _set_back(self, ranks: tuple[int, ...]) -> Receipt:
        plan: Plan | None = None
        with Attempt() as attempt:
            plan = self._resizing.plan()
            plan.check(self._now)
        refusal = "" if attempt.error is None else failure(attempt.error)
        together, self._together = self._together, None
        if together is not None:
            shown = {} if plan is None or refusal else plan.shown()
            refusal = together.reason_against(refusal, shown) or ""
        if plan is None or refusal:
            return self._out(ranks, f"It could not be rolled back: {refusal}.", _STAYS)
        with Attempt() as attempt:
            self._resizing.begin(plan, self._now)
            where = " on all ranks" if ranks else ""
            return self._out(ranks, f"It was rolled back{where}. {plan.effect()}", sizes=self._now)
        why = failure(attempt.error or Exception())
        return self._out(ranks, f"It could not be rolled back: {why}.")

    def _leave(self) -> None:
        """Not come to where the others meet, and let them know."""
        together, self._together = self._together, None
        if together is not None:
            together.leave(ran_out=self._was_made and self._ran_out())

    def _out(self, ranks: tuple[int, ...], *words: str, sizes: Sizes | None = None) -> Receipt:
        receipt = self._receipt("failed", f"{_RAN_OUT}{_on(ranks)}.", *words)
        receipt.result = {"ran_out": True}
        if sizes is not None:
            receipt.after = dict(sizes.told())
        return receipt

    def _receipt(self, state: str, *words: str) -> Receipt:
        self._resizing.first_step_ends()
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


def _on(ranks: tuple[int, ...]) -> str:
    if not ranks:
        return ""
    names = [str(rank) for rank in ranks]
    return f" on rank {names[0]}" if len(names) == 1 else f" on ranks {', '.join(names)}"
