from __future__ import annotations

from typing import Any

import pytest

from tests.support.server_commands import OWNER, VIEWER, FakeRuns, S
from vramscope_protocol.errors import BAD_REQUEST, FORBIDDEN, VramscopeError
from vramscope_protocol.user_commands import UserCommand, UserParam
from vramscope_server.commands.record import CommandRecord
from vramscope_server.commands.request import CommandRequest, Issuer, make_record


def make(issuer: Issuer = OWNER, runs: FakeRuns | None = None, **request: Any) -> Any:
    run = (runs or FakeRuns(3)).run("r1")
    assert run is not None
    asked = CommandRequest(**({"name": "gc_collect"} | request))
    return make_record(asked, run, lambda _rank: True, issuer, 100 * S, 60.0)


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
        ({"runs": FakeRuns(0)}, "no rank yet"),
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


def test_several_ranks_agree_on_a_step_for_what_needs_it() -> None:
    record: CommandRecord = make(name="set_batch_size", params={"batch_size": 8})
    assert record.agreement is not None
    assert make(name="empty_cache", ranks=[1]).agreement is None
    runs = FakeRuns(2)
    runs.from_start[1] = False
    record = make(name="empty_cache", runs=runs)
    assert record.agreement is None
    assert record.note.startswith("Each rank runs it at the end of its own next step")
    with pytest.raises(VramscopeError, match="expected 'all', because stop"):
        make(name="stop", ranks=[0, 1])


SET_LR = UserCommand(
    "user.set_lr",
    right="control",
    same_step=True,
    params=[UserParam("lr", "float", least=0.0), UserParam("warm", "bool", default=False)],
)
SHOW = UserCommand("user.show", right="view")


NOTE = UserCommand("user.note", params=[UserParam("n", "int"), UserParam("text", "str")])


def job_with_commands() -> FakeRuns:
    runs = FakeRuns(2)
    runs.declared = {rank: [SET_LR, SHOW, NOTE] for rank in (0, 1)}
    return runs


def test_a_command_of_the_job_has_its_own_values_right_and_step() -> None:
    runs = job_with_commands()
    record: CommandRecord = make(name="user.set_lr", runs=runs, params={"lr": 1})
    assert record.params == {"lr": 1.0, "warm": False}
    assert record.agreement is not None
    assert make(VIEWER, name="user.show", runs=runs).agreement is None
    with pytest.raises(VramscopeError) as refused:
        make(VIEWER, name="user.set_lr", runs=runs, params={"lr": 1})
    assert refused.value.code == FORBIDDEN


def test_a_command_of_the_job_that_changes_training_needs_consent_and_the_same_step() -> None:
    anew = UserCommand("user.anew", same_step=True, changes_training=True)
    runs = FakeRuns(2)
    runs.declared = {rank: [anew, SHOW] for rank in (0, 1)}
    assert make(name="user.anew", runs=runs).agreement is not None
    with pytest.raises(VramscopeError, match="changes training, got false") as refused:
        make(name="user.anew", runs=runs, may_change_training=False)
    assert refused.value.code == BAD_REQUEST
    make(name="user.show", runs=runs, may_change_training=False)
    runs.from_start[1] = False
    with pytest.raises(VramscopeError, match="has to run at the same step on all ranks"):
        make(name="user.anew", runs=runs)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"name": "user.nope"}, "no command named 'user.nope' on ranks 0 and 1"),
        ({"name": "user.set_lr"}, "lr: expected a value, got 'none'"),
        ({"name": "user.set_lr", "params": {"lr": -1}}, "lr: expected at least 0"),
        ({"name": "user.set_lr", "params": {"lr": 1, "x": 1}}, "got 'x'"),
        ({"name": "user.show", "dry_run": True}, "user.show has no dry run"),
        ({"name": "user.note", "params": {"n": 10**30, "text": ""}}, "fit into a message"),
        ({"name": "user.note", "params": {"n": 1, "text": "\ud800"}}, "fit into a message"),
    ],
)
def test_values_of_a_command_of_the_job_are_checked(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(VramscopeError, match=message) as refused:
        make(runs=job_with_commands(), **request_)
    assert refused.value.code == BAD_REQUEST
