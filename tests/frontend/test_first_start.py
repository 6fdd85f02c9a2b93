"""First start, and the running jobs of the server's machine, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.page_fixture_server import PageFixtureServer
from tests.support.page_scenario import GIB, Scenario

pytestmark = pytest.mark.browser


def job(pid: int, command: str, **changes: Any) -> dict[str, Any]:
    """A process as the server lists it."""
    return {
        "pid": pid,
        "user": "ada",
        "command": command,
        "python": "3.11",
        "torch": "2.13.0",
        "gpu_bytes": None,
        "gpus": [],
        "attachable": True,
        "why_not": None,
        "fix": None,
        "attached": False,
        "workers": 0,
        "started_ns": 1,
        "container": False,
        "run": None,
    } | changes


@pytest.fixture
def server() -> Iterator[PageFixtureServer]:
    with PageFixtureServer([]) as running:
        yield running


def test_the_running_job_is_found_and_its_command_can_be_copied(
    page: Page, server: PageFixtureServer
) -> None:
    gpu = {"index": 0, "uuid": "GPU-0", "name": "NVIDIA H200", "bytes": 1}
    server.jobs = [job(41327, "python train.py", gpu_bytes=int(61.4 * GIB), gpus=[gpu])]
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(server.url)
    first = page.locator(".way").first
    expect(first).to_contain_text("Found on this machine: python train.py, pid 41327, GPU 0, 61.4")
    first.get_by_role("button", name="Copy").click()
    expect(first.get_by_role("button")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "vramscope attach 41327"
    server.jobs.append(job(7, "python other.py", gpu_bytes=GIB))
    expect(page.locator(".more-jobs")).to_contain_text("vramscope attach 7")


def test_a_job_that_cannot_be_reached_says_why(page: Page, server: PageFixtureServer) -> None:
    server.jobs = [
        job(9, "python a.py", attachable=False, why_not="it belongs to user lin", fix="sudo ..."),
        job(8, "python <b>.py", attached=True),
    ]
    page.goto(server.url)
    expect(page.locator(".more-jobs")).to_contain_text("It belongs to user lin. sudo ...")
    expect(page.locator(".way").first).to_contain_text("Attached already; its run is not on this")
    expect(page.locator(".way").first).to_contain_text("python <b>.py")


def test_without_the_option_nothing_is_asked_and_ps_is_offered(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(server.url)
    expect(page.locator(".way pre").first).to_have_text("vramscope ps")
    server.scenarios.append(Scenario("job"))
    page.get_by_role("button", name="Attach…").click()
    expect(page.locator("dialog pre")).to_have_text(["vramscope ps", "vramscope attach PID"])
    assert not [path for path in server.paths if "machine" in path]


def test_the_list_of_runs_offers_what_runs_and_links_what_is_attached(
    page: Page, server: PageFixtureServer
) -> None:
    scenario = Scenario("job")
    server.scenarios.append(scenario)
    server.jobs = []
    page.goto(server.url)
    page.get_by_role("button", name="Attach…").click()
    dialog = page.locator("dialog")
    expect(dialog).to_contain_text("No training process runs on this machine now.")
    server.jobs = [job(5, "python train.py", attached=True, run={"id": scenario.id, "name": "job"})]
    dialog.get_by_role("link", name="job").click()
    expect(page).to_have_url(re.compile(f"/runs/{scenario.id}$"))
    expect(page.locator("dialog")).to_have_count(0)
    # Nobody looks any more: nobody asks.
    asked = server.paths.count("/api/v1/machine/jobs")
    page.wait_for_function("() => document.querySelector('.pill').textContent.includes('Live')")
    assert server.paths.count("/api/v1/machine/jobs") <= asked + 1


def test_a_list_that_fails_says_so(page: Page, server: PageFixtureServer) -> None:
    server.scenarios.append(Scenario("job"))
    server.jobs = []
    page.route("**/machine/jobs", lambda route: route.fulfill(status=500, body="no"))
    page.goto(server.url)
    page.get_by_role("button", name="Attach…").click()
    expect(page.locator("dialog")).to_contain_text(
        "The processes of this machine: The server answer"
    )
    page.unroute("**/machine/jobs")
    page.locator("dialog").get_by_role("button", name="Retry").click()
    expect(page.locator("dialog")).to_contain_text("No training process runs")


def test_another_machine_gets_its_commands(page: Page, server: PageFixtureServer) -> None:
    page.goto(server.url)
    page.get_by_role("button", name="Make a token").click()
    expect(page.locator(".elsewhere pre")).to_have_text(
        [
            "vramscope token create --scope agent --name other-machine",
            "ssh -N -R 8470:127.0.0.1:8470 OTHER-MACHINE",
            "VRAMSCOPE_TOKEN=TOKEN vramscope run --url http://127.0.0.1:8470 train.py",
        ]
    )
