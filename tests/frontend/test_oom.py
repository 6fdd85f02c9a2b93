"""The report of running out of memory as a page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.page_fixture_server import PageFixtureServer
from tests.support.page_ooms import oom
from tests.support.page_scenario import Scenario

pytestmark = pytest.mark.browser


@pytest.fixture
def server() -> Iterator[PageFixtureServer]:
    died = Scenario("died", state="ended", exit_code=1, silent_s=120, age_s=180)
    died.ooms = [oom(died)]
    died.findings = [died.ooms[0]["finding"]]
    pair = Scenario("pair", world_size=2, age_s=300)
    asked = oom(pair, id="asked", rank=1, source="asked", linked_to="first", is_fatal=False)
    first = oom(pair, id="first", is_fatal=False, recovered_step=32, severity="warning")
    first["siblings"] = [{"id": "asked", "rank": 1, "time_ns": first["time_ns"]}]
    pair.ooms = [first, asked]
    with PageFixtureServer([died, pair]) as running:
        yield running


def test_a_run_that_died_leads_to_its_report(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/died")
    expect(page.locator("h1")).to_have_text(
        "Out of memory at step 31: asked for 198 MiB, the largest piece left was 166 MiB."
    )
    expect(page.locator(".pill")).to_contain_text("Ended · out of memory")
    page.locator("#tabs a").first.click()
    expect(page.locator("#tabs a[aria-current=page]")).to_have_text("Out of memory")
    expect(page.locator(".where-note")).to_have_text("198 MiB in one piece: 32.0 MiB too much")
    expect(page.locator(".where .legend li").last).to_have_text("left 166.0")
    limit = page.locator(".where-limit").bounding_box()
    request = page.locator(".where-asked").bounding_box()
    assert limit is not None
    assert request is not None
    # What was asked for begins before the limit and hangs over it.
    assert request["x"] < limit["x"] < request["x"] + request["width"]
    page.wait_for_selector(".way-chart .main-svg")
    expect(page.locator(".way-chart .figure")).to_have_attribute(
        "aria-label", re.compile("Peaks of 31 steps: allocated from 410 MiB to 2.4 GiB")
    )
    page.get_by_text("Table", exact=True).click()
    rows = page.get_by_role("table", name="The way there, newest first").locator("tbody tr")
    expect(rows).to_have_count(31)
    helped = page.get_by_label("What would have helped", exact=True)
    expect(helped.locator("li")).to_have_text(
        [
            re.compile("^1Bound the size of a batch"),
            re.compile("^2Recompute attention: checkpoint train.py:27"),
            re.compile("^–max_split_size_mb:128Tried in replay: fails at step 33 instead of 31"),
        ]
    )
    held = page.get_by_role("table", name="Live memory by line").locator("tbody tr")
    expect(held.first).to_have_text(re.compile(r"^train\.py:20 forward361,001\.040\s%$"))
    expect(page.locator("details[open] .stack")).to_contain_text("train.py:30  gpt_step")
    expect(page.get_by_label("PyTorch's own words")).to_contain_text("Tried to allocate 198.00 MiB")


def test_reports_are_listed_with_what_came_of_them(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/pair/snapshots")
    rows = page.get_by_role("table", name="Times out of memory, newest first").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("recovered: step 32 ended after it")
    expect(rows.nth(1)).to_contain_text("did not run out; asked because another rank did")
    rows.nth(0).get_by_role("link").click()
    others = page.get_by_label("Other ranks", exact=True)
    others.get_by_role("link", name="rank 1").click()
    expect(page.locator("h1")).to_have_text(
        "Rank 1 did not run out of memory: this is how it stood when another rank did."
    )


def test_a_report_that_is_not_there_is_said_and_the_run_goes_on(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/died/oom/nothing")
    expect(page.locator("h1")).to_have_text("This report could not be read.")
    expect(page.get_by_role("alert").last).to_contain_text("No report of that id.")
    page.click("#tabs >> text=Overview")
    expect(page.locator("h1")).to_contain_text("Out of memory at step 31")
