"""The command that this rank has agreed to run at the end of a certain step, if it is told to.

Threads: the receiver prepares and decides; the training thread meets it at the end of its step.
Whoever takes it out of the dictionary owns it (``dict.pop`` is atomic); while the training thread
stands still with it, others only tell it their news.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, Protocol

from vramscope.commands.agreement import Agreement
from vramscope.commands.ongoing_commands import INTERRUPTED
from vramscope.commands.standstill import AGAIN, Outcome, Prepared, Standstill
from vramscope_protocol.commands import CommandState, Receipt
from vramscope_protocol.errors import CONFLICT, VramscopeError
from vramscope_protocol.messages import Command, Decision

HELD_BACK: Final = "another command is being agreed on with the other ranks"
NOTHING: Final = "Nothing was changed."
_TOLD_FROM_S: Final = 0.1
"""So long a standstill is told in the receipt."""
_LEAVE_S: Final = 1.0


class Tell(Protocol):
    """Takes each change of state; must not block."""

    def __call__(
        self, identity: str, state: CommandState, receipt: Receipt | None, at_step: int | None
    ) -> None:
        """A command is in this state now."""
        ...


class PreparedCommands:
    """Prepares a command for a step, and says at its end whether it runs. One at a time.

    Args:
        agreement: where the ranks agree.
        step: the steps finished so far.
        tell: takes each change of state.
        forget: told when a command may come again for another step, with its id and the step
            that it was prepared for.
    """

    def __init__(
        self,
        agreement: Agreement,
        *,
        step: Callable[[], int],
        tell: Tell,
        forget: Callable[[str, int], None],
    ) -> None:
        self._agreement = agreement
        self._standstill = Standstill(agreement)
        self._step = step
        self._tell = tell
        self._forget = forget
        self._prepared: dict[str, Prepared] = {}
        self._met: Prepared | None = None
        self._has_left = threading.Event()
        self._has_left.set()
        self._closed_because: str | None = None

    def __len__(self) -> int:
        return len(self._prepared)

    def prepare(self, command: Command, params: Any, at_step: int) -> None:
        """Agree to run a command at the end of a step, if that is still to come.

        Raises:
            VramscopeError: ``conflict``, there is another one.
        """
        before = self._of(command.id)
        if before is not None:  # the word that dropped it was lost on the way
            self._drop(before, Decision(command.id, before.at_step, run=False, reason=AGAIN))
        if self._step() >= at_step:
            self._tell_over(command, at_step)
            return
        if before is None and (self._prepared or self._met is not None):
            raise VramscopeError(CONFLICT, HELD_BACK)
        prepared = self._prepared[command.id] = Prepared(command, params, at_step)
        # Read again when it is in: the training thread looks after it has counted the step.
        if self._step() >= at_step and self._prepared.pop(command.id, None) is not None:
            self._tell_over(command, at_step)
            return
        if self._of(command.id) is prepared:  # else the training thread was there and is through
            self._tell(command.id, "prepared", None, at_step)
        if self._closed_because is not None:
            self.close(self._closed_because)

    def decide(self, decision: Decision) -> Command | None:
        """Take the server's word; the command that it lets run, if it is one of ours."""
        prepared = self._of(decision.id)
        if prepared is None or prepared.decision is not None:
            return None
        if decision.run:
            if decision.at_step != prepared.at_step:
                return None
            prepared.decide(decision)
            return prepared.command
        if decision.at_step >= prepared.at_step:
            self._drop(prepared, decision)
        return None

    def meet(self, step: int, busy_reason: str | None) -> Prepared | None:
        """At the end of a step: wait for the word on what was prepared for it. Training thread.

        Returns:
            What is to be run now.
        """
        for identity, prepared in list(self._prepared.items()):
            if prepared.at_step > step:
                continue
            self._has_left.clear()
            self._met = prepared  # first: who finds it nowhere takes it for unknown
            try:
                if self._prepared.pop(identity, None) is None:
                    continue  # dropped meanwhile
                if self._runs(prepared, step, busy_reason):
                    return prepared
            finally:
                self._met = None
                self._has_left.set()
        return None

    def close(self, reason: str) -> None:
        """Drop everything, on the other ranks as well where that is still possible."""
        self._closed_because = reason
        sentence = f"{reason[:1].upper()}{reason[1:]}."
        for identity in list(self._prepared):
            prepared = self._prepared.pop(identity, None)
            if prepared is not None:
                self._agreement.settle(prepared.key, "drop", _LEAVE_S)
                self._finish(prepared, Outcome("drop", sentence))
        met = self._met
        if met is not None:
            met.close(sentence)
            # What it has to tell must be told before the goodbye.
            self._has_left.wait(_LEAVE_S)

    def _tell_over(self, command: Command, at_step: int) -> None:
        receipt = Receipt("refused", self._step(), message=f"step {at_step} is over")
        self._tell(command.id, "refused", receipt, at_step)

    def _of(self, identity: str) -> Prepared | None:
        prepared = self._prepared.get(identity)
        if prepared is None:
            met = self._met
            prepared = met if met is not None and met.command.id == identity else None
        return prepared

    def _drop(self, prepared: Prepared, decision: Decision) -> None:
        prepared.decide(decision)
        if self._prepared.pop(prepared.command.id, None) is None:
            return  # the training thread has it, and has heard
        # For a rank that the server's word does not reach: it need not stand still for nothing.
        self._agreement.tell(prepared.key, "drop")
        self._finish(prepared, Outcome("drop", decision.reason))

    def _runs(self, prepared: Prepared, step: int, busy_reason: str | None) -> bool:
        """Whether the command runs; if not, that is told."""
        refusal: str | None = None
        if step > prepared.at_step:
            refusal = f"Step {prepared.at_step} ended where no command can run."
        elif busy_reason is not None:
            refusal = f"At the end of step {step}, {busy_reason}."
        try:
            outcome = self._standstill.wait(prepared, refusal)
        except BaseException:  # Ctrl-C: it goes on to the job, after the receipt
            self._agreement.tell(prepared.key, "drop")
            text = f"{INTERRUPTED}; nothing was changed"
            self._tell(prepared.command.id, "failed", Receipt("failed", step, message=text), None)
            raise
        if outcome.word == "drop":
            self._finish(prepared, outcome, step)
            return False
        if refusal is not None:
            text = f"{refusal} The other ranks have run it."
            self._tell(prepared.command.id, "failed", Receipt("failed", step, message=text), None)
            return False
        prepared.stood_s = outcome.stood_s
        return True

    def _finish(self, prepared: Prepared, outcome: Outcome, step: int | None = None) -> None:
        """Tell that it was dropped, unless it comes again."""
        decision = prepared.decision
        if decision is not None and not decision.run and decision.reason == AGAIN:
            self._forget(prepared.command.id, prepared.at_step)
            return
        state: CommandState = "expired" if outcome.is_expired else "refused"
        texts = [outcome.reason, NOTHING, stood_text(outcome.stood_s)]
        message = " ".join(text for text in texts if text)
        receipt = Receipt(state, step, message=message, dry_run=prepared.command.dry_run)
        self._tell(prepared.command.id, state, receipt, None)


def stood_text(stood_s: float) -> str:
    """How long training stood still, as a sentence; empty if that is not worth one."""
    if stood_s < _TOLD_FROM_S:
        return ""
    return f"Training stood still for {stood_s:.1f} s until all ranks knew."
