"""The demo's real processes in a real browser: watch the line grow, free the cache, see it drop."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.support.browser import SLOW_MACHINE_MS
from tests.support.job_process import Api, child_environment, wait_until

pytestmark = [pytest.mark.torch, pytest.mark.browser, pytest.mark.timeout(240)]

ADDRESS = re.compile(r"vramscope: (http://127\.0\.0\.1:\d+)/\?token=(\S+)")


class Demo:
    """``vramscope demo`` as a person starts it."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "vramscope", "demo", "--port", "0", "--no-browser"]
        self.process = subprocess.Popen(
            command,
            env=child_environment(XDG_DATA_HOME=str(folder), XDG_RUNTIME_DIR=str(folder)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = ADDRESS.match(line)
        assert found, f"expected the address of the page, got: {line}"
        self.url, self.token = found.groups()
        self.page_url = f"{self.url}/?token={self.token}"

    def end(self) -> int:
        """Ctrl-C, as a person ends it."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(30)
        finally:
            # Not communicate(): a child that outlives the demo would keep the pipe open.
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
        return self.process.returncode


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    demo = Demo(tmp_path)
    yield demo
    if demo.process.poll() is None:
        demo.end()


def open_run(browser: Browser, demo: Demo, foreign: list[str]) -> Page:
    """A fresh browser profile at the run; requests to elsewhere are noted in ``foreign``."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.set_default_timeout(SLOW_MACHINE_MS)

    def note_foreign(request: Request) -> None:
        if not request.url.startswith((demo.url, "data:", "blob:")):
            foreign.append(request.url)

    page.on("request", note_foreign)
    page.goto(demo.page_url)
    page.get_by_role("link", name="demo").first.click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    return page


def step_shown(page: Page) -> int:
    """The step in the state pill: 0 as long as it names none."""
    text = page.locator(".pill").first.inner_text()
    found = re.search(r"step ([\d,]+)", text)
    return int(found[1].replace(",", "")) if found else 0


def deepest_drop(page: Page, line: str) -> float:
    """Smallest ratio of a point of a line to the point before it, as Plotly draws it."""
    points: list[float | None] = page.evaluate(
        """(line) => {
            const figure = document.querySelector(".js-plotly-plot");
            const trace = figure?.data?.find((trace) => trace.name === line);
            return Array.from(trace?.y ?? []);
        }""",
        line,
    )
    known = [point for point in points if point]
    return min((after / before for before, after in pairwise(known)), default=1.0)


def test_watch_act_and_see_the_effect(demo: Demo, browser: Browser) -> None:
    foreign: list[str] = []
    page = open_run(browser, demo, foreign)
    first = wait_until(lambda: step_shown(page), lambda step: step >= 1, "a first step", 90)
    wait_until(lambda: step_shown(page), lambda step: step > first, "the step count to grow", 60)
    expect(page.locator(".pill").first).to_contain_text(re.compile("emulated", re.I))
    expect(
        page.locator("#chart .scatterlayer, .js-plotly-plot .scatterlayer").first
    ).to_be_visible()

    page.get_by_role("button", name="Free cache…").click()
    dialog = page.get_by_role("dialog")
    confirm = dialog.get_by_role("button", name=re.compile(r"^Free [\d.,]+ [KMG]iB on rank 0$"))
    expect(confirm).to_be_enabled(timeout=SLOW_MACHINE_MS)
    confirm.click()
    expect(page.get_by_label("Receipt", exact=True).get_by_role("heading", level=3)).to_have_text(
        re.compile(r"[\d.,]+ [KMG]iB returned"), timeout=SLOW_MACHINE_MS
    )
    command = next(
        command
        for command in Api(demo.url, demo.token).get("/api/v1/runs/demo/commands")["commands"]
        if command["name"] == "empty_cache" and not command["dry_run"]
    )
    receipt = command["receipts"]["0"]
    assert receipt["state"] == "done"
    assert receipt["returned_bytes"] > 0
    assert command["origin"] == "browser"

    page.get_by_role("button", name="Lines").click()
    page.get_by_role("button", name="Time", exact=True).click()
    dropped_to = receipt["after"]["reserved_bytes"] / receipt["before"]["reserved_bytes"]
    wait_until(
        lambda: deepest_drop(page, "Reserved by PyTorch"),
        lambda ratio: ratio <= dropped_to * 1.01,
        f"reserved to drop to {dropped_to:.0%} on the chart",
        60,
    )

    page.reload()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    wait_until(lambda: step_shown(page), lambda step: step > first, "the page after a reload", 60)

    second = open_run(browser, demo, foreign)
    wait_until(lambda: step_shown(second), lambda step: step > first, "the second browser", 60)
    second.get_by_role("link", name=re.compile("Commands")).first.click()
    expect(second.get_by_text(re.compile(r"[\d.,]+ [KMG]iB returned")).first).to_be_visible()
    assert foreign == []


def test_ctrl_c_ends_all_of_it(demo: Demo) -> None:
    api = Api(demo.url, demo.token)
    run = wait_until(
        lambda: api.get("/api/v1/runs"), lambda runs: bool(runs), "the demo's run", 60
    )[0]
    job_pid = api.get(f"/api/v1/runs/{run['id']}")["ranks"][0]["pid"]
    assert demo.end() in (0, 130)
    assert not Path(f"/proc/{job_pid}").exists()
    wait_until(lambda: _listening(demo.url), lambda up: not up, "the server to be gone", 10)


def _listening(url: str) -> bool:
    try:
        Api(url, "").get("/healthz")
    except OSError:
        return False
    return True
