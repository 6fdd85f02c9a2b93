"""Can these numbers be trusted? The page "About", with a real server and an agent by script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import profile_page
from tests.support.scripted_agent import GIB, ScriptedAgent, socket_agent
from tests.support.server_process import ServerProcess
from vramscope_protocol.account import AgentAccount
from vramscope_protocol.messages import DeviceInfo

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

MIB = 1 << 20


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path) as running:
        yield running


@pytest.fixture
def agent(server: ServerProcess) -> Iterator[ScriptedAgent]:
    agent = socket_agent(server.url, server.token)
    agent.rank.devices.append(DeviceInfo(1, "Second GPU", "GPU-second", 80 * GIB))
    with agent:
        yield agent


@pytest.fixture
def page(browser: Browser, server: ServerProcess) -> Iterator[Page]:
    with profile_page(browser, height=1000) as page:
        page.goto(f"{server.url}/?token={server.token}")
        yield page


def tell(agent: ScriptedAgent, seconds: int, rate_hz: float, since_s: int = 1) -> None:
    """The agent says once a second how it is doing."""
    for second in range(since_s, since_s + seconds):
        agent.status(
            rate_hz,
            AgentAccount(
                elapsed_us=second * 1_000_000,
                cpu_us={"sampler": second * 3000, "transport": second * 1000, "map": second * 500},
                turns=10 * second,
                gil_us=1500 * second,
                sent_bytes=3 * MIB,
                queued_messages=2,
                wanted_rate_hz=10.0,
                budget_fraction=0.005,
            ),
        )


def host_columns(count: int) -> dict[str, Any]:
    values = {
        "host.rss_bytes": 3 * GIB,
        "host.limit_bytes": 16 * GIB,
        "host.limit_used_bytes": 5 * GIB,
        "host.pinned_bytes": 100 * MIB,
        "host.pinned_reserved_bytes": 128 * MIB,
        "host.workers": 2,
        "host.workers_rss_bytes": 1 * GIB,
        "host.workers_shared_bytes": 64 * MIB,
        "reserved_bytes.all.current@1": 7 * GIB,
    }
    return {name: [value] * count for name, value in values.items()}


def test_cost_host_and_devices_are_told_and_a_lowered_rate_makes_the_sentence(
    page: Page, server: ServerProcess, agent: ScriptedAgent
) -> None:
    agent.samples(20, **host_columns(20))
    agent.wait_acked()
    tell(agent, 3, 10.0)
    page.goto(f"{server.url}/runs/{agent.run.name}/about")
    heading = page.locator("h1")
    expect(heading).to_have_text("The picture is whole: nothing was lost, no error of the agent.")
    cost = page.get_by_role("table", name="CPU by part of the agent")
    expect(cost.locator("th")).to_have_text(
        ["Rank", "sampler, %", "transport, %", "map, %", "Budget of the sampler"]
    )
    expect(cost.locator("tbody tr")).to_have_text(["00.3000.1000.0500.50 % of a core"])
    host = page.get_by_role("table", name="Host by rank").locator("tbody td")
    expect(host.nth(1)).to_have_text("3.0 GiB")
    expect(host.nth(2)).to_have_text("–")  # swap: never told
    expect(host.nth(3)).to_have_text("5.0 GiB of 16.0 GiB")
    expect(host.nth(4)).to_have_text("100 MiB of 128 MiB")
    expect(host.nth(7)).to_have_text("2 processes: 1.0 GiB resident, 64.0 MiB shared")
    devices = page.get_by_role("table", name="Devices").locator("tbody tr")
    expect(devices.nth(0)).to_contain_text("in the charts")
    expect(devices.nth(1)).to_contain_text("cuda:1Second GPU")
    expect(devices.nth(1)).to_contain_text("– allocated, 7.0 GiB reserved")

    tell(agent, 15, 2.0, since_s=4)
    expect(heading).to_contain_text("Less is shown than was asked for. Sampling at 2.0 instead")
    card = page.locator(".finding")
    expect(card).to_contain_text("to stay within 0.5 % of a core")
    tell(agent, 30, 10.0, since_s=19)
    expect(heading).to_contain_text("The picture is whole")
    expect(card).to_have_count(0)
    expect(page.locator(".past-finding")).to_have_count(1)
    page.reload()
    expect(page.locator(".past-finding")).to_have_count(1)


def test_what_an_older_agent_does_not_tell_is_a_dash(
    page: Page, server: ServerProcess, agent: ScriptedAgent
) -> None:
    agent.samples(5)
    agent.status(10.0)
    agent.wait_acked()
    page.goto(f"{server.url}/runs/{agent.run.name}/about")
    expect(page.locator("h1")).to_contain_text("The picture is whole")
    row = page.get_by_role("table", name="Cost of watching by rank").locator("tbody td")
    expect(row.nth(1)).to_have_text("10")
    expect(row.nth(3)).to_have_text("–")
    expect(page.get_by_role("table", name="CPU by part of the agent")).to_have_count(0)
    host = page.get_by_role("table", name="Host by rank").locator("tbody td")
    expect(host.nth(1)).to_have_text("–")
