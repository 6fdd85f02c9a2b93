from __future__ import annotations

from typing import Any

import pytest

from tests.support.server_commands import OWNER, VIEWER, S
from vramscope_protocol.errors import BAD_REQUEST, FORBIDDEN, VramscopeError
from vramscope_server.commands.record import CommandRecord
from vramscope_server.commands.request import CommandRequest, Issuer, make_record


def make(issuer: Issuer = OWNER, ranks_of_run: list[int] | None = None, **request: Any) -> Any:
    known = [0, 1, 2] if ranks_of_run is None else ranks_of_run
    asked = CommandRequest(**({"name": "gc_collect"} | request))
    return make_record(asked, "r1", known, issuer, 100 * S, 60.0)


def test_all_ranks_and_a_deadline_of_its_own() -> None:
    record: CommandRecord = make(deadline_s=1.5, id="mine-1")
    assert (record.id, record.ranks, record.state) == ("mine-1", [0, 1, 2], "queued")
    assert record.deadline_ns - record.created_ns == 1_500_000_000
    assert (record.issued_by, record.origin) == ("owner", "cli")


def test_named_ranks_are_sorted_and_counted_once() -> None:
    assert make(ranks=[2, 0, 2]).ranks == [0, 2]


def test_ids_are_made_when_none_is_given() -> None:
    assert make().id != make().id


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            {"name": "format_disk"},
            "no command named 'format_disk'; expected one of: clear_cublas_workspaces",
        ),
        ({"params": {"x": 1}}, "parameters of gc_collect"),
        ({"dry_run": True}, "gc_collect has no dry run"),
        ({"deadline_s": 0}, "deadline_s: expected more than 0"),
        ({"deadline_s": 61}, "at most 60 seconds, got 61"),
        ({"deadline_s": float("nan")}, "deadline_s: expected"),
        ({"id": "a b"}, "id: expected 1 to 64"),
        ({"id": ""}, "id: expected 1 to 64"),
        ({"ranks": [0, 7]}, "some of the ranks 0, 1, 2, got 7"),
        ({"ranks": []}, "got none"),
        ({"ranks_of_run": []}, "no rank yet"),
    ],
)
def test_what_was_expected_is_said(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(VramscopeError, match=message) as refused:
        make(**request_)
    assert refused.value.code == BAD_REQUEST


def test_each_command_has_its_right() -> None:
    assert make(VIEWER, name="memory_summary").name == "memory_summary"
    with pytest.raises(VramscopeError, match="'control'") as refused:
        make(VIEWER, name="empty_cache")
    assert refused.value.code == FORBIDDEN
