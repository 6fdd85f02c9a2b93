"""The page of a real server, and ranks by script that a person acts on."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, Page

from tests.support.scripted_agent import COMMANDS, ScriptedAgent, socket_agent
from tests.support.server_process import ServerProcess
from vramscope_protocol.messages import Command
from vramscope_protocol.user_commands import UserCommand, UserParam

SLOW_MACHINE_MS = 60_000
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


def acting_rank(
    server: ServerProcess, rank: int = 0, world_size: int = 1, **options: Any
) -> ScriptedAgent:
    """A rank that accepts everything, as soon as it is opened."""
    agent = socket_agent(server.url, server.token, rank=rank, world_size=world_size, **options)
    agent.rank.commands = list(ACTING)
    agent.rank.user_commands = [SAVE]
    agent.rank.steps_from_start = True
    return agent


def train(agents: list[ScriptedAgent]) -> None:
    """Samples and 50 steps of every rank, so that the page has a run to show."""
    for agent in agents:
        agent.samples(5, step=50)
        agent.steps(50)
        agent.wait_acked()


def take(agents: list[ScriptedAgent], name: str) -> list[Command]:
    """The command that each of them is sent."""
    commands = [agent.wait_command() for agent in agents]
    assert {command.name for command in commands} == {name}
    return commands


def open_page(browser: Browser, server: ServerProcess, token: str, path: str) -> Page:
    """The page in a profile of its own, signed in with a token."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.set_default_timeout(SLOW_MACHINE_MS)
    page.goto(f"{server.url}/?token={token}")
    page.goto(f"{server.url}{path}")
    return page
