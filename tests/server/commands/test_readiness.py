from __future__ import annotations

from tests.support.server_commands import S, make_command
from vramscope_server.commands.readiness import is_ready, why_never

RECORD = make_command([0, 1])


def test_ready_when_all_are_there_and_nothing_is_before() -> None:
    assert is_ready({0: True, 1: True}, None)
    assert not is_ready({0: True, 1: None}, None)
    assert not is_ready({0: True, 1: True}, make_command(id="c0"))


def test_there_is_time_until_the_deadline() -> None:
    assert why_never(RECORD, {0: True, 1: None}, None, 129 * S) is None
    verdict = why_never(RECORD, {0: True, 1: None}, None, 130 * S)
    assert verdict is not None
    assert (verdict.what, verdict.silent) == ("drop", (0, 1))
    assert verdict.reason == "Rank 1 could not be asked within 30 s."
    verdict = why_never(RECORD, {0: True, 1: True}, make_command(name="pause"), 130 * S)
    assert verdict is not None
    assert verdict.reason == "pause was still under way after 30 s."
    verdict = why_never(RECORD, {0: True, 1: True}, None, 130 * S)
    assert verdict is not None
    assert verdict.reason == "Ranks 0 and 1 could not be asked within 30 s."


def test_an_older_agent_ends_it_at_once() -> None:
    verdict = why_never(RECORD, {0: None, 1: False}, None, 101 * S)
    assert verdict is not None
    assert (verdict.reason, verdict.silent) == (
        "Rank 1 cannot wait for a certain step: vramscope is older there.",
        (),
    )
