"""The account of a device on the page: categories, exact peaks, parts of steps, the outside."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.page_fixture_server import PageFixtureServer
from tests.support.page_scenario import Scenario

pytestmark = pytest.mark.browser

CHART = ".timeline .main-svg"
TRACES = "document.querySelector('.timeline .figure').data?.map(trace => trace.name)"


@pytest.fixture
def server() -> Iterator[PageFixtureServer]:
    scenarios = [
        Scenario("job", tells_account=True, keeps_gradients=False, others_gib=8.4, driver_gib=0.6),
        Scenario("old"),
        Scenario("many", tells_account=True, world_size=8, worst_rank=3, age_s=900),
    ]
    with PageFixtureServer(scenarios) as running:
        yield running


def expect_row(page: Page, name: str, end: str, peak: str) -> None:
    """A row of the breakdown and its two numbers."""
    label = page.get_by_text(name, exact=True)
    row = page.locator(".breakdown tr:visible").filter(has=label)
    expect(row.locator("td").nth(1)).to_have_text(end)
    expect(row.locator("td").nth(2)).to_have_text(peak)


def test_tensors_are_divided_by_what_they_belong_to(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/job")
    page.wait_for_selector(CHART)
    expect(page.locator(".verdict")).to_contain_text("Every byte is named.")
    expect_row(page, "Parameters", "15.0", "15.0")
    expect_row(page, "Optimizer state", "59.4", "59.4")
    expect_row(page, "Held by the driver", "0.6", "0.6")
    expect_row(page, "Gradients", "15.0", "0.0")
    expect_row(page, "Gradients or activations", "0.0", "15.0")
    page.wait_for_function(f"() => {TRACES}?.includes('Parameters')")
    assert "Held at step end" not in page.evaluate(TRACES)


def test_an_agent_that_tells_no_categories_is_shown_as_before(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/old")
    page.wait_for_selector(CHART)
    expect(page.locator(".breakdown tr:visible").filter(has_text="Held at step end")).to_have_count(
        1
    )
    expect(page.locator(".breakdown tr:visible").filter(has_text="Parameters")).to_have_count(0)
    expect(page.locator(".step-parts")).to_be_hidden()
    expect(page.locator(".verdict")).not_to_contain_text("Every byte")


def test_the_cursor_says_which_part_of_the_step_was_highest(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/job")
    page.wait_for_selector(CHART)
    box = page.locator(".surface").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 200, box["y"] + box["height"] * 0.5)
    expect(page.locator(".breakdown-note").first).to_contain_text("Highest in backward.")
    expect(page.locator(".step-parts tr.highest th")).to_have_text("backward")
    expect(page.locator(".step-parts tr.highest td").first).to_have_text(re.compile(r"^\d+ ms$"))


def test_what_lies_outside_of_pytorch_unfolds(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/job")
    page.wait_for_selector(CHART)
    parts = page.locator(".breakdown tr.part:visible")
    expect(parts).to_have_count(0)
    page.get_by_role("button", name="CUDA context, libraries").click()
    expect(parts.locator("td:first-child")).to_have_text(["CUDA context", "NCCL", "not named"])
    page.get_by_role("button", name="Other processes").focus()
    page.keyboard.press("Enter")
    expect(parts.locator("td:first-child").first).to_have_text("jupyter-lab, pid 991")
    page.get_by_role("button", name="CUDA context, libraries").click()
    expect(parts).to_have_count(1)


def test_a_few_steps_are_shown_by_their_samples(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/job?from=4790&to=4792")
    page.wait_for_selector(CHART)
    expect(page.locator(".step-part")).to_have_count(6)
    expect(page.locator(".step-part").filter(has_text="backward")).to_have_count(2)
    expect(page.locator(".step-part-peak").first).to_contain_text("GiB")
    page.wait_for_function("() => document.querySelector('.figure').data[0].x.some(x => x % 1)")


def test_the_moving_part_begins_above_zero(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/job")
    page.wait_for_selector(CHART)
    bottom = "document.querySelector('.figure').layout.yaxis.range[0]"
    assert page.evaluate(bottom) == 0
    page.keyboard.press("y")
    page.wait_for_function(f"() => {bottom} > 80")
    expect(page.get_by_role("button", name="Moving part")).to_have_attribute("aria-pressed", "true")
    assert "y=moving" in page.url
    page.get_by_role("button", name="Moving part").click()
    page.wait_for_function(f"() => {bottom} == 0")


def test_a_rank_is_set_beside_the_median_by_category(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/many/ranks")
    page.wait_for_selector(".heat .main-svg")
    table = page.get_by_role("table", name="Comparison with the median")
    line = table.locator("tr").filter(has_text="Activations")
    expect(line.locator("td").last).to_have_text(re.compile(r"^\+\d"))
    expect(line.locator(".crit")).to_have_count(1)
    expect(table.locator("tr").filter(has_text="Parameters").locator("td").last).to_have_text("0.0")
    expect(page.get_by_role("table", name="Ranks that need a look")).to_contain_text(
        "Activations +"
    )
