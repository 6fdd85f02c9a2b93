"""What acts by itself, who did what, and who may: policies, audit log and rights on the page."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.acting_page import ActedRun, acted_run, take
from tests.support.scripted_agent import GIB, ScriptedAgent
from tests.support.server_process import ServerProcess
from vramscope_protocol.messages import Command
from vramscope_server.__main__ import main

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def run(browser: Browser, server: ServerProcess) -> Iterator[ActedRun]:
    with acted_run(browser, server) as opened:
        yield opened


@pytest.fixture
def agent(run: ActedRun) -> ScriptedAgent:
    [only] = run.trains(run.agent())
    return only


def make_policy(page: Page) -> None:
    """Fill the form: free the cache when more than 1 GiB is reserved."""
    page.get_by_role("button", name="New policy…").click()
    dialog = page.locator("dialog")
    dialog.get_by_role("button", name="Make the policy").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Name: a name is needed")
    dialog.get_by_label("Name").fill("Full <b>cache</b>")
    dialog.get_by_label("Series", exact=True).fill("reserved_bytes.all.current")
    dialog.get_by_label("Value").fill("1")
    dialog.get_by_label("For how long").fill("")
    dialog.get_by_role("button", name="Make the policy").click()
    expect(dialog).to_have_count(0)


def fired(agent: ScriptedAgent) -> Command:
    """What the policy sends to a rank that goes on telling the same."""
    deadline_s = time.monotonic() + 30
    while not agent.commands and time.monotonic() < deadline_s:
        agent.samples(5, step=51)
        with contextlib.suppress(TimeoutError):
            agent.receive(0.2)
    return take([agent], "empty_cache")[0]


def test_a_policy_is_made_switched_on_and_fires_as_a_dry_run(
    run: ActedRun, agent: ScriptedAgent
) -> None:
    page = run.page("/commands?show=policies")
    expect(page.locator(".policies")).to_contain_text("No policy watches this run.")
    make_policy(page)
    row = page.locator(".policies li")
    expect(row.locator("b")).to_have_text("Full <b>cache</b>")
    expect(row.locator(".policy-stand")).to_have_text("Off")
    expect(row).to_contain_text("Never fired.")
    row.get_by_role("button", name="Switch on").click()
    expect(row.locator(".policy-stand")).to_have_text("On, dry run only: it logs what it would do")
    command = fired(agent)
    assert command.dry_run
    agent.update(command, "done", step=51, returned_bytes=GIB, message="Would return 1.0 GiB.")
    expect(row).to_contain_text("Fired once")
    row.get_by_role("button", name="Firings").click()
    firing = row.locator("tbody tr").first
    expect(firing).to_contain_text("reserved_bytes.all.current")
    expect(firing).to_contain_text("would return 1.0 GiB on rank 0")
    # It can be changed and taken away again; deleting takes two presses.
    row.get_by_role("button", name="Change…").click()
    dialog = page.locator("dialog")
    expect(dialog.get_by_label("Value")).to_have_value("1")
    dialog.get_by_label("Name").fill("Fuller")
    dialog.get_by_role("button", name="Save the policy").click()
    expect(row.locator("b")).to_have_text("Fuller")
    row.get_by_role("button", name="Delete…").click()
    row.get_by_role("button", name="Delete it?").click()
    expect(page.locator(".policies")).to_contain_text("No policy watches this run.")


def test_what_a_policy_may_not_is_said_in_its_form(run: ActedRun, agent: ScriptedAgent) -> None:
    page = run.page("/commands?show=policies")
    page.get_by_role("button", name="New policy…").click()
    dialog = page.locator("dialog")
    dialog.get_by_label("Name").fill("Pause on a leak")
    dialog.get_by_role("button", name="A finding").click()
    dialog.get_by_label("Kind of finding").select_option("leak")
    dialog.get_by_label("Command").select_option("pause")
    dialog.get_by_role("button", name="Act", exact=True).click()
    consent = dialog.locator(".consent")
    expect(consent).to_contain_text("It may change training without asking.")
    dialog.get_by_role("button", name="Make the policy").click()
    expect(dialog.get_by_role("alert")).to_contain_text("allow_training")
    consent.locator("input").check()
    dialog.get_by_role("button", name="Make the policy").click()
    expect(dialog).to_have_count(0)
    row = page.locator(".policies li")
    expect(row.locator("b")).to_have_text("Pause on a leak")
    policies = run.server.get("/api/v1/policies")["policies"]
    [made] = [policy for policy in policies if policy["name"] == "Pause on a leak"]
    assert made["then"] == {"command": "pause", "params": {"max_s": 60.0}, "ranks": "all"}
    assert (made["is_on"], made["mode"]) == (False, "act")


def test_the_audit_log_is_filtered_and_exported(run: ActedRun, agent: ScriptedAgent) -> None:
    for name, dry_run in (("empty_cache", True), ("gc_collect", False)):
        body = {"name": name, "dry_run": dry_run}
        assert run.server.request("POST", run.commands_path(), body).status == 202
        agent.update(take([agent], name)[0], "done", message="Done.")
    page = run.page("/commands?show=audit")
    rows = page.locator(".audit tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("Free the cachedry run")
    expect(rows.nth(0)).to_contain_text("API, 127.0.0.1")
    page.get_by_label("Command", exact=True).fill("gc_collect")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("Collect garbage")
    exported = download(page, "Export CSV")
    assert [row["what"] for row in csv.DictReader(io.StringIO(exported))] == ["gc_collect"]
    lines = download(page, "JSON lines").splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["gc_collect"]
    page.get_by_label("Who").fill("nobody")
    expect(page.locator(".audit")).to_contain_text("No line fits.")


def download(page: Page, name: str) -> str:
    with page.expect_download() as download:
        page.get_by_role("link", name=name).click()
    return Path(download.value.path()).read_text("utf-8")


def test_who_may_only_look_is_told_how_to_get_the_right(
    run: ActedRun,
    agent: ScriptedAgent,
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    main(["token", "create", "--scope", "view", "--database", run.server.database])
    token = capsys.readouterr().out.strip()
    page = run.page(token=token)
    expect(page.locator(".pill")).to_be_visible()
    agent.samples(5, step=51)
    expect(page.locator(".pill")).to_contain_text("view only")
    expect(page.locator(".verdict .second")).to_contain_text("your token has no control right")
    how = re.compile(r"vramscope token create --scope view,control")
    for button in ("Free cache…", "Take snapshot…"):
        expect(page.get_by_role("button", name=button)).to_be_disabled()
        expect(page.get_by_role("button", name=button)).to_have_attribute("title", how)
    page.goto(f"{run.server.url}/runs/{run.name}/commands?show=policies")
    own = page.locator(".command-forms li", has_text="save").get_by_role("button")
    expect(own).to_be_disabled()
    expect(own).to_have_attribute("title", how)
    expect(page.get_by_role("button", name="New policy…")).to_be_disabled()
    page.get_by_role("button", name="Audit log").click()
    expect(page.locator(".audit")).to_contain_text("The audit log needs the control right.")
    # What only asks is for everybody.
    page.locator(".command-forms summary", has_text="Ask and watch").click()
    row = page.locator(".command-forms li", has_text="Allocator counters")
    expect(row.get_by_role("button")).to_be_enabled()


def test_an_agent_that_only_observes_is_no_matter_of_the_token(run: ActedRun) -> None:
    agent = run.agent()
    agent.rank.allow = "observe"
    run.trains(agent)
    page = run.page()
    button = page.get_by_role("button", name="Free cache…")
    expect(button).to_be_disabled()
    expect(button).to_have_attribute(
        "title", re.compile("VRAMSCOPE_ALLOW=observe.*--allow control")
    )
    expect(page.locator(".verdict .second")).not_to_contain_text("token")


def test_an_agent_without_a_command_says_so_of_that_one_alone(run: ActedRun) -> None:
    agent = run.agent()
    agent.rank.commands.remove("stop")
    run.trains(agent)
    page = run.page("/commands")
    page.locator(".command-forms summary", has_text="Training").click()
    stop = page.locator(".command-forms li", has_text="Stop training")
    expect(stop.get_by_role("button")).to_be_disabled()
    expect(stop).to_contain_text("its list of allowed commands (VRAMSCOPE_ALLOW)")
    pause = page.locator(".command-forms li", has_text="Pause training")
    expect(pause.get_by_role("button")).to_be_enabled()
