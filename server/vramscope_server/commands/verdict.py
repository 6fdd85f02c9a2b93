"""When the server stops waiting for a rank, and what it says then. Pure: the clock is passed in."""

from __future__ import annotations

from collections.abc import Collection

from vramscope_protocol.commands import CommandState, Receipt
from vramscope_server.commands.agreement import Agreement
from vramscope_server.commands.record import CommandRecord, RankAnswer
from vramscope_server.settings import Limits


def give_up_ns(record: CommandRecord, rank: int, limits: Limits) -> int:
    """Time from which a rank without a final answer is given up.

    A rank that never got the command is given up at the deadline. One that got it has its own
    clock and its own deadline, so that its word, which is better than ours, gets some time more.
    """
    answer = record.answers.get(rank)
    if answer is not None and answer.state == "running":
        # One that goes on over many steps says so now and then. Each time it has its whole
        # deadline for the next step, and then this time to say that none came.
        patience_ns = record.deadline_ns - record.created_ns
        begun_ns = max(record.created_ns, answer.received_ns)
        run_ns = int(limits.command_run_s * 1e9)
        return max(begun_ns + patience_ns + run_ns, record.not_before_ns)
    if record.agreement is not None:
        return max(_agreed_ns(record, record.agreement, limits), record.not_before_ns)
    grace_s = limits.command_grace_s if rank in record.sent else 0.0
    return max(record.deadline_ns + int(grace_s * 1e9), record.not_before_ns)


def _agreed_ns(record: CommandRecord, agreement: Agreement, limits: Limits) -> int:
    """Time until which a rank is waited for that runs a command together with others."""
    grace_ns = int(limits.command_grace_s * 1e9)
    decided_ns = agreement.decided_ns or record.created_ns
    if agreement.run is None:
        # Whoever decides does so before the deadline, unless the store is away.
        hold_s = limits.command_prepare_s + limits.command_hold_s
        return record.deadline_ns + int(hold_s * 1e9) + grace_ns
    if not agreement.run:
        return decided_ns + grace_ns
    # The deadline was for the decision: what is decided happens on all ranks, when they get there.
    way_ns = 2 * max(0, record.due_ns - decided_ns)
    run_ns = int(limits.command_run_s * 1e9)
    return max(record.deadline_ns, decided_ns + way_ns + run_ns) + grace_ns


def next_check_ns(record: CommandRecord, limits: Limits) -> int | None:
    """Time at which the next rank is given up; None when nothing is waited for."""
    return min((give_up_ns(record, rank, limits) for rank in record.open_ranks), default=None)


def give_up(record: CommandRecord, now_ns: int, limits: Limits) -> bool:
    """Answer for every rank whose time is over; whether there was one."""
    due = [rank for rank in record.open_ranks if now_ns >= give_up_ns(record, rank, limits)]
    for rank in due:
        record.answer(rank, _verdict(record, rank, now_ns))
    return bool(due)


def answer_dropped(record: CommandRecord, silent: Collection[int], now_ns: int) -> None:
    """Answer for the ranks that a decision not to run is not told to, or that say nothing.

    The others say themselves that nothing was changed, as soon as they know.

    Args:
        silent: ranks that it is not run for because they said nothing in time.
    """
    for rank in record.open_ranks:
        if rank in silent:
            record.answer(rank, _dropped(record, "expired", now_ns))
        elif rank not in record.sent:
            record.answer(rank, _dropped(record, "refused", now_ns))


def answer_gone(record: CommandRecord, rank: int, what: str, now_ns: int) -> bool:
    """Answer for a rank that cannot do so any more; whether it had not.

    Args:
        what: has become of it, such as "has ended".
    """
    if record.agreement is None or rank not in record.open_ranks:
        return False
    if not record.agreement.run:
        return record.answer(rank, _dropped(record, "refused", now_ns))
    message = f"Rank {rank} {what}, and has not answered. It is not known whether the command ran."
    receipt = Receipt("failed", message=message, dry_run=record.dry_run)
    return record.answer(rank, RankAnswer("failed", now_ns, receipt, by_server=True))


def _dropped(record: CommandRecord, state: CommandState, now_ns: int) -> RankAnswer:
    reason = record.agreement.reason if record.agreement is not None else ""
    message = f"{reason} Nothing was changed."
    receipt = Receipt(state, message=message, dry_run=record.dry_run)
    return RankAnswer(state, now_ns, receipt, by_server=True)


def _verdict(record: CommandRecord, rank: int, now_ns: int) -> RankAnswer:
    if record.agreement is not None and record.agreement.run is False:
        return _dropped(record, "refused", now_ns)
    waited_s = (now_ns - record.created_ns) / 1e9
    answer = record.answers.get(rank)
    state: CommandState = "expired"
    if answer is not None and answer.state == "running":
        state = "failed"
        message = f"Rank {rank} began the command and has not answered for {waited_s:.0f} s."
    elif rank in record.sent:
        message = (
            f"Rank {rank} did not answer within {waited_s:.0f} s. "
            "It is not known whether the command ran."
        )
    else:
        message = f"Rank {rank} was not connected within {waited_s:.0f} s. Nothing was changed."
    receipt = Receipt(state, message=message, dry_run=record.dry_run)
    return RankAnswer(state, now_ns, receipt, by_server=True)
