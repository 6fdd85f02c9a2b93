"""A process that uses two devices: the second one in the chart, from its samples."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.page_findings import MIB, leak
from tests.support.page_fixture_server import PageFixtureServer
from tests.support.page_scenario import GIB, Scenario

pytestmark = pytest.mark.browser

CHART = ".timeline .main-svg"
LAST_KNOWN = """() => {
    const [trace] = document.querySelector(".timeline .figure").data;
    return trace.x[trace.y.findLastIndex((y) => y > 0)] ?? 0;
}"""


@pytest.fixture
def server() -> Iterator[PageFixtureServer]:
    pair = Scenario("pair", tells_account=True, age_s=300, second_gib=20.0)
    leaky = Scenario("leaky", growth_gib=3.1 * MIB / GIB, second_gib=20.0)
    leaky.findings = [leak(leaky)]
    many = Scenario("many", world_size=2, age_s=300, second_gib=20.0)
    with PageFixtureServer([pair, leaky, many, Scenario("one", age_s=300)]) as running:
        yield running


def test_the_second_device_is_drawn_from_its_samples(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/pair")
    page.wait_for_selector(CHART)
    devices = page.get_by_label("Device", exact=True)
    expect(devices.locator("option")).to_have_text(["cuda:0", "cuda:1"])
    expect(page.locator(".panel.memory .context")).to_have_text("rank 0 · NVIDIA H200")
    devices.select_option("1")
    expect(page.locator("h1")).to_have_text(
        re.compile(r"^cuda:1 has 53\.6\sGiB \(67\s%\) of head-room at the peak\.$")
    )
    expect(page.locator(".verdict .second")).to_contain_text("Rank 0 uses it beside cuda:0")
    expect(page.locator(".panel.memory .context")).to_have_text("rank 0 · NVIDIA H100")
    expect(page.get_by_role("button", name="Step", exact=True)).to_be_disabled()
    rows = page.locator(".breakdown tr:visible")
    allocated = rows.filter(has=page.get_by_text("Allocated by tensors", exact=True)).last
    expect(allocated).to_contain_text(re.compile(r"2[02]\.022\.0$"))
    used = rows.filter(has=page.get_by_text("Used on the device", exact=True))
    expect(used).to_contain_text("26.0")
    before = page.evaluate(LAST_KNOWN)
    page.wait_for_function(f"() => ({LAST_KNOWN})() > {before} + 6", timeout=20_000)
    assert "device=1" in page.url
    page.reload()
    expect(page.locator("h1")).to_contain_text("cuda:1 has")
    page.get_by_label("Device", exact=True).select_option("")
    expect(page.locator("h1")).to_contain_text("Healthy. ")
    expect(page.get_by_role("button", name="Step", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    assert "device=" not in page.url


def test_a_finding_stays_with_its_device(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/leaky")
    expect(page.locator(".evidence .wedge")).to_have_count(1)
    page.get_by_label("Device", exact=True).select_option("1")
    expect(page.locator(".panel.memory .context")).to_contain_text("NVIDIA H100")
    expect(page.locator("h1")).to_contain_text("Leaking")
    expect(page.locator(".evidence .wedge")).to_have_count(0)
    page.get_by_role("button", name="Evidence").click()
    expect(page.locator(".evidence .wedge")).to_have_count(1)
    expect(page.locator(".panel.memory .context")).to_contain_text("NVIDIA H200")


def test_a_device_is_chosen_only_where_there_are_several(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/one?device=1")
    expect(page.locator("h1")).to_contain_text("Healthy. ")
    expect(page.get_by_label("Device", exact=True)).to_be_hidden()
    page.goto(f"{server.url}/runs/many")
    page.wait_for_selector(CHART)
    expect(page.get_by_label("Device", exact=True)).to_be_hidden()
    page.get_by_label("Rank", exact=True).select_option("1")
    devices = page.get_by_label("Device", exact=True)
    devices.select_option("1")
    expect(page.locator("h1")).to_contain_text("cuda:1 has")
    page.get_by_label("Rank", exact=True).select_option("0")
    expect(devices).to_have_value("")
