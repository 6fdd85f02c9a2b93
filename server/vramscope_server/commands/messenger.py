"""Puts commands and decisions into messages for ranks, and notes who was sent to."""

from __future__ import annotations

from collections.abc import Callable, Collection

from vramscope_protocol.messages import Command, Decision
from vramscope_server.commands.agreement_round import AGAIN
from vramscope_server.commands.counterparts import CommandCarrier
from vramscope_server.commands.record import CommandRecord
from vramscope_server.settings import Limits


class Messenger:
    """Sends to ranks that are connected; to the others it is sent when they connect."""

    def __init__(
        self, carrier: CommandCarrier, limits: Limits, clock_ns: Callable[[], int]
    ) -> None:
        self._carrier = carrier
        self._limits = limits
        self._clock_ns = clock_ns

    def send(self, record: CommandRecord, rank: int) -> None:
        """Send a command before its deadline, for the step that its ranks are asked for if any."""
        left_s = (record.deadline_ns - self._clock_ns()) / 1e9
        if left_s <= 0:
            return
        command = Command(
            id=record.id,
            name=record.name,
            params=record.params,
            dry_run=record.dry_run,
            deadline_s=left_s,
            issued_by=record.issued_by,
        )
        if record.agreement is not None:
            command.at_step = record.agreement.at_step
            command.hold_s = self._limits.command_hold_s
        if self._carrier.send_command(record.run_id, rank, command):
            record.sent.add(rank)

    def tell_decision(self, record: CommandRecord, ranks: Collection[int]) -> None:
        """Tell ranks that got a command what becomes of it."""
        agreement = record.agreement
        decision = None if agreement is None else agreement.message(record.id)
        if decision is not None:
            for rank in ranks:
                if rank in record.sent:
                    self._carrier.send_decision(record.run_id, rank, decision)

    def take_back(self, record: CommandRecord, at_step: int) -> None:
        """Tell ranks that a step is not asked for any more; the command comes again."""
        decision = Decision(record.id, at_step, run=False, reason=AGAIN)
        for rank in record.ranks:
            self._carrier.send_decision(record.run_id, rank, decision)
