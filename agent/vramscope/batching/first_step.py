"""How the first step with new sizes goes on all ranks, so that all keep them or none does.

A rank that ran out of memory and left its batch out looks to the others like any other. So until
that step is over, all show each other before each fetch, and at its end, whether memory has run
out. Those who are not at the same place change nothing: their batches would no longer match.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from vramscope.batching.consent import WAIT_S, Consent

_RAN_OUT: Final = "memory ran out"
_PLACE: Final = "place"


class Heard(Struct, frozen=True):
    """What a rank knows of the others."""

    ran_out: tuple[int, ...] = ()
    """Ranks on which memory ran out."""
    why_not: str = ""
    """Why they can do nothing together; empty if they can."""


class FirstStep:
    """Where the ranks of a job meet until it is over. Training thread.

    Args:
        consent: how they show each other something.
        key: of the change, the same on all ranks.
        wait_s: so long the others are waited for.
    """

    def __init__(self, consent: Consent, key: str, wait_s: float = WAIT_S) -> None:
        self._consent = consent
        self._key = key
        self._wait_s = wait_s
        self._meetings = 0

    def meet(self, place: str, *, ran_out: bool) -> Heard:
        """Show the others how it goes, and learn how it goes there.

        Args:
            place: where this rank is, in words that are the same on a rank at the same place.
            ran_out: whether memory ran out on this one.
        """
        self._meetings += 1
        shown = {_PLACE: place, _RAN_OUT: ran_out}
        answers = self._consent.answers(self._next_key(), shown, self._wait_s)
        if answers is None:
            return Heard(why_not=f"not all ranks came to {place} within {self._wait_s:g} s")
        ran_out_on = tuple(rank for rank, each in enumerate(answers) if each.get(_RAN_OUT))
        for rank, each in enumerate(answers):
            there = each.get(_PLACE)
            if there is None:
                return Heard(ran_out_on, f"rank {rank} does not look at this step any more")
            if there != place:
                return Heard(ran_out_on, f"rank {rank} was at {there}, this one at {place}")
        return Heard(ran_out_on)

    def leave(self, *, ran_out: bool) -> None:
        """Tell those who come to the next meeting that this rank does not. Any thread."""
        self._meetings += 1
        self._consent.show(self._next_key(), {_RAN_OUT: ran_out})

    def reason_against(self, refusal: str, shown: dict[str, object]) -> str | None:
        """Why the ranks may not go back together; ``None`` if all would do the same.

        Args:
            refusal: why this one cannot; empty if it can.
            shown: what it would do.
        """
        key = f"{self._key}/{self._meetings}/back"
        return self._consent.reason_against(key, {"refusal": refusal, **shown})

    def _next_key(self) -> str:
        return f"{self._key}/{self._meetings}"
