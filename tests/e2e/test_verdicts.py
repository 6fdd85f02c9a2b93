"""A real job that leaks until it dies, as a person sees it: the line, the chart, the report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.job_process import REPOSITORY, start, watched_command
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.torch, pytest.mark.browser, pytest.mark.timeout(400)]

JOB = REPOSITORY / "tests/support/jobs/leaking_to_death.py"
TOKEN = "verdicts"
LINE = next(
    number for number, text in enumerate(JOB.read_text().splitlines(), 1) if "# the leak" in text
)


def test_a_leak_is_led_to_its_line_and_its_end_to_a_report(page: Page, tmp_path: Path) -> None:
    options = ("--emulate", "--capacity=96MiB")
    with ServerProcess(tmp_path, token=TOKEN) as server:
        command = watched_command(JOB, url=server.url, token=TOKEN, run="leak", options=options)
        job = start(command, VRAMSCOPE_SPOOL_DIR=str(tmp_path / "spool"))
        try:
            page.goto(f"{server.url}/?token={TOKEN}")
            page.get_by_role("link", name="leak").first.click()
            heading = page.locator("h1")
            expect(heading).to_have_text(
                re.compile(r"^Leaking 0\.5\sMiB per step at leaking_to_death\.py:\d+\."),
            )
            card = page.locator(".rail article.finding")
            expect(card).to_contain_text("Meter.values")
            expect(
                page.locator(".evidence-label").filter(has_text="growth starts")
            ).to_contain_text("step 5")
            expect(page.locator(".panel.findings .severity-tag")).to_have_text("critical")
            expect(page.locator("#tabs a.died")).to_have_count(1)
            page.locator("#tabs a.died").click()
            expect(heading).to_have_text(re.compile("^Out of memory at step"))
            expect(page.locator(".where-asked")).to_be_visible()
            expect(page.locator(".way-chart .main-svg").first).to_be_visible()
            stack = page.locator("details[open] .stack")
            expect(stack).to_contain_text("leaking_to_death.py")
            page.click("#tabs >> text=Findings")
            leak = page.locator("article.finding").filter(has_text="Leaking 0.5")
            expect(leak).to_contain_text(f"leaking_to_death.py:{LINE}")
        finally:
            job.kill()
            job.communicate()
