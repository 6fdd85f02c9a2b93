"""A real kernel whose cell shows the page of its run, in a real browser, inside a foreign page."""

from __future__ import annotations

import json
import operator
import os
import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

from tests.support.browser import profile_page
from tests.support.fake_server import free_port
from tests.support.foreign_page import ForeignPage
from tests.support.job_process import Api, wait_until
from tests.support.notebook_kernel import Cell, Kernel, kernel
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SHOW = "%load_ext vramscope\n%vramscope"
STEPS = "import time, vramscope\nfor step in range({}):\n    vramscope.step(); time.sleep(0.05)"
TRAIN = """
import torch, vramscope
torch.empty(1 << 26)  # what the cache can give back
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10**9):
    model(torch.ones(64, 256)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 20:
        print("running", flush=True)
"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with profile_page(browser, width=1300) as page:
        yield page


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A runtime and a data folder of their own; the server that lives there ends with the test."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    yield {"XDG_RUNTIME_DIR": str(runtime), "XDG_DATA_HOME": str(tmp_path / "data")}
    file = runtime / "vramscope" / "server.json"
    if file.exists():
        os.kill(json.loads(file.read_text())["pid"], signal.SIGTERM)
        wait_until(file.exists, lambda there: not there, "the local server to end", 20)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path) as server:
        yield server


@pytest.fixture
def watched(server: ServerProcess) -> Iterator[Kernel]:
    """The kernel of a notebook named ``probe``; its agent knows the server."""
    variables = {"VRAMSCOPE_URL": server.url, "VRAMSCOPE_TOKEN": server.token}
    with kernel(JPY_SESSION_NAME="/home/ada/probe.ipynb", **variables) as running:
        yield running


@pytest.fixture
def lab() -> Iterator[ForeignPage]:
    with ForeignPage() as page:
        yield page


def shown_in(page: Page, address: str) -> FrameLocator:
    """The frame of the cell's output in the page at ``address``."""
    page.goto(address)
    return page.frame_locator("iframe").first


def step_of(frame: FrameLocator) -> int:
    """The step in the state pill; 0 as long as it names none."""
    found = re.search(r"step ([\d,]+)", frame.locator(".pill").inner_text())
    return int(found[1].replace(",", "")) if found else 0


def tokens_in(cell: Cell) -> set[str]:
    """Every secret of ours in what is saved of a cell."""
    return set(re.findall(r"vs_[\w-]+", json.dumps(cell.outputs)))


@pytest.mark.torch
def test_a_cell_shows_a_live_page_that_acts_and_needs_no_server_before(
    page: Page, lab: ForeignPage, folders: dict[str, str]
) -> None:
    with kernel(JPY_SESSION_NAME="/home/ada/probe.ipynb", **folders) as watched:
        cell = watched.run("%load_ext vramscope\n%vramscope --emulate --height 700")
        local = json.loads(Path(folders["XDG_RUNTIME_DIR"], "vramscope/server.json").read_text())
        assert len(tokens_in(cell)) == 1
        assert local["token"] not in json.dumps(cell.outputs)
        lab.body = cell.html
        frame = shown_in(page, lab.other_site)
        watched.run(TRAIN, lambda cell: "running" in cell.text)
        first = wait_until(lambda: step_of(frame), lambda step: step > 0, "a first step", 60)
        wait_until(lambda: step_of(frame), lambda step: step > first, "further steps", 60)
        expect(frame.locator(".timeline .main-svg").first).to_be_visible()
        expect(frame.locator(".pill")).to_contain_text("Emulated")

        frame.get_by_role("button", name="Free cache…").click()
        frame.get_by_role("button", name=re.compile(r"^Free [\d.,]+ [KMG]iB on rank 0$")).click()
        receipt = frame.get_by_label("Receipt", exact=True)
        expect(receipt.get_by_role("heading", level=3)).to_have_text(re.compile("returned"))
    commands = Api(local["url"], local["token"]).get("/api/v1/runs/probe/commands")["commands"]
    assert {command["origin"] for command in commands} == {"browser"}
    assert "empty_cache" in {command["name"] for command in commands if not command["dry_run"]}


def test_an_interrupted_cell_leaves_the_page_live(
    page: Page, lab: ForeignPage, watched: Kernel
) -> None:
    lab.body = watched.run(SHOW).html
    frame = shown_in(page, lab.other_site)
    last = 0
    for _ in range(3):
        endless = watched.start(f"print('begun', flush=True)\n{STEPS.format(10**9)}")
        # Before, there is no cell that could be interrupted.
        watched.follow(endless, lambda cell: "begun" in cell.text)
        last = wait_until(lambda: step_of(frame), partial(operator.lt, last + 2), "new steps", 60)
        watched.interrupt()
        assert watched.follow(endless).error == "KeyboardInterrupt"
        expect(frame.locator(".pill")).to_contain_text("Live")


