"""One try to have all ranks of a command ready for one step. No clock, no store, no connection."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal, NamedTuple

from vramscope_protocol.messages import CommandUpdate
from vramscope_server.commands.rank_names import capitalised, rank_names

AGAIN: Final = "again"
"""Reason of a drop after which the same command comes for a later step."""

_WORDS: Final = {"refused": "refused", "expired": "was too late", "failed": "could not"}


class Verdict(NamedTuple):
    """What is to become of the command."""

    what: Literal["run", "again", "drop"]
    reason: str = ""
    """Why it is not run, in whole sentences."""
    silent: tuple[int, ...] = ()
    """Ranks that it is dropped for because they said nothing."""


class AgreementRound:
    """Takes what ranks say of one step, and says what follows from it.

    Args:
        ranks: those that are asked.
        until_ns: time from which ranks that said nothing are not waited for.
    """

    def __init__(self, at_step: int, ranks: Collection[int], until_ns: int) -> None:
        self.at_step = at_step
        self.until_ns = until_ns
        self.over: dict[int, int] = {}
        """Ranks for which the step is over, each with the step that it has reached."""
        self._ranks = frozenset(ranks)
        self._prepared: set[int] = set()
        self._obstacle = ""

    def take(self, rank: int, update: CommandUpdate) -> None:
        """A rank says something of the command; what it says of another step is passed over."""
        if rank not in self._ranks:
            return
        if update.is_last_word:
            said = update.receipt.message if update.receipt is not None else ""
            word = _WORDS.get(update.state, "ran it before the others")
            text = f"rank {rank} {word}: {said}" if said else f"rank {rank} {word}"
            self._obstacle = self._obstacle or capitalised(text)
        elif update.at_step != self.at_step:
            return  # late: of a step that is not asked for any more
        elif update.state == "prepared":
            self._prepared.add(rank)
        elif update.state == "refused":
            reached = update.receipt.step if update.receipt is not None else None
            self.over[rank] = self.at_step if reached is None else reached

    def verdict(self, now_ns: int) -> Verdict | None:
        """What follows; none while there is something to wait for."""
        if self._obstacle:
            return Verdict("drop", self._obstacle)
        if self.over:
            return Verdict("again", AGAIN)
        silent = tuple(sorted(self._ranks - self._prepared))
        if not silent:
            return Verdict("run")
        if now_ns >= self.until_ns:
            names = capitalised(rank_names(silent)).rstrip(".")
            return Verdict("drop", f"{names} did not get ready in time.", silent)
        return None
