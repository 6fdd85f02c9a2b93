"""Nobody fills all the places for commands of a run with theirs."""

from __future__ import annotations

import pytest

from tests.support.server_commands import make_command
from vramscope_protocol.errors import VramscopeError
from vramscope_server.commands.record import CommandRecord
from vramscope_server.commands.room import check_room
from vramscope_server.settings import Limits

LIMITS = Limits(command_open=10, command_open_caller=4, command_open_policies=3)


def of(origin: str, who: str, count: int = 1) -> list[CommandRecord]:
    return [make_command(id=f"{who}{i}", origin=origin, issued_by=who) for i in range(count)]


def refusal(origin: str, who: str, waiting: list[CommandRecord]) -> str:
    with pytest.raises(VramscopeError) as caught:
        check_room(of(origin, who)[0], waiting, LIMITS)
    assert caught.value.code == "rate_limited"
    return caught.value.message


def test_one_caller_leaves_room_for_others() -> None:
    browser = of("browser", "owner", 4)
    assert refusal("browser", "owner", browser) == (
        "expected at most 4 unfinished commands of owner in a run, got 4"
    )
    check_room(of("cli", "owner")[0], browser, LIMITS)
    check_room(of("browser", "guest")[0], browser, LIMITS)


def test_all_policies_together_leave_room_for_people() -> None:
    policies = of("policy", "a", 1) + of("policy", "b", 1) + of("policy", "c", 1)
    assert "at most 3 unfinished commands of policies" in refusal("policy", "d", policies)
    check_room(of("browser", "owner")[0], policies, LIMITS)
    # Nor does a person keep policies out.
    check_room(of("policy", "a")[0], of("browser", "owner", 4), LIMITS)


def test_all_places_are_taken() -> None:
    waiting = [record for who in "abc" for record in of("api", who, 4)][:10]
    assert "at most 10 unfinished commands a run, got 10" in refusal("cli", "new", waiting)


def test_the_shares_are_parts_of_the_whole() -> None:
    limits = Limits()
    assert limits.command_open_policies < limits.command_open_caller < limits.command_open