def test_after_a_restart_the_cell_shows_the_new_run_and_the_old_frame_has_ended(
    page: Page, lab: ForeignPage, watched: Kernel, server: ServerProcess
) -> None:
    old = watched.run(SHOW)
    lab.body = old.html
    frame = shown_in(page, lab.other_site)
    watched.run(STEPS.format(5))
    expect(frame.locator(".pill")).to_contain_text("step 5")
    watched.restart()
    expect(frame.locator(".pill")).to_contain_text("Ended")

    new = watched.run(SHOW)
    watched.run(STEPS.format(7))
    lab.body = new.html
    expect(shown_in(page, lab.other_site).locator(".pill")).to_contain_text("step 7")
    runs: list[dict[str, Any]] = server.get("/api/v1/runs")
    assert [(run["name"], run["state"]) for run in runs] == [("probe", "live"), ("probe", "ended")]
    assert len(tokens_in(old) | tokens_in(new)) == 2


def test_running_the_cell_again_is_one_attach(watched: Kernel, server: ServerProcess) -> None:
    first, second = watched.run(SHOW), watched.run("%vramscope")
    assert first.text == second.text == ""
    assert len(server.get("/api/v1/runs")) == 1
    run = server.get("/api/v1/runs/probe")
    assert f"/frame/{run['id']}#" in first.html
    assert f"/frame/{run['id']}#" in second.html
    assert watched.run("%vramscope --detach").error == ""
    server.wait_until(lambda: server.get("/api/v1/runs/probe")["state"] == "ended")


def test_a_cell_can_be_interrupted_while_there_is_no_server_yet(tmp_path: Path) -> None:
    port = free_port()
    variables = {"VRAMSCOPE_URL": f"http://127.0.0.1:{port}", "VRAMSCOPE_TOKEN": "test-token"}
    with kernel(**variables) as watched:
        watched.run("%load_ext vramscope")
        waiting = watched.start("%vramscope")
        said = watched.follow(waiting, lambda cell: "trying again" in cell.text)
        assert "no server at" in said.text or "trying again" in said.text
        watched.interrupt()
        assert watched.follow(waiting).error == "KeyboardInterrupt"
        # The agent is there all the same, and finds the server as soon as there is one.
        with ServerProcess(tmp_path, port=port):
            shown = watched.run("%vramscope")
            assert f"http://127.0.0.1:{port}/frame/" in shown.html


def test_a_frame_has_the_rights_of_its_address_and_not_of_who_looks_at_it(
    page: Page, lab: ForeignPage, watched: Kernel, server: ServerProcess
) -> None:
    html = watched.run(SHOW).html
    watched.run(STEPS.format(3))
    page.goto(f"{server.url}/?token={server.token}")  # this browser is signed in from now on
    expect(page.get_by_role("link", name="probe").first).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    lab.body = re.sub(r"vs_[\w-]+", "vs_guess", html)
    for address in (lab.same_site, lab.other_site):
        expect(shown_in(page, address).get_by_role("heading")).to_have_text("This view has ended.")
    lab.body = re.sub(r"until=\d+", "until=1", html)
    asked.clear()
    expect(shown_in(page, lab.same_site).get_by_role("heading")).to_have_text(
        "This view has ended."
    )
    assert [url for url in asked if "/api/" in url] == []

    lab.body = html
    for address in (lab.same_site, lab.other_site):
        expect(shown_in(page, address).locator(".pill")).to_contain_text("step 3")


def test_no_other_page_can_be_framed(
    page: Page, lab: ForeignPage, watched: Kernel, server: ServerProcess
) -> None:
    watched.run(SHOW)
    page.goto(f"{server.url}/?token={server.token}")
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    for path in ("/", "/runs/probe", "/login"):
        lab.body = f'<iframe src="{server.url}{path}"></iframe>'
        page.goto(lab.same_site)
        framed = page.frames[1]
        expect(page.locator("iframe")).to_be_visible()
        assert framed.locator(".topbar").count() == 0
    assert len([text for text in complaints if "frame-ancestors" in text]) == 3


def test_the_frame_stays_within_its_run_when_it_is_used(
    page: Page, lab: ForeignPage, watched: Kernel, server: ServerProcess
) -> None:
    lab.body = watched.run(SHOW).html
    watched.run(STEPS.format(3))
    frame = shown_in(page, lab.other_site)
    frame.get_by_role("link", name="About").click()
    expect(frame.locator("#tabs [aria-current]")).to_have_text("About")
    inside = page.frames[1]
    assert re.search(r"/frame/\w+/about#token=vs_", inside.url)
    assert page.evaluate("history.length") == 2, "about:blank and the page itself"
    for hidden in (".brand", ".search"):
        expect(frame.locator(hidden)).to_be_hidden()
    # The same address in a tab of its own, which has room.
    with page.expect_popup() as opened:
        frame.get_by_role("link", name="Open in a tab").click()
    tab = opened.value
    expect(tab.locator(".pill")).to_contain_text("step 3")
    expect(tab.get_by_role("link", name="Open in a tab")).to_have_count(0)


def test_a_page_that_isolates_itself_can_hold_the_frame(page: Page, watched: Kernel) -> None:
    isolating = {
        "cross-origin-embedder-policy": "require-corp",
        "cross-origin-opener-policy": "same-origin",
    }
    with ForeignPage(isolating) as lab:
        lab.body = watched.run(SHOW).html
        watched.run(STEPS.format(3))
        frame = shown_in(page, lab.other_site)
        expect(frame.locator(".pill")).to_contain_text("step 3")
        assert page.evaluate("crossOriginIsolated")
