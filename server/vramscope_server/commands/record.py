"""One command and what each rank has answered so far. No clock, no store, no connection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from vramscope_protocol.commands import FINAL_STATES, CommandState, Receipt
from vramscope_server.commands.agreement import Agreement, agreement_from_dict

_WORST_FIRST: Final[tuple[CommandState, ...]] = ("failed", "expired", "refused", "done")
_QUEUED: Final[CommandState] = "queued"
_DONE: Final[CommandState] = "done"
_PREPARED: Final = frozenset({"prepared", "running", "done", "failed"})
_FARTHEST_FIRST: Final[tuple[CommandState, ...]] = ("running", "prepared")


@dataclass
class RankAnswer:
    """What is known of the command on one rank."""

    state: CommandState
    time_ns: int
    receipt: Receipt
    by_server: bool = False
    """The server gave up waiting; a word of the agent that comes later replaces it."""
    overrules: bool = False
    """It has replaced an answer of the server."""
    received_ns: int = 0
    """When it came, by the server's clock."""

    def as_dict(self) -> dict[str, Any]:
        """The receipt as the API shows it."""
        receipt = self.receipt
        return {
            "state": self.state,
            "step": receipt.step,
            "before": receipt.before,
            "after": receipt.after,
            "returned_bytes": receipt.returned_bytes,
            "took_s": receipt.took_s,
            "message": receipt.message,
            "result": receipt.result,
            "time_ns": self.time_ns,
        }


@dataclass
class CommandRecord:
    """One command. ``ranks`` never changes; answers arrive in any order, some of them late."""

    id: str
    run_id: str
    name: str
    params: dict[str, Any]
    dry_run: bool
    ranks: list[int]
    issued_by: str
    origin: str
    created_ns: int
    deadline_ns: int
    finished_ns: int | None = None
    note: str = ""
    """What whoever asked should know of the way it is run, in one sentence."""
    agreement: Agreement | None = None
    """All ranks run it at the same step, or none does; without one, each at its own next step."""
    answers: dict[int, RankAnswer] = field(default_factory=dict[int, RankAnswer])
    sent: set[int] = field(default_factory=set[int])
    """Ranks that the command was handed to; it may be handed to them again, it runs once."""
    lives: dict[int, str] = field(default_factory=dict[int, str])
    """Of an agreement: the stream of each rank's process that was asked, since this server runs."""
    due_ns: int = 0
    """Of an agreement: about when the ranks are at the step."""
    told: str = ""
    """What the timeline says of its end."""
    not_before_ns: int = 0
    """Earliest time at which the server may give up on a rank."""

    @property
    def state(self) -> CommandState:
        """Done only if every rank is done; otherwise the worst answer, once all have come."""
        states = {answer.state for answer in self.answers.values()}
        order, otherwise = (_FARTHEST_FIRST, _QUEUED) if self.open_ranks else (_WORST_FIRST, _DONE)
        for state in order:
            if state in states:
                return state
        return otherwise

    @property
    def prepared_count(self) -> int:
        """Ranks that are ready for the step and wait for the decision, or have gone on since."""
        return sum(answer.state in _PREPARED for answer in self.answers.values())

    @property
    def open_ranks(self) -> list[int]:
        """Ranks without a final answer."""
        return [
            rank
            for rank in self.ranks
            if rank not in self.answers or self.answers[rank].state not in FINAL_STATES
        ]

    def awaits_word_of(self, rank: int) -> bool:
        """Whether a rank has not said itself how it ended."""
        answer = self.answers.get(rank)
        is_over = answer is not None and answer.state in FINAL_STATES
        return rank in self.ranks and (answer is None or not is_over or answer.by_server)

    @property
    def is_final(self) -> bool:
        """Whether every rank has answered for good."""
        return not self.open_ranks

    def answer(self, rank: int, answer: RankAnswer) -> bool:
        """Take an answer of a rank; False if it says nothing new.

        A final answer stands, except one that the server made for a silent rank.
        """
        if rank not in self.ranks:
            return False
        known = self.answers.get(rank)
        if known is not None and known.state in FINAL_STATES:
            replaceable = known.by_server and not answer.by_server
            if not replaceable or answer.state not in FINAL_STATES:
                return False
            answer.overrules = True
        self.answers[rank] = answer
        self.finished_ns = answer.time_ns if self.is_final else None
        return True

    def same_request(self, other: CommandRecord) -> bool:
        """Whether both were asked for with the same words, so that one id may stand for both."""
        return (self.run_id, self.name, self.params, self.dry_run, self.ranks) == (
            other.run_id,
            other.name,
            other.params,
            other.dry_run,
            other.ranks,
        )

    def as_dict(self) -> dict[str, Any]:
        """The command as the API shows it, receipts included."""
        shown = self.as_row()
        if shown["agreement"] is not None:
            shown["agreement"]["prepared"] = self.prepared_count
        return {
            **shown,
            "receipts": {str(rank): self.answers[rank].as_dict() for rank in sorted(self.answers)},
        }

    def as_row(self) -> dict[str, Any]:
        """The command without its receipts, as the store keeps it."""
        return {
            "id": self.id,
            "name": self.name,
            "params": self.params,
            "dry_run": self.dry_run,
            "ranks": self.ranks,
            "state": self.state,
            "issued_by": self.issued_by,
            "origin": self.origin,
            "created_ns": self.created_ns,
            "deadline_ns": self.deadline_ns,
            "finished_ns": self.finished_ns,
            "note": self.note,
            "agreement": None if self.agreement is None else self.agreement.as_dict(),
        }


def record_from_dict(run_id: str, command: dict[str, Any]) -> CommandRecord:
    """Read a command back from what the store gives, receipts included."""
    agreement = command["agreement"]
    record = CommandRecord(
        id=command["id"],
        run_id=run_id,
        name=command["name"],
        params=command["params"],
        dry_run=command["dry_run"],
        ranks=list(command["ranks"]),
        issued_by=command["issued_by"],
        origin=command["origin"],
        created_ns=command["created_ns"],
        deadline_ns=command["deadline_ns"],
        finished_ns=command["finished_ns"],
        note=command["note"],
        agreement=agreement and agreement_from_dict(agreement),
    )
    for rank, body in command["receipts"].items():
        receipt = msgspec.convert(body, Receipt)
        record.answers[int(rank)] = RankAnswer(body["state"], body["time_ns"], receipt)
    return record
