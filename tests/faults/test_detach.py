"""Watching and leaving the same process again and again piles nothing up in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.fake_server import FakeServer
from tests.support.job_process import REPOSITORY, finish, plain_command, start
from vramscope_protocol.messages import Goodbye

JOB = REPOSITORY / "tests/support/jobs/attached_often.py"

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(("rounds", "options"), [(50, []), (5, ["--emulate"])])
def test_many_rounds_leave_nothing(rounds: int, options: list[str], tmp_path: Path) -> None:
    with FakeServer() as server:
        command = plain_command(JOB, "--rounds", str(rounds), *options)
        environment = {"VRAMSCOPE_URL": server.url, "VRAMSCOPE_TOKEN": server.token}
        code, output, errors = finish(start(command, **environment))
        assert code == 0, errors
        assert len(server.of_type(Goodbye)) == rounds + 3
    assert json.loads(output) == {}
