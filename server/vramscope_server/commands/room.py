"""Whether there is room for one more command in a run. Pure.

Commands may stay unfinished for an hour. Nobody may fill all places with theirs: a person has to
be able to stop a job whose policies, or whose other onlookers, ask for much.
"""

from __future__ import annotations

from collections.abc import Iterable

from vramscope_protocol.errors import RATE_LIMITED, VramscopeError
from vramscope_server.commands.record import CommandRecord
from vramscope_server.settings import Limits


def check_room(record: CommandRecord, waiting: Iterable[CommandRecord], limits: Limits) -> None:
    """Refuse what does not fit beside what is unfinished in the same run.

    Raises:
        VramscopeError: ``rate_limited``, with what was expected and what is there.
    """
    count, own, policies = 0, 0, 0
    caller = (record.origin, record.issued_by)
    for other in waiting:
        count += 1
        own += (other.origin, other.issued_by) == caller
        policies += other.origin == "policy"
    _check(count, limits.command_open, "a run")
    if record.origin == "policy":
        _check(policies, limits.command_open_policies, "of policies in a run")
    _check(own, limits.command_open_caller, f"of {record.issued_by} in a run")


def _check(count: int, most: int, whose: str) -> None:
    if count >= most:
        raise VramscopeError(
            RATE_LIMITED, f"expected at most {most} unfinished commands {whose}, got {count}"
        )
