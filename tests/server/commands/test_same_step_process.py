"""A real server that goes away while ranks wait for its decision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.scripted_agent import ScriptedAgent, socket_agent
from tests.support.server_process import ServerProcess

PATH = "/api/v1/runs/train/commands"


class Waiting:
    """Two ranks, the first of which is ready for the step of a command."""

    def __init__(self, server: ServerProcess, stack: ExitStack) -> None:
        self.server = server
        self.ranks = [
            stack.enter_context(
                socket_agent(server.url, rank=rank, world_size=2, steps_from_start=True)
            )
            for rank in (0, 1)
        ]
        body = {"name": "empty_cache", "id": "mine"}
        assert server.request("POST", PATH, body).status == 202
        self.at_step = self.asked(self.ranks[1])
        assert self.asked(self.ranks[0]) == self.at_step
        server.wait_until(lambda: self.shown()["agreement"]["prepared"] == 1)

    def asked(self, agent: ScriptedAgent) -> int | None:
        """Take the command; the first rank says that it is ready."""
        command = agent.wait_command()
        if agent.rank.rank == 0:
            agent.prepared(command)
        return command.at_step

    def shown(self) -> dict[str, dict[str, object]]:
        """The command as the API has it."""
        found: dict[str, dict[str, object]] = self.server.get(f"{PATH}/mine")
        return found


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Waiting]:
    with ServerProcess(tmp_path) as server, ExitStack() as stack:
        yield Waiting(server, stack)


def test_a_server_that_is_told_to_end_lets_the_ranks_go_on(waiting: Waiting) -> None:
    assert waiting.server.terminate() == 0
    for agent in waiting.ranks:
        decision = agent.wait_decision()
        assert (decision.id, decision.at_step, decision.run) == ("mine", waiting.at_step, False)
        assert decision.reason == "The server was stopped before it was decided."


def test_a_server_that_was_killed_tells_the_ranks_when_it_is_back(waiting: Waiting) -> None:
    waiting.server.restart()
    for agent in waiting.ranks:
        agent.reconnect()
        decision = agent.wait_decision()
        assert (decision.id, decision.at_step, decision.run) == ("mine", waiting.at_step, False)
        assert decision.reason == "The server was started again before it was decided."
    assert waiting.shown()["agreement"]["decision"] == "drop"
