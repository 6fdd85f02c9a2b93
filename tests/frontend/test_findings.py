"""What was found, as the page says it: sentence, cards, evidence in the chart, muting."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.page_findings import MIB, finding, leak, other_process, past
from tests.support.page_fixture_server import PageFixtureServer
from tests.support.page_scenario import GIB, Scenario

pytestmark = pytest.mark.browser

CHART = ".timeline .main-svg"
# A number and its unit are held together by a space that does not break.
LEAKING = re.compile(r"^Leaking 3\.1\sMiB per step at train\.py:56\. Out of memory in")
GROWTH_GIB = 3.1 * MIB / GIB


@pytest.fixture
def server() -> Iterator[PageFixtureServer]:
    leaky = Scenario("leaky", tells_account=True, growth_gib=GROWTH_GIB)
    leaky.findings = [leak(leaky), other_process(leaky), past(leaky)]
    stale = Scenario("stale", growth_gib=GROWTH_GIB, silent_s=48)
    stale.findings = [leak(stale)]
    many = Scenario("many", world_size=64, worst_rank=41, age_s=600)
    many.findings = [leak(leaky, run=many.id, rank=41, ranks=[41])]
    with PageFixtureServer([leaky, stale, many, Scenario("well", tells_account=True)]) as running:
        yield running


def expect_row(page: Page, name: str, numbers: str) -> None:
    """A visible row of the breakdown with both of its numbers."""
    row = page.locator(".breakdown tr:visible").filter(has=page.get_by_text(name, exact=True))
    expect(row).to_contain_text(re.compile(numbers))


def test_the_finding_makes_the_sentence_and_is_drawn_into_the_chart(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/leaky")
    expect(page.locator("h1")).to_have_text(LEAKING)
    expect(page.locator("h1 code")).to_have_text("train.py:56")
    expect(page.locator(".verdict .second")).to_contain_text("Also: 8.4 GiB belong to another")
    expect(page.locator("#announcer")).to_have_text(LEAKING)
    expect(page.locator(".tabs .count.crit")).to_have_text("2")
    page.wait_for_selector(CHART)
    labels = page.locator(".evidence-label")
    expect(labels.filter(has_text="growth starts")).to_contain_text("step 310")
    expect(labels.filter(has_text="+3.1 MiB/step")).to_be_visible()
    expect(labels.filter(has_text=re.compile(r"full in \d+ to \d+ min"))).to_contain_text("step")
    expect(page.locator(".evidence .wedge")).to_have_count(1)
    # Growth of less than a tenth of the axis is shown without what never changes.
    for name in ("Moving part", "Run + forecast"):
        expect(page.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
    expect_row(page, "Grew since warm-up", r"13\.\d13\.\d$")
    drawn = page.evaluate("document.querySelector('.timeline .figure').data.map(t => t.name)")
    assert "Grew since warm-up" in drawn


def test_the_reader_may_choose_another_picture_and_come_back_to_the_evidence(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/leaky?y=full&window=10m")
    page.wait_for_selector(CHART)
    expect(page.locator(".evidence .wedge")).to_have_count(0)
    page.get_by_role("button", name="Evidence").click()
    expect(page.locator(".evidence.pulse .wedge")).to_have_count(1)
    assert "y=moving" in page.url
    assert "window=forecast" in page.url


def test_a_card_says_line_holder_and_remedies(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/leaky")
    card = page.locator(".rail article.finding")
    expect(card.locator("h3")).to_have_text(re.compile("Loss graphs kept in a list"))
    expect(card).to_contain_text(re.compile(r"explains 100\s%.* · 97\s% sure"))
    expect(card.locator(".source .guilty")).to_have_text("56meter.values.append(loss)")
    expect(card.locator(".held-by").first).to_contain_text("Trainer.meter › Meter.values › list")
    expect(card.locator(".remedies li")).to_have_count(2)
    card.get_by_role("button", name="Free the cache, dry run").click()
    expect(page.locator("dialog h2")).to_have_text("Free the cache")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(page.locator(".panel.findings h2")).to_have_text("Finding 2 of 2")
    expect(page.locator(".rail article.finding")).to_contain_text("pid 4123")
    assert "finding=other_process" in page.url


def test_the_page_of_findings_has_open_ones_past_ones_and_their_history(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/leaky")
    expect(page.locator("h1")).to_have_text(LEAKING)
    page.keyboard.press("g")
    page.keyboard.press("f")
    cards = page.locator("section[aria-label=Open] article")
    expect(cards).to_have_count(2)
    expect(page.locator("details summary")).to_contain_text("the cache was flushed 41 times")
    expect(page.get_by_label("History", exact=True).last).to_contain_text("over")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("[data-selected]")).to_contain_text("Another process uses this device")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_selector(CHART)
    assert page.url.endswith("&y=moving#evidence")
    expect(page.locator(".evidence.pulse")).to_have_count(1)


def test_muting_needs_a_reason_and_then_the_next_one_speaks(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/leaky")
    page.get_by_role("button", name="Mute…").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    expect(page.locator("dialog .primary")).to_be_disabled()
    page.get_by_label("Reason, for whoever reads this later").fill("known, fixed in the next run")
    page.get_by_label("This line").check()
    page.keyboard.press("Control+Enter")
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator("h1")).to_have_text(re.compile(r"^8\.4\sGiB belong to another process"))
    assert server.posted[-1] == {
        "mute": {"reason": "known, fixed in the next run", "until": "line"}
    }
    page.click("#tabs >> text=Findings")
    muted = page.locator("section[aria-label=Muted] article")
    expect(muted).to_contain_text("muted for this line in every run of this name by ada@host")
    muted.get_by_role("button", name="Unmute").click()
    expect(page.locator("h1")).to_have_text(LEAKING)


def test_without_the_right_muting_is_off_with_the_reason(
    page: Page, server: PageFixtureServer
) -> None:
    server.scopes.remove("control")
    page.goto(f"{server.url}/runs/leaky")
    button = page.get_by_role("button", name="Mute…")
    expect(button).to_be_disabled()
    expect(button).to_have_attribute("title", re.compile("no control right"))


def test_on_a_narrow_page_the_card_stands_before_the_chart(
    page: Page, server: PageFixtureServer
) -> None:
    page.set_viewport_size({"width": 900, "height": 1300})
    page.goto(f"{server.url}/runs/leaky")
    page.wait_for_selector(CHART)
    card = page.locator(".first-card article").bounding_box()
    chart = page.locator(".timeline").bounding_box()
    assert card is not None
    assert chart is not None
    assert card["y"] + card["height"] < chart["y"]
    expect(page.locator(".stats")).to_be_hidden()
    page.set_viewport_size({"width": 1440, "height": 900})
    expect(page.locator(".rail article.finding")).to_be_visible()
    expect(page.locator(".stats")).to_be_visible()


def test_what_was_known_of_a_stale_run_is_told_as_that(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/stale")
    expect(page.locator("h1")).to_have_text(
        re.compile(r"^Last known: leaking 3\.1\sMiB per step at train\.py:56, \d+\s\w+ ago\.$")
    )
    card = page.locator("article.finding")
    expect(card).to_have_attribute("data-state", "stale")
    expect(card).to_contain_text(re.compile(r"as of \d\d:\d\d:\d\d"))
    page.wait_for_selector(CHART)
    expect(page.locator(".evidence .wedge")).to_have_count(0)


def test_of_many_ranks_the_one_is_named_and_its_evidence_is_its_own(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/many/ranks")
    expect(page.locator(".verdict .second")).to_contain_text("Rank 41 of 64.")
    look = page.locator("table[aria-label='Ranks that need a look'] tbody tr").first
    expect(look).to_contain_text("Loss graphs kept in a list")
    page.click("#tabs >> text=Overview")
    page.wait_for_selector(CHART)
    page.get_by_role("button", name="Evidence").click()
    expect(page.get_by_label("Rank", exact=True)).to_have_value("41")
    expect(page.locator(".evidence-label").filter(has_text="growth starts")).to_be_visible()


def test_nothing_found_says_what_was_looked_for(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/well")
    expect(page.locator("h1")).to_have_text(
        re.compile(r"^Healthy\. 26\.2\sGiB of head-room at the peak, no growth over the last")
    )
    expect(page.get_by_label("Findings", exact=True)).to_contain_text(
        re.compile(r"None open\. Checked \d+ s ago: leak, fragmentation, thrash, other processes")
    )
    well = server.scenarios[-1]
    well.findings.append(finding(well, "agent_degraded", "info", summary="Sampling at 5 Hz."))
    expect(page.locator("article.finding")).to_contain_text("Sampling at 5 Hz.")
    expect(page.locator("h1")).to_contain_text("Healthy.")


def test_the_list_says_what_was_found_and_when_memory_is_full(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(server.url)
    expect(page.locator("h1").first).to_have_text(
        re.compile(r"^2 of 3 live runs will run out of memory: (leaky|many) in \d+ to \d+\smin")
    )
    rows = page.locator(".runs-table tbody tr")
    leaky = rows.filter(has_text="leaky")
    expect(leaky.locator(".says")).to_have_text("⬢Leaking 3.1 MiB per step at train.py:56")
    expect(leaky.locator(".full-in b")).to_have_text(re.compile(r"^\d+ to \d+ min$"))
    expect(rows.filter(has_text="stale").locator(".full-in")).to_have_text("–")
    page.get_by_role("button", name=re.compile("^With findings 3$")).click()
    expect(rows).to_have_count(3)


def test_a_card_is_copied_as_markdown(browser: Browser, server: PageFixtureServer) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{server.url}/runs/leaky/findings")
    page.get_by_role("button", name="Copy as Markdown").first.click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(1)
    text = page.evaluate("navigator.clipboard.readText()")
    context.close()
    assert text.startswith("### Leaking 3.1 MiB per step at train.py:56.")
    assert ">   56  meter.values.append(loss)" in text
    assert f"{server.url}/runs/" in text
