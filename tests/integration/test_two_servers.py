"""Two servers, each a process of its own, that share a database: policies are for both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.made_policies import policy_body
from tests.support.scripted_agent import ScriptedAgent, socket_agent
from tests.support.server_process import ServerProcess

POLICIES = "/api/v1/policies"


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = ServerProcess(tmp_path / "one"), ServerProcess(tmp_path / "two")
    two.database = one.database
    with one, two:
        yield one, two


@pytest.fixture
def agent(servers: tuple[ServerProcess, ServerProcess]) -> Iterator[ScriptedAgent]:
    """A rank at the second server whose cache is large."""
    with socket_agent(servers[1].url) as agent:
        yield agent


def listed(server: ServerProcess) -> list[tuple[str, bool]]:
    return [(each["name"], each["is_on"]) for each in server.get(POLICIES)["policies"]]


def made(server: ServerProcess, **changes: Any) -> str:
    body = policy_body(when={**policy_body()["when"], "value": 1 << 20}, **changes)
    answer = server.request("POST", POLICIES, body)
    assert answer.status == 201, answer.body
    identity: str = answer.body["id"]
    return identity


def test_a_policy_made_at_one_acts_at_the_other_until_it_is_switched_off(
    servers: tuple[ServerProcess, ServerProcess], agent: ScriptedAgent
) -> None:
    one, two = servers
    policy = made(one, name="here", is_on=True, every_s=10, mode="act")

    def acts() -> list[dict[str, Any]]:
        agent.samples(1)
        agent.wait_acked()
        found: list[dict[str, Any]] = two.get(f"{POLICIES}/{policy}/firings")["firings"]
        return found

    (fired,) = two.wait_until(acts)
    assert fired["command"] == agent.wait_command().name == "empty_cache"
    # Whoever asks the first server is told as well.
    assert one.get(f"{POLICIES}/{policy}/firings")["firings"][0]["run"] == fired["run"]
    one.wait_until(lambda: one.get(f"{POLICIES}/{policy}")["fired"] == 1)
    assert one.request("POST", f"{POLICIES}/{policy}/off").status == 200
    two.wait_until(lambda: listed(two) == [("here", False)])
    assert two.get(f"{POLICIES}/{policy}")["watching"] == []
    assert one.request("DELETE", f"{POLICIES}/{policy}").status == 200
    two.wait_until(lambda: listed(two) == [])


def test_what_was_made_a_moment_ago_at_the_other_is_changed_here(
    servers: tuple[ServerProcess, ServerProcess],
) -> None:
    one, two = servers
    policy = made(one, name="here")
    assert two.request("POST", f"{POLICIES}/{policy}/on").status == 200
    assert two.request("POST", POLICIES, policy_body(name="here")).status == 409
    one.wait_until(lambda: listed(one) == [("here", True)])
