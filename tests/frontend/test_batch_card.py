"""The batch advisor's card on a real server, with a job that does what it is asked to."""

from __future__ import annotations

import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.batch_server import can_resize, peak, train
from tests.support.scripted_agent import ScriptedAgent, socket_agent
from tests.support.server_process import ServerProcess
from vramscope_protocol.messages import Command
from vramscope_server.__main__ import main

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

TOKEN = "batch-card"


class Job:
    """Trains a few steps after each change of its batch size.

    Args:
        agent: connected.
        size: of the first steps.
        accumulation: passes of each step.
    """

    def __init__(self, agent: ScriptedAgent, size: int, accumulation: int = 1) -> None:
        self.agent = agent
        self.size = size
        self.accumulation = accumulation
        self.asked: list[Command] = []
        self.next = train(agent, [size] * 12, 1, accumulation)
        self.is_over = threading.Event()

    def run(self) -> None:
        """Answer commands until the connection ends."""
        try:
            while not self.is_over.is_set():
                self._answer(self.agent.wait_command())
        except Exception:
            if not self.is_over.is_set():
                raise

    def _answer(self, command: Command) -> None:
        self.asked.append(command)
        size = command.params["batch_size"]
        verb = "Would change" if command.dry_run else "Changed"
        message = f"{verb} the batch size from {self.size} to {size}."
        self.agent.update(command, "done", step=self.next - 1, message=message)
        if not command.dry_run:
            self.size = size
            self.accumulation = command.params.get("accumulation") or self.accumulation
            self.next = train(self.agent, [size] * 6, self.next, self.accumulation)


@contextmanager
def job_on(folder: Path, accumulation: int = 1) -> Generator[tuple[ServerProcess, Job]]:
    with ServerProcess(folder, token=TOKEN) as server:
        with can_resize(socket_agent(server.url, TOKEN)) as agent:
            job = Job(agent, 8, accumulation)
            thread = threading.Thread(target=job.run, daemon=True)
            thread.start()
            try:
                yield server, job
            finally:
                job.is_over.set()
        thread.join(10)


def opened(page: Page, server: ServerProcess, token: str = TOKEN) -> None:
    page.goto(f"{server.url}/?token={token}")
    page.get_by_role("link", name="train").first.click()
    page.click("#tabs >> text=Commands")


def test_the_advice_is_applied_with_one_click_through_the_ordinary_dialog(
    page: Page, tmp_path: Path
) -> None:
    with job_on(tmp_path) as (server, job):
        opened(page, server)
        card = page.get_by_label("Largest batch", exact=True)
        number = card.locator(".batch-number strong")
        expect(number).to_have_text(re.compile(r"^\d+$"))
        size = int(number.inner_text())
        expect(card).to_contain_text("Steps of one size only: a few probing steps would tell.")
        card.get_by_role("button", name=f"Set {size}…").click()
        dialog = page.locator("dialog")
        field = dialog.get_by_label(re.compile("Samples of one rank"))
        expect(field).to_have_value(str(size))
        assert all(command.dry_run for command in job.asked)
        dialog.get_by_role("button", name="Cancel").click()
        assert job.size == 8


def test_probing_asks_first_says_what_it_costs_and_goes_back_by_itself(
    page: Page, tmp_path: Path
) -> None:
    with job_on(tmp_path) as (server, job):
        opened(page, server)
        card = page.get_by_label("Largest batch", exact=True)
        before = card.locator(".batch-number").inner_text()
        card.get_by_role("button", name="Probe 4 steps with 16…").click()
        dialog = page.locator("dialog")
        expect(dialog).to_contain_text("Would change the batch size from 8 to 16.")
        expect(dialog).to_contain_text("another number of samples")
        assert [command.dry_run for command in job.asked] == [True]
        dialog.get_by_role("button", name="Probe 4 steps with 16 samples").click()
        expect(card.get_by_role("status")).to_have_text(
            re.compile("Probed with 16 samples, and back to 8")
        )
        assert job.size == 8
        expect(card).to_contain_text("two sizes from 8 to 16 samples")
        assert card.locator(".batch-number").inner_text() != before
        assert peak(int(card.locator(".batch-number strong").inner_text())) < 8 << 30


def test_a_size_that_keeps_the_global_batch_comes_first(page: Page, tmp_path: Path) -> None:
    with job_on(tmp_path, accumulation=6) as (server, _):
        opened(page, server)
        card = page.get_by_label("Largest batch", exact=True)
        expect(card.locator(".buttons button").first).to_have_text("Set 24 × 2…")
        expect(card).to_contain_text("as many samples a step as now")


def test_who_may_only_look_sees_the_advice_but_cannot_act(
    page: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with job_on(tmp_path) as (server, _):
        capsys.readouterr()
        main(["token", "create", "--scope", "view", "--database", server.database])
        opened(page, server, capsys.readouterr().out.strip())
        card = page.get_by_label("Largest batch", exact=True)
        expect(card.locator(".batch-number strong")).to_have_text(re.compile(r"^\d+$"))
        expect(card.locator(".buttons button").first).to_be_disabled()
        expect(card).to_contain_text("your token has no control right")
