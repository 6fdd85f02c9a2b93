"""From "which line is it?" to the line: record a real job through the page, and look at it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import profile_page
from tests.support.job_process import REPOSITORY, Api, child_environment, watched_command
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.torch, pytest.mark.browser, pytest.mark.timeout(300)]

JOB = REPOSITORY / "tests/support/jobs/leaking_training.py"
LEAK_LINE = next(
    number for number, line in enumerate(JOB.read_text().splitlines(), 1) if "# the leak" in line
)
GUILTY = f"leaking_training.py:{LEAK_LINE} train_step"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path) as running:
        yield running


@pytest.fixture
def job(server: ServerProcess) -> Iterator[str]:
    """A leaking job on an emulated device; the name of its run."""
    command = watched_command(
        JOB,
        url=server.url,
        token=server.token,
        run="leaky",
        # A search for the leak records stacks at a moment of its own.
        options=["--emulate", "--no-explain-growth"],
    )
    process = subprocess.Popen(
        command,
        env=child_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        api = Api(server.url, server.token)
        api.wait_for_run("leaky", lambda run: (run["step"] or 0) >= 2, "a second step", 90)
        yield "leaky"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def page(browser: Browser, server: ServerProcess) -> Iterator[Page]:
    with profile_page(browser) as page:
        page.goto(f"{server.url}/?token={server.token}")
        yield page


def record(page: Page, steps: int) -> None:
    """Record through the dialog, and open what came of it."""
    page.get_by_role("button", name="Record next 3 steps…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Steps").fill(str(steps))
    dialog.get_by_role("button", name="Record on rank 0").click()
    dialog.get_by_role("link", name="Open the snapshot").click()


def test_a_recording_names_the_line_that_leaks(server: ServerProcess, job: str, page: Page) -> None:
    page.goto(f"{server.url}/runs/{job}/snapshots")
    expect(page.get_by_text("No snapshot of this run yet.")).to_be_visible()
    record(page, steps=6)

    expect(page.locator("h1")).to_have_text(re.compile(r"^The peak is [\d.,]+\s(MiB|GiB)"))
    expect(page.locator(".verdict .second")).to_contain_text(
        re.compile(r"of rank 0, [\d,]+ events")
    )
    expect(page.locator(".recording .main-svg").first).to_be_visible()
    expect(page.locator(".icicle .main-svg").first).to_be_visible()
    expect(page.locator(".held")).to_contain_text(GUILTY)
    expect(page.locator(".step-end span").first).to_have_text(re.compile(r"^step [\d,]+ ends$"))

    page.get_by_role("button", name="Compare with…").click()
    grown = page.get_by_role("table", name="Growth by stack")
    expect(grown.locator("tbody tr").first).to_contain_text(GUILTY)
    expect(
        page.get_by_text(re.compile(rf"{GUILTY} grew by [\d.]+ MiB in \d+ more blocks"))
    ).to_be_visible()

    page.keyboard.press("l")
    stacks = page.get_by_role("table", name="Live memory by stack")
    expect(stacks).to_contain_text(GUILTY)
    page.get_by_label("Find in the calls").fill("nobody calls this")
    expect(stacks.locator("tbody tr")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(stacks).to_contain_text(GUILTY)

    page.get_by_role("link", name="All snapshots of this run").click()
    (row,) = (
        page.get_by_role("table", name="Snapshots of this run, newest first")
        .locator("tbody tr")
        .all()
    )
    expect(row).to_contain_text("every event")
    with page.expect_download() as download:
        row.get_by_role("link", name="Download").click()
    assert download.value.path().read_bytes()[:2] == b"\x80\x04", "a pickle of protocol 4"


def test_a_snapshot_without_a_history_says_so_and_shows_sizes(
    server: ServerProcess, job: str, page: Page
) -> None:
    page.goto(f"{server.url}/runs/{job}/snapshots")
    expect(page.locator(".pill")).to_contain_text("step")
    page.keyboard.press("s")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Take a snapshot on rank 0").click()
    dialog.get_by_role("link", name="Open the snapshot").click()
    expect(page.locator("h1")).to_contain_text("who allocated it was not recorded")
    expect(page.get_by_text("No history was recorded with this snapshot")).to_be_visible()
    expect(page.get_by_role("table", name="Live memory by size")).to_contain_text("up to 1 MiB")
    expect(page.get_by_role("link", name="The map shows how the blocks lie.")).to_be_visible()
