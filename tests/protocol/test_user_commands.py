"""Values for a command that a job declares are checked before the job gets them."""

from __future__ import annotations

from typing import Any

import pytest

from vramscope_protocol.errors import BAD_REQUEST, VramscopeError
from vramscope_protocol.user_commands import UserCommand, UserParam, check_user_params

COMMAND = UserCommand(
    "user.set_lr",
    params=[
        UserParam("lr", "float", least=0, most=1),
        UserParam("warmup", "int", default=10),
        UserParam("schedule", "choice", default="cosine", choices=["cosine", "linear"]),
        UserParam("note", "str", default=""),
        UserParam("restart", "bool", default=False),
    ],
)


def test_what_is_not_given_has_its_default() -> None:
    assert check_user_params(COMMAND, {"lr": 1, "schedule": "linear"}) == {
        "lr": 1.0,
        "warmup": 10,
        "schedule": "linear",
        "note": "",
        "restart": False,
    }


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, "lr: expected a value, got 'none'"),
        ({"lr": "0.1"}, "lr: expected a number, got '0.1'"),
        ({"lr": True}, "lr: expected a number"),
        ({"lr": float("nan")}, "lr: expected a number, got 'nan'"),
        ({"lr": 2}, "lr: expected at most 1, got '2.0'"),
        ({"lr": -1}, "lr: expected at least 0"),
        ({"lr": 0, "warmup": 1.0}, "warmup: expected int"),
        ({"lr": 0, "warmup": True}, "warmup: expected int"),
        ({"lr": 0, "schedule": "step"}, "schedule: expected one of cosine, linear, got 'step'"),
        ({"lr": 0, "note": "x" * 1001}, "note: expected at most 1000 characters"),
        ({"lr": 0, "restart": 1}, "restart: expected bool"),
        ({"lr": 0, "os": "rm"}, "expected some of: lr, warmup, schedule, note, restart; got 'os'"),
    ],
)
def test_what_is_wrong_is_said_with_what_was_expected(
    params: dict[str, Any], expected: str
) -> None:
    with pytest.raises(VramscopeError) as caught:
        check_user_params(COMMAND, params)
    assert caught.value.code == BAD_REQUEST
    assert expected in caught.value.message
    assert caught.value.message.startswith("parameters of user.set_lr: ")
