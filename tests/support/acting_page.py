"""A run of ranks by script on the page of a real server, for a person to act on."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from playwright.sync_api import Browser, Page

from tests.support.browser import profile_page
from tests.support.scripted_agent import COMMANDS, ScriptedAgent, socket_agent
from tests.support.server_process import ServerProcess
from vramscope_protocol.messages import Command
from vramscope_protocol.user_commands import UserCommand, UserParam

ACTING = (*COMMANDS, "set_batch_size", "pause", "resume", "stop", "user.save")
SAVE = UserCommand(
    "user.save",
    "Write a checkpoint now.",
    params=[
        UserParam("name", "str"),
        UserParam("keep", "int", default=3, least=1, most=9),
        UserParam("format", "choice", default="pt", choices=["pt", "safetensors"]),
        UserParam("compress", "bool", default=False),
    ],
)


class ActedRun:
    """A run that no other test knows, on a server that they share."""

    def __init__(self, browser: Browser, server: ServerProcess) -> None:
        self.server = server
        self.name = f"train-{uuid.uuid4().hex[:8]}"
        self._identity = uuid.uuid4().hex[:12]
        self._browser = browser
        self._opened = ExitStack()

    def agent(self, rank: int = 0, world_size: int = 1) -> ScriptedAgent:
        """A rank that accepts everything; not yet connected."""
        agent = socket_agent(
            self.server.url,
            self.server.token,
            rank=rank,
            world_size=world_size,
            run=self.name,
            run_id=self._identity,
        )
        agent.rank.commands = list(ACTING)
        agent.rank.user_commands = [SAVE]
        agent.rank.steps_from_start = True
        return agent

    def trains(self, *agents: ScriptedAgent) -> list[ScriptedAgent]:
        """Connect ranks; samples and 50 steps of each, so that the page has a run to show."""
        for agent in agents:
            self._opened.enter_context(agent)
        for agent in agents:
            agent.samples(5, step=50)
            agent.steps(50)
            agent.wait_acked()
        return list(agents)

    def page(self, path: str = "", token: str | None = None) -> Page:
        """The page of the run, in a profile of its own that is signed in with a token."""
        page = self._opened.enter_context(profile_page(self._browser))
        page.goto(f"{self.server.url}/?token={token or self.server.token}")
        page.goto(f"{self.server.url}/runs/{self.name}{path}")
        return page

    def commands_path(self) -> str:
        """Where the server takes and lists its commands."""
        return f"/api/v1/runs/{self.name}/commands"

    def close(self) -> None:
        """Close the pages, and let the ranks go."""
        self._opened.close()


@contextmanager
def acted_run(browser: Browser, server: ServerProcess) -> Iterator[ActedRun]:
    """A run for one test."""
    run = ActedRun(browser, server)
    try:
        yield run
    finally:
        run.close()


def take(agents: list[ScriptedAgent], name: str) -> list[Command]:
    """The command that each of them is sent."""
    commands = [agent.wait_command() for agent in agents]
    assert {command.name for command in commands} == {name}
    return commands
