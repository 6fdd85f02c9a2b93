"""What the reader's system asks for: colours of its own, and a page of one column."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import SLOW_MACHINE_MS
from tests.support.page_findings import MIB, leak
from tests.support.page_fixture_server import PageFixtureServer
from tests.support.page_ooms import oom
from tests.support.page_scenario import GIB, Scenario

pytestmark = pytest.mark.browser

PAINTED = "element => getComputedStyle(element).backgroundColor"
EDGE = "element => getComputedStyle(element).borderBottomColor"
CANVAS = "rgb(0, 0, 0)"


@pytest.fixture
def server() -> Iterator[PageFixtureServer]:
    leaky = Scenario("leaky", tells_phases=True, growth_gib=3.1 * MIB / GIB)
    leaky.findings = [leak(leaky)]
    died = Scenario("died", state="ended", exit_code=1, silent_s=120, age_s=180)
    died.ooms = [oom(died)]
    died.findings = [died.ooms[0]["finding"]]
    with PageFixtureServer([leaky, died]) as running:
        yield running


@pytest.fixture
def forced(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, color_scheme="dark", forced_colors="active"
    )
    page = context.new_page()
    page.set_default_timeout(SLOW_MACHINE_MS)
    yield page
    context.close()


def test_forced_colours_leave_what_is_drawn(forced: Page, server: PageFixtureServer) -> None:
    forced.goto(f"{server.url}/runs/leaky?window=run")
    band = forced.locator(".timeline .band[data-kind=eval]").first
    expect(band).to_be_visible()
    for drawn in (band, forced.locator(".gauge .tick"), forced.locator(".source .guilty")):
        assert drawn.evaluate(PAINTED) not in (CANVAS, "rgba(0, 0, 0, 0)")
    chosen = forced.get_by_role("button", name="Composition").evaluate(PAINTED)
    assert chosen != forced.get_by_role("button", name="Lines").evaluate(PAINTED)
    tabs = forced.locator("#tabs a")
    assert [tab.evaluate(EDGE) == CANVAS for tab in tabs.all()].count(False) == 1
    forced.goto(f"{server.url}/runs/died/oom/{server.scenarios[1].ooms[0]['id']}")
    part = forced.locator(".where-part[data-part=activations]")
    assert part.evaluate(PAINTED) not in (CANVAS, "rgba(0, 0, 0, 0)")


def test_in_one_column_remedies_come_before_threads(page: Page, server: PageFixtureServer) -> None:
    page.set_viewport_size({"width": 900, "height": 1200})
    page.goto(f"{server.url}/runs/died/oom/{server.scenarios[1].ooms[0]['id']}")
    titles = ["The way there", "What would have helped", "Who held it", "PyTorch's own words"]
    tops: list[float] = []
    for title in [*titles, "Threads and state at that moment"]:
        box = page.get_by_role("heading", name=title, exact=True).bounding_box()
        assert box is not None
        tops.append(box["y"])
    assert tops == sorted(tops)


def test_what_happened_is_told_by_step_even_where_only_its_time_is_known(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/leaky")
    found = page.locator(".events li").filter(has_text="Loss graphs kept in a list")
    step = server.scenarios[0].last_step(server.scenarios[0].findings[0]["opened_ns"])
    expect(found.locator(".step")).to_have_text(f"{step:,}")
    assert all(
        text.replace(",", "").isdigit() for text in page.locator(".events .step").all_inner_texts()
    )
