"""A range that is marked in the chart leads into the recording that holds it, at that range."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.page_fixture_server import PageFixtureServer
from tests.support.page_scenario import Scenario

pytestmark = pytest.mark.browser

CHART = ".timeline .main-svg"
RECORDED = range(100, 121)


def recording(scenario: Scenario) -> dict[str, Any]:
    """What the server tells of a snapshot with the history of some steps."""
    ends = [(n, int(scenario.started_ns / 1000 + n * scenario.step_s * 1e6)) for n in RECORDED]
    return {
        "id": "recorded",
        "run": scenario.id,
        "rank": 0,
        "device": 0,
        "step": ends[-1][0],
        "taken_ns": ends[-1][1] * 1000,
        "received_ns": ends[-1][1] * 1000,
        "mode": "alloc",
        "stacks": True,
        "origin": "command",
        "name": "",
        "steps": ends,
        "raw_bytes": 1,
        "wire_bytes": 1,
        "received_bytes": 1,
        "sha256": "",
        "state": "complete",
        "reason": "",
    }


@pytest.fixture
def scenario() -> Scenario:
    scenario = Scenario("job", age_s=300, state="ended", exit_code=0)
    scenario.snapshots = [recording(scenario)]
    return scenario


@pytest.fixture
def server(scenario: Scenario) -> Iterator[PageFixtureServer]:
    with PageFixtureServer([scenario]) as running:
        yield running


def mark(page: Page, server: PageFixtureServer, share: tuple[float, float]) -> Locator:
    """Drag over a part of the steps 95 to 135."""
    page.goto(f"{server.url}/runs/job?from=95&to=135")
    page.wait_for_selector(CHART)
    box = page.locator(".surface").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + share[0] * box["width"], box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + share[1] * box["width"], box["y"] + 100, steps=4)
    page.mouse.up()
    return page.get_by_role("dialog", name="Marked range")


def test_a_range_within_a_recording_is_opened_at_that_range(
    page: Page, server: PageFixtureServer, scenario: Scenario
) -> None:
    bar = mark(page, server, (0.25, 0.5))  # steps 105 to 115
    link = bar.get_by_role("link", name="Snapshot of this range")
    expect(bar).not_to_contain_text("recorded.")
    compare = bar.get_by_role("link", name="Compare ends")
    expect(compare).to_have_attribute("href", f"{link.get_attribute('href')}&compare=ends")
    query = parse_qs(urlparse(link.get_attribute("href") or "").query)
    bounds_us = [int(query[name][0]) for name in ("from", "to")]
    expected_us = [scenario.started_ns / 1000 + n * scenario.step_s * 1e6 for n in (105, 115)]
    for bound, expected in zip(bounds_us, expected_us, strict=True):
        assert abs(bound - expected) < 2 * scenario.step_s * 1e6


def test_what_of_a_range_was_recorded_is_said(page: Page, server: PageFixtureServer) -> None:
    bar = mark(page, server, (0.5, 0.9))  # steps 115 to 131
    expect(bar.get_by_role("link", name="Open what was recorded")).to_be_visible()
    expect(bar).to_contain_text(re.compile(r"Of this only steps 11[456] to 120 were recorded\."))


def test_a_range_that_nobody_recorded_has_no_link(page: Page, server: PageFixtureServer) -> None:
    bar = mark(page, server, (0.8, 0.95))  # steps 127 to 133
    expect(bar).to_contain_text("No recording covers this.")
    expect(bar.get_by_role("link")).to_have_count(0)
