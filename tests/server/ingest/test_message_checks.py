from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.streams import START_NS, made_columns, made_rows, registration
from vramscope_protocol.account import AgentAccount
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import ProtocolError
from vramscope_protocol.messages import (
    AgentStatus,
    CommandUpdate,
    DeviceInfo,
    Event,
    Goodbye,
    Lost,
    Register,
)
from vramscope_protocol.user_commands import UserCommand
from vramscope_server.ingest.message_checks import (
    StreamChecks,
    check_lost,
    check_register,
    check_seq,
    check_status,
)


def changed(change: Callable[[Register], object]) -> Register:
    message = registration()
    change(message)
    return message


def test_a_good_registration() -> None:
    check_register(registration(run="a1b2c3d4e5f6"))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "stream", ""),
        lambda m: setattr(m, "stream", "x" * 129),
        lambda m: setattr(m.run, "id", "a/b"),
        lambda m: setattr(m.run, "id", "a\n"),
        lambda m: setattr(m.run, "name", ""),
        lambda m: setattr(m.run, "name", "x" * 513),
        lambda m: setattr(m.run, "script", "nul\0"),
        lambda m: setattr(m.run, "world_size", 0),
        lambda m: setattr(m.rank, "rank", 2**40),
        lambda m: setattr(m.rank, "pid", 2**64 - 1),
        lambda m: setattr(m.rank, "started_ns", -1),
        lambda m: setattr(m.rank, "user_commands", [UserCommand("user.nul\0")]),
        lambda m: setattr(m.rank, "devices", [DeviceInfo(0, "x")] * 65),
        lambda m: setattr(m.rank, "devices", [DeviceInfo(0, "x", total_bytes=2**63)]),
    ],
)
def test_a_registration_that_no_database_should_see(change: Callable[[Register], object]) -> None:
    with pytest.raises(ProtocolError) as caught:
        check_register(changed(change))
    assert caught.value.code == "bad_message"
    assert len(caught.value.message) < 300


def test_time_may_stand_still_but_not_go_back() -> None:
    columns = made_columns(10)
    columns["time_ns"][5] = columns["time_ns"][4]
    checks = StreamChecks()
    rows = made_rows(columns)
    checks.check_rows(rows)
    checks.check_rows(rows.part(9, 10))
    checks.check_rows(made_rows(columns, kind="step"))  # each kind has a time of its own
    with pytest.raises(ProtocolError, match="do not go backwards"):
        checks.check_rows(rows.part(8, 9))


@pytest.mark.parametrize(
    "message",
    [
        Event(1, -1, "mark"),
        Event(1, 2**63, "mark"),
        Event(1, START_NS, "mark", text="nul\0"),
        CommandUpdate(1, "no spaces", "done", START_NS),
        CommandUpdate(1, "c", "done", START_NS, Receipt("done", result={(1, 2): 3})),
        Goodbye(1, START_NS, "exit", 2**63),
    ],
)
def test_messages_that_cannot_be_stored(message: Event | CommandUpdate | Goodbye) -> None:
    with pytest.raises(ProtocolError):
        StreamChecks().check_message(message)


def test_messages_that_can() -> None:
    checks = StreamChecks()
    checks.check_message(Event(1, START_NS, "mark", -5, "x" * 5000, {"nested": [{"a": None}]}))
    checks.check_message(CommandUpdate(1, "c-1", "done", START_NS, Receipt("done", result="x")))
    checks.check_message(Goodbye(1, START_NS, "exit", -9))
    check_lost(Lost(samples={"full": 3}))


@pytest.mark.parametrize("seq", [0, -1, 2**63])
def test_sequence_numbers_have_a_range(seq: int) -> None:
    with pytest.raises(ProtocolError):
        check_seq(seq)


@pytest.mark.parametrize(
    "lost",
    [
        Lost(samples={"full": 2**63}),
        Lost(steps={"x" * 600: 1}),
        Lost(messages={str(number): 1 for number in range(65)}),
    ],
)
def test_losses_have_a_range(lost: Lost) -> None:
    with pytest.raises(ProtocolError):
        check_lost(lost)


@pytest.mark.parametrize(
    "account",
    [
        AgentAccount(errors={f"place {number}": 1 for number in range(257)}),
        AgentAccount(lost={"x" * 513: 1}),
        AgentAccount(errors={"a\0b": 1}),
    ],
)
def test_an_account_that_nobody_should_keep(account: AgentAccount) -> None:
    with pytest.raises(ProtocolError):
        check_status(AgentStatus(1.0, 0.0, account=account))


def test_an_account_may_be_missing_or_name_what_it_counts() -> None:
    check_status(AgentStatus(1.0, 0.0))
    check_status(AgentStatus(1.0, 0.0, account=AgentAccount(errors={"step hook": 2})))
