"""The page in a real browser, against the stand-in server."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Request, expect

from tests.support.page_commands import finish, new_command
from tests.support.page_fixture_server import PageFixtureServer
from tests.support.page_scenario import Scenario

pytestmark = pytest.mark.browser

CHART = ".timeline .main-svg"


@pytest.fixture
def server() -> Iterator[PageFixtureServer]:
    scenarios = [
        Scenario("job"),
        Scenario("quiet", silent_s=48),
        Scenario("gone", state="lost", silent_s=900),
        Scenario("over", state="ended", exit_code=0, silent_s=900),
        Scenario("pair", world_size=2, age_s=300),
    ]
    with PageFixtureServer(scenarios) as running:
        yield running


def test_no_request_leaves_the_origin_and_the_policy_is_kept(
    page: Page, server: PageFixtureServer
) -> None:
    urls: list[str] = []
    complaints: list[str] = []

    def note(request: Request) -> None:
        urls.append(request.url)

    page.on("request", note)
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(f"{server.url}/runs/job")
    page.wait_for_selector(CHART)
    for name in ("Commands", "About"):
        page.click(f"#tabs >> text={name}")
    page.goto(f"{server.url}/runs/pair/ranks")
    page.wait_for_selector(".heat .main-svg")
    assert any(url.endswith("/vendor/plotly.min.js") for url in urls)
    assert [url for url in urls if not url.startswith((server.url, "data:"))] == []
    assert [text for text in complaints if "Content Security Policy" in text] == []


def test_the_list_tells_states_apart_and_opens_a_run(page: Page, server: PageFixtureServer) -> None:
    page.goto(server.url)
    states = page.locator(".runs-table tbody .state")
    expect(states).to_have_text(["stale", "live", "live", "lost", "ended"])
    page.get_by_placeholder("Filter").fill("gone")
    expect(states).to_have_text(["lost"])
    page.keyboard.press("Enter")
    page.locator(".runs-table a").click()
    expect(page.locator(".pill")).to_contain_text("Lost · silent for")
    expect(page.locator("h1")).to_contain_text("Contact lost at step")
    expect(page.get_by_role("button", name="Free cache…")).to_be_disabled()


def test_the_first_run_appears_by_itself(page: Page, server: PageFixtureServer) -> None:
    waiting = list(server.scenarios)
    server.scenarios.clear()
    page.goto(server.url)
    expect(page.locator("h1").last).to_contain_text("No run yet")
    expect(page.locator(".way pre:visible")).to_have_text(
        [
            "vramscope ps",
            "vramscope run train.py --lr 3e-4",
            "vramscope demo",
            "vramscope replay snapshot.pickle",
        ]
    )
    server.scenarios.extend(waiting)
    expect(page.locator(".runs-table tbody tr")).to_have_count(len(waiting))


def test_the_line_grows_and_the_pill_counts(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/job")
    page.wait_for_selector(CHART)
    expect(page.locator(".pill")).to_have_text(re.compile(r"^Live · step [\d,]+ · 10 Hz"))
    last = "document.querySelector('.figure').data[0].x.at(-1)"
    before = page.evaluate(last)
    page.wait_for_function(f"() => {last} > {before} + 2")


def test_theme_follows_the_system_until_it_is_chosen(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/job")
    page.wait_for_selector(CHART)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Light").click()
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light != dark
    held = (
        "document.querySelector('.figure').data.find(t => t.name == 'Held at step end').fillcolor"
    )
    page.wait_for_function(f"() => {held}.includes('190,194,238')")
    page.reload()
    page.wait_for_selector(CHART)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == light


def test_zoom_asks_for_a_finer_series_and_goes_back(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/job?x=time&window=run")
    page.wait_for_selector(CHART)
    box = page.locator(".surface").bounding_box()
    assert box is not None
    server.paths.clear()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 160, box["y"] + 120, steps=4)
    page.mouse.up()
    bar = page.get_by_role("dialog", name="Marked range")
    expect(bar).to_have_text(re.compile(r"lowest [\d.]+ GiB · highest [\d.]+ GiB · growth"))
    expect(bar).to_contain_text("No recording covers this.")
    expect(bar.get_by_role("button", name="Zoom")).to_be_focused()
    page.keyboard.press("Enter")
    expect(bar).to_be_hidden()
    expect(page.locator(".verdict")).to_contain_text("back to live")
    page.wait_for_function("() => document.querySelector('.figure').data[0].x.length > 200")
    asked = [path for path in server.paths if "/series?" in path and "start_ns=" in path]
    assert asked, server.paths
    assert "from=" in page.url
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    expect(page.locator(".verdict")).not_to_contain_text("back to live")
    assert "from=" not in page.url


def test_the_table_follows_the_cursor_with_exact_bytes(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/job")
    page.wait_for_selector(CHART)
    box = page.locator(".surface").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 200, box["y"] + box["height"] * 0.5)
    expect(page.locator(".breakdown th.at")).to_have_text(re.compile(r"^step [\d,]+$"))
    expect(page.locator(".chip")).to_have_text(re.compile(r"GiB · [\d,]+ bytes"))


def test_a_cut_connection_is_said_and_heals(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/job")
    expect(page.locator(".pill")).to_contain_text("Live")
    server.cut()
    expect(page.locator(".pill")).to_contain_text("Reconnecting")
    expect(page.locator("h1")).to_contain_text("This page is cut off")
    expect(page.get_by_role("button", name="Free cache…")).to_be_disabled()
    expect(page.locator(".pill button")).to_be_visible()
    server.accepts_live = True
    # Without waiting for the button to be in reach: the page may come back by itself first, and
    # then the button is gone.
    page.locator(".pill button").dispatch_event("click")
    expect(page.locator(".pill")).to_contain_text("Live")


def test_a_silent_agent_is_stale_and_an_ended_run_is_not(
    page: Page, server: PageFixtureServer
) -> None:
    page.goto(f"{server.url}/runs/quiet")
    expect(page.locator(".pill")).to_have_text(re.compile(r"^No data for \d+ s · agent not"))
    expect(page.locator("h1")).to_contain_text("Last known: ")
    page.goto(f"{server.url}/runs/over")
    expect(page.locator(".pill")).to_contain_text("Ended · exit 0")


def test_free_the_cache_dry_run_first_then_receipt(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/job")
    page.wait_for_selector(CHART)
    page.get_by_role("button", name="Free cache…").click()
    dialog = page.locator("dialog")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    expect(dialog).to_contain_text("nothing was changed")
    assert [request["dry_run"] for request in server.posted] == [True]
    primary = dialog.locator(".primary")
    expect(primary).to_have_text(re.compile(r"^Free [\d.]+ GiB on rank 0$"))
    page.keyboard.press("Control+Enter")
    expect(dialog).to_have_count(0)
    receipt = page.locator(".rail .receipt")
    expect(receipt).to_contain_text("GiB returned to the device.")
    expect(receipt).to_contain_text("By ada@host from the browser")
    assert [request["dry_run"] for request in server.posted] == [True, False]
    expect(page.locator(".mark[data-kind=command]")).to_have_count(1)
    expect(page.locator(".events")).to_contain_text("Free the cache: ")


def test_a_refusal_gives_its_reason_first(page: Page, server: PageFixtureServer) -> None:
    server.command_outcome = "refused"
    page.goto(f"{server.url}/runs/job")
    page.wait_for_selector(CHART)
    page.keyboard.press("e")
    expect(page.locator("dialog .problem")).to_have_text(
        "Refused: a stream is capturing. Nothing was changed."
    )
    expect(page.locator("dialog .primary")).to_be_disabled()


def test_a_long_answer_scrolls_within_its_card(page: Page, server: PageFixtureServer) -> None:
    scenario = server.scenarios[0]
    command = new_command(
        scenario,
        {"name": "explain_growth", "params": {}, "ranks": [0], "dry_run": False, "deadline_s": 30},
    )
    finish(scenario, command, "done")
    command["receipts"]["0"]["result"] = {"file": "/data/" + "long_name/" * 60, "at": [[1]] * 200}
    scenario.commands[command["id"]] = command
    page.goto(f"{server.url}/runs/{scenario.name}/commands")
    answer = page.get_by_label("Receipt and new command").locator("pre")
    expect(answer).to_contain_text("long_name")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert answer.evaluate("one => one.clientHeight < 500 && one.scrollHeight > 1000")


def test_without_the_right_actions_are_off_with_the_reason(
    page: Page, server: PageFixtureServer
) -> None:
    server.scopes.remove("control")
    page.goto(f"{server.url}/runs/job")
    expect(page.locator(".pill")).to_contain_text("view only")
    button = page.get_by_role("button", name="Free cache…")
    expect(button).to_be_disabled()
    expect(button).to_have_attribute("title", re.compile("no control right"))


def test_a_browser_without_a_token_is_asked_for_one(page: Page, server: PageFixtureServer) -> None:
    server.signed_in = False
    page.goto(server.url)
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_have_text("The token is not known.")
    page.get_by_label("Token").fill("right")
    page.get_by_role("button", name="Open").click()
    expect(page.locator(".runs-table tbody tr")).to_have_count(5)


def test_all_ranks_and_one_of_them(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/pair")
    expect(page.locator("h1")).to_contain_text("All 2 ranks are alike")
    page.wait_for_selector(CHART)
    page.get_by_label("Rank", exact=True).select_option("1")
    expect(page.locator(".panel.memory .context")).to_contain_text("cuda:1")
    assert "rank=1" in page.url
    expect(page.locator(".breakdown").first).to_be_visible()


def test_what_is_drawn_is_there_as_a_table(page: Page, server: PageFixtureServer) -> None:
    page.goto(f"{server.url}/runs/job")
    page.wait_for_selector(CHART)
    figure = page.locator(".timeline .figure")
    expect(figure).to_have_attribute("aria-label", re.compile("Memory over steps: .*head-room"))
    page.get_by_role("button", name="Table").click()
    expect(page.locator(".chart-table th").first).to_have_text("Step")
    assert page.locator(".chart-table tbody tr").count() > 20
