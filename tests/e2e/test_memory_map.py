"""The map of a running job in a real browser: blocks are live, can be picked, and say what fits."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import profile_page
from tests.support.job_process import REPOSITORY, Api, start, watched_command
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.torch, pytest.mark.browser, pytest.mark.timeout(400)]

JOB = REPOSITORY / "tests/support/jobs/mapped_training.py"
TOKEN = "mapped"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path, token=TOKEN) as server:
        yield server


@pytest.fixture
def job(server: ServerProcess, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    arguments = (str(tmp_path / "segments.json"), "cpu")
    options = ("--emulate", "--capacity=1g")
    command = watched_command(
        JOB, *arguments, url=server.url, token=TOKEN, run="mapped", options=options
    )
    process = start(command)
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def page(browser: Browser, server: ServerProcess) -> Iterator[Page]:
    with profile_page(browser) as page:
        page.goto(f"{server.url}/?token={TOKEN}")
        yield page


def test_blocks_of_a_running_job_are_shown_picked_and_asked_for(
    server: ServerProcess, job: subprocess.Popen[str], page: Page
) -> None:
    api = Api(server.url, TOKEN)
    api.wait_for_run("mapped", lambda run: (run["step"] or 0) > 2, "steps to come", 180)
    assert job.poll() is None
    page.goto(f"{server.url}/runs/mapped/map")
    blocks = page.get_by_role("application", name="Blocks of the memory map")
    expect(blocks).to_be_visible()
    expect(page.locator(".pill")).to_contain_text(re.compile(r"map [\d.]+ Hz|map every"))
    expect(page.locator(".map-legend")).to_contain_text("Parameters")
    expect(page.locator(".map-legend")).to_contain_text("Optimizer state")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Another block like the largest")

    # From block to block by the keyboard, as the rail and the list of blocks say it.
    blocks.focus()
    page.keyboard.press("ArrowRight")
    block = page.get_by_role("region", name="Block")
    expect(block).to_contain_text("Offset in segment0 bytes")
    expect(block).to_contain_text("Requested")
    first = block.inner_text()
    page.keyboard.press("ArrowDown")
    page.get_by_role("button", name="Next block").click()
    expect(block).not_to_have_text(first)
    expect(page.get_by_role("list", name="Blocks in view").locator("li").nth(10)).to_be_attached()

    # A click picks what is drawn there: a row is full at its left edge.
    box = blocks.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 3, box["y"] + 5)
    expect(block).to_contain_text("Offset in segment0 bytes")
    # What is pressed is still there when the next looks have come.
    link = block.get_by_role("link", name="Record the next steps")
    handle = link.element_handle()
    age = block.get_by_text(re.compile(r" steps? · "))
    for _ in range(2):
        expect(age).not_to_have_text(age.inner_text())
    assert handle is not None
    assert handle.evaluate("link => link.isConnected")
    page.keyboard.press("Escape")
    expect(block).to_contain_text("Pick a block in the map")

    # What is asked for decides what the sentence says.
    request = page.get_by_label("Size of the next request")
    request.fill("100 GiB")
    sentence = page.get_by_role("heading", level=1)
    expect(sentence).to_contain_text("A request of 100.0 GiB fits nowhere: the largest piece is")
    request.fill("2 MiB")
    expect(sentence).to_contain_text("A request of 2.0 MiB")
    request.fill("much")
    expect(request).to_have_attribute("aria-invalid", "true")

    # Parameters came within its first steps, and grow older while it is looked at.
    page.get_by_role("button", name="Age", exact=True).click()
    expect(page.locator(".map-legend")).to_contain_text("Up to 100 steps")


def test_a_run_that_has_ended_says_so(
    server: ServerProcess, job: subprocess.Popen[str], page: Page
) -> None:
    api = Api(server.url, TOKEN)
    api.wait_for_run("mapped", lambda run: (run["step"] or 0) > 2, "steps to come", 180)
    job.terminate()
    api.wait_for_run("mapped", lambda run: run["state"] != "live", "to end", 180)
    page.goto(f"{server.url}/runs/mapped/map")
    expect(page.get_by_role("region", name="Segments")).to_contain_text(
        re.compile("This run has ended|Contact with this rank is lost")
    )
