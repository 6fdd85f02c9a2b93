from __future__ import annotations

from typing import Any

import pytest

from tests.support.server_commands import FakeRuns
from vramscope_protocol.errors import BAD_REQUEST, CONFLICT, VramscopeError
from vramscope_protocol.user_commands import UserCommand, UserParam
from vramscope_server.commands.user_declaration import spec_of, user_command

LR = UserCommand("user.set_lr", params=[UserParam("lr", "float")], same_step=True)


def run_of(*declared: list[UserCommand]) -> Any:
    runs = FakeRuns(len(declared))
    runs.declared = dict(enumerate(declared))
    return runs.run("r1")


def test_the_declaration_that_all_ranks_share() -> None:
    run = run_of([LR], [UserCommand("user.other"), LR], [])
    assert user_command("user.set_lr", [0, 1], run) == LR
    spec = spec_of(LR)
    assert (spec.name, spec.right, spec.same_step) == ("user.set_lr", "control", True)
    assert not spec.dry_run
    assert not spec.whole_run


def test_a_rank_that_does_not_declare_it_is_named() -> None:
    with pytest.raises(VramscopeError) as refused:
        user_command("user.set_lr", [0, 1, 2], run_of([LR], [UserCommand("user.other")], []))
    assert refused.value.code == BAD_REQUEST
    assert refused.value.message == (
        "no command named 'user.set_lr' on ranks 1 and 2; the job declares: user.other, user.set_lr"
    )


def test_two_declarations_are_not_one_command() -> None:
    other = UserCommand("user.set_lr", params=[UserParam("lr", "float", default=1.0)])
    with pytest.raises(VramscopeError) as refused:
        user_command("user.set_lr", [0, 1, 2], run_of([LR], [LR], [other]))
    assert refused.value.code == CONFLICT
    assert "rank 2 and rank 0 declare it differently" in refused.value.message
