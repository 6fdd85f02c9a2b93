"""Several ranks side by side: each by itself as long as they are few."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.page_findings import leak
from tests.support.page_fixture_server import PageFixtureServer
from tests.support.page_scenario import Scenario

pytestmark = pytest.mark.browser

CHART = ".timeline .main-svg"


@pytest.fixture
def server() -> Iterator[PageFixtureServer]:
    eight = Scenario("eight", world_size=8, worst_rank=5, age_s=600)
    eight.findings = [leak(Scenario("leaky", growth_gib=0.003), run=eight.id, rank=5, ranks=[5])]
    nine = Scenario("nine", world_size=9, age_s=300)
    with PageFixtureServer([eight, nine]) as running:
        yield running


def test_each_of_a_few_ranks_has_a_picture_that_leads_to_it(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/eight")
    page.wait_for_selector(CHART)
    pictures = page.get_by_role("region", name="Each rank by itself").get_by_role("button")
    expect(pictures).to_have_count(8)
    expect(pictures.nth(2)).to_have_text(re.compile(r"^rank 2[\d.]+\sGiB left$"))
    worst = pictures.nth(5)
    expect(worst).to_have_attribute("data-tone", "crit")
    expect(worst).to_have_text(re.compile(r"^rank 5▲ [\d.]+\sGiB left$"))
    expect(worst).to_have_accessible_name(re.compile(r"^Rank 5: [\d.]+\sGiB of 139\.8\sGiB at the"))
    expect(worst.locator(".multiple-line")).to_have_attribute("d", re.compile("^M0.0 .*H240.0$"))
    # A picture that is redrawn keeps the focus of whoever goes through them by keyboard.
    line = worst.locator(".multiple-line")
    worst.focus()
    before = line.get_attribute("d") or ""
    expect(line).not_to_have_attribute("d", before)
    expect(worst).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".panel.memory .context")).to_contain_text("cuda:5")
    expect(pictures.first).to_be_hidden()
    assert "rank=5" in page.url


def test_many_ranks_are_left_to_their_page(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/nine")
    page.wait_for_selector(CHART)
    expect(page.locator(".envelope-note").first).to_be_visible()
    expect(page.get_by_role("region", name="Each rank by itself")).to_be_hidden()
