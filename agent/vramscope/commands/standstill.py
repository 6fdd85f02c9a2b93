"""Training that stands still at the end of a step, until it is known what becomes of a command."""

from __future__ import annotations

import threading
import time
from typing import Any, Final

from msgspec import Struct

from vramscope.commands.agreement import Agreement, Word
from vramscope_protocol.messages import Command, Decision

LOOK_INTERVAL_S: Final = 0.25
"""How often the job's store is looked into meanwhile."""
MAX_HOLD_S: Final = 30.0
"""Longer than this nobody can have a job stand still for a decision."""
AGAIN: Final = "again"
"""The reason of a drop that is not the end: the command comes again, for a later step."""

_ELSEWHERE: Final = "Another rank has dropped it."


class Prepared:
    """A command that runs at the end of a certain step, if that is what becomes of it.

    Args:
        command: with the step.
        params: of the command, checked.
        at_step: at whose end it runs.
    """

    def __init__(self, command: Command, params: Any, at_step: int) -> None:
        self.command = command
        self.params = params
        self.at_step = at_step
        # NaN is 0 in this order.
        self.hold_s = min(max(0.0, command.hold_s), MAX_HOLD_S)
        self.key = f"vramscope/{command.id}/{at_step}"
        self.closed_because: str | None = None
        self.stood_s = 0.0
        """How long training has stood still for it."""
        self.news = threading.Event()
        self._decision: Decision | None = None

    @property
    def decision(self) -> Decision | None:
        """What the server has said."""
        return self._decision

    def decide(self, decision: Decision) -> None:
        """Take what the server says; the first time counts."""
        if self._decision is None:
            self._decision = decision
        self.news.set()

    def close(self, reason: str) -> None:
        """The agent leaves: no word of the server is waited for."""
        self.closed_because = reason
        self.news.set()


class Outcome(Struct, frozen=True):
    """What becomes of a command on this rank, as on all others."""

    word: Word
    reason: str = ""
    """Why it is dropped, as a sentence."""
    stood_s: float = 0.0
    is_expired: bool = False
    """Nobody has decided in time."""


class Standstill:
    """Waits on the training thread for the word that stands.

    Args:
        agreement: where the ranks agree.
    """

    def __init__(self, agreement: Agreement) -> None:
        self._agreement = agreement

    def wait(self, prepared: Prepared, refusal: str | None) -> Outcome:
        """Stand still until it is known what becomes of ``prepared``, within its limit.

        Args:
            prepared: what is to be decided.
            refusal: why this rank cannot run it, as a sentence: then it proposes a drop at once.
        """
        begun_s = time.monotonic()
        word, reason, is_expired = self._word(prepared, refusal, begun_s + prepared.hold_s)
        stood_s = time.monotonic() - begun_s
        return Outcome(word, reason if word == "drop" else "", stood_s, is_expired)

    def _word(
        self, prepared: Prepared, refusal: str | None, until_s: float
    ) -> tuple[Word, str, bool]:
        if refusal is not None:
            return *self._settled(prepared, "drop", refusal), False
        while True:
            decision = prepared.decision
            if decision is not None:
                word: Word = "run" if decision.run else "drop"
                return *self._settled(prepared, word, decision.reason), False
            if prepared.closed_because is not None:
                return *self._settled(prepared, "drop", prepared.closed_because), False
            found = self._agreement.look(prepared.key)
            if found is not None:
                return found, _ELSEWHERE, False
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                reason = f"No decision came within {prepared.hold_s:g} s."
                stands, reason = self._settled(prepared, "drop", reason)
                return stands, reason, True
            prepared.news.wait(min(left_s, LOOK_INTERVAL_S))

    def _settled(self, prepared: Prepared, word: Word, reason: str) -> tuple[Word, str]:
        """The word that stands once this one is proposed; without a store it is this one."""
        stands = self._agreement.settle(prepared.key, word) or word
        return stands, reason if stands == word else _ELSEWHERE
