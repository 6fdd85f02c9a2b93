"""Restarts, lost ranks and phases as the page shows them, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.support.page_fixture_server import PageFixtureServer
from tests.support.page_scenario import Scenario

pytestmark = pytest.mark.browser

CHART = ".timeline .main-svg"
XS = "document.querySelector('.figure').data[0].x"


@pytest.fixture
def server() -> Iterator[PageFixtureServer]:
    scenarios = [
        Scenario("job", age_s=900, restarted_ago_s=(300.0,), tells_phases=True),
        Scenario("four", world_size=4, lost_ranks=(2,), age_s=600),
    ]
    with PageFixtureServer(scenarios) as running:
        yield running


def test_steps_that_count_anew_go_on_behind_the_old_ones(
    page: Page, server: PageFixtureServer
) -> None:
    scenario = server.scenarios[0]
    page.goto(f"{server.url}/runs/job?window=run")
    page.wait_for_selector(CHART)
    expect(page.locator(".verdict")).to_contain_text(re.compile(r"Restarted: pid 4100 → 4278, at"))
    before = scenario.step_rows(1, 1 << 40, 0, life=0)["step"][-1]
    # Live rows of the new process appear although their numbers were all used before.
    last = page.evaluate(f"{XS}.at(-1)")
    assert last > before + 100
    page.wait_for_function(f"() => {XS}.at(-1) > {last} + 2")
    xs = page.evaluate(XS)[:-1]  # the last one only closes the step function
    assert all(a < b for a, b in pairwise(xs))
    expect(page.locator(".cut")).to_have_count(1)
    expect(page.locator(".mark[data-kind=restart]")).to_have_count(1)
    expect(page.locator(".pill")).to_have_text(re.compile(r"^Live · step [56]\d\d · 10 Hz"))


def test_the_cursor_names_steps_by_the_life_that_they_are_of(
    page: Page, server: PageFixtureServer
) -> None:
    offset = server.scenarios[0].step_rows(1, 1 << 40, 0, life=1)["step_offsets"][1]
    page.goto(f"{server.url}/runs/job?window=run&at={offset + 20}")
    page.wait_for_selector(CHART)
    expect(page.locator(".breakdown th.at")).to_have_text("step 20")
    expect(page.locator(".breakdown").first).to_contain_text("Phase")
    page.goto(f"{server.url}/runs/job?window=run&at={offset - 20}")
    expect(page.locator(".breakdown th.at")).to_have_text(f"step {offset - 20:,}")


def test_zooming_across_a_restart_asks_each_life_for_its_own_steps(
    page: Page, server: PageFixtureServer
) -> None:
    offset = server.scenarios[0].step_rows(1, 1 << 40, 0, life=1)["step_offsets"][1]
    page.goto(f"{server.url}/runs/job?from={offset - 40}&to={offset + 40}")
    page.wait_for_selector(CHART)
    page.wait_for_function(f"() => {XS}.length > 75")
    expect(page.locator(".verdict")).to_contain_text(f"Looking at steps {offset - 40:,} to 40.")
    xs = page.evaluate(XS)
    # None is missing where the old numbers end and the new ones begin.
    assert {round(b - a) for a, b in pairwise(xs[2:-2])} == {1}


def test_phases_are_bands_and_the_crosshair_names_them(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/job?window=run&x=time")
    page.wait_for_selector(CHART)
    bands = page.locator(".band[data-kind=eval]")
    expect(bands.first).to_have_attribute("title", re.compile(r"eval, 18\.7 s, 40 steps"))
    expect(page.locator(".band-name").first).to_have_text("eval")
    box = bands.first.bounding_box()
    surface = page.locator(".surface").bounding_box()
    assert box is not None
    assert surface is not None
    page.mouse.move(box["x"] + box["width"] / 2, surface["y"] + 60)
    expect(page.locator(".chip")).to_contain_text("· eval (18.7 s)")
    expect(page.locator(".breakdown").first).to_contain_text("eval (18.7 s)")
    expect(page.locator(".events")).to_contain_text("Eval, 18.7 s, 40 steps")


def test_a_lost_rank_is_said_marked_and_not_drawn_as_live(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/four")
    expect(page.locator("h1")).to_have_text(
        re.compile(r"^Rank 2 of 4 is lost: nothing heard since")
    )
    page.wait_for_selector(CHART)
    page.get_by_label("Rank", exact=True).select_option("2")
    expect(page.locator(".gap.quiet")).to_contain_text("silent since step")
    expect(page.locator(".mark[data-kind=lost]")).to_have_count(1)
    page.click("#tabs >> text=Ranks")
    lost = page.locator("table[aria-label='All ranks'] .state-mark[data-shape=cross]")
    expect(lost).to_have_text(re.compile(r"^lost at step [\d,]+, without a word$"))
    look = page.locator("table[aria-label='Ranks that need a look'] tbody tr").first
    expect(look).to_contain_text("✕ 2")


def test_about_tells_the_lives_of_the_ranks(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/job/about")
    restarts = page.get_by_label("Restarts")
    expect(restarts).to_contain_text(re.compile(r"Restarted 5 min ago\."))
    expect(restarts.locator("tbody tr")).to_have_count(2)
    expect(restarts).to_contain_text("exit code 1: RuntimeError: NCCL communicator was aborted")
