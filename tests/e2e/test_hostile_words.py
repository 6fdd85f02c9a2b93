"""Whatever an agent puts into its words, no view of the page breaks on it or does what it says."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import profile_page
from tests.support.hostile_run import HostileRun
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

TRAPS = {
    "markup and links": (
        "javascript:alert(1)//[x](javascript:alert(2))![y](http://evil.example/z.png)"
        "</script></textarea></svg><img src=x onerror=alert(3)><svg onload=alert(4)>"
        "<a href=javascript:alert(5)>x</a>\"'`${alert(6)}{{7}}<!--"
    ),
    "control characters": (
        "a\x01\x07\x1b[2J\x7f\x9b31m\r\n\u2028\u2029\u202e\u2066b\u061c\ufffe\U0010ffff"
    ),
    "names of the language": "__proto__",
    "long": "e" + "\u0301" * 300 + "\u0645" * 60,
}
VIEWS = ("", "/ranks", "/findings", "/map", "/snapshots", "/commands", "/about")
WATCH = """
window.trapped = [];
for (const name of ["alert", "confirm", "prompt", "open"]) {
  window[name] = () => window.trapped.push(name);
}
document.addEventListener("securitypolicyviolation", (event) => {
  window.trapped.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""
FOUND = """(origin) => {
  const made = "img[src='x'], [onerror], [onload], script:not([src]), base";
  const leads = [...document.querySelectorAll("[href], [src], [action]")].filter((each) => {
    const names = ["href", "src", "action"];
    const text = names.map((name) => each.getAttribute(name)).find((value) => value !== null);
    const url = new URL(text, location.href);
    return url.origin !== origin && url.protocol !== "data:" && url.protocol !== "blob:";
  });
  const found = [...document.querySelectorAll(made), ...leads];
  return found.map((each) => each.outerHTML.slice(0, 200));
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(params=TRAPS)
def run(request: pytest.FixtureRequest, server: ServerProcess) -> Iterator[HostileRun]:
    hostile = HostileRun(server, uuid.uuid4().hex[:12], TRAPS[request.param])
    try:
        hostile.tell()
        # What the server refuses is a word less for the page to show.
        server.request("POST", "/api/v1/policies", hostile.policy())
        yield hostile
    finally:
        hostile.agent.close()


@pytest.fixture
def page(browser: Browser, server: ServerProcess) -> Iterator[Page]:
    with profile_page(browser) as opened:
        opened.add_init_script(WATCH)
        opened.goto(f"{server.url}/?token={server.token}")
        yield opened


def is_harmless(page: Page, server: ServerProcess) -> None:
    """The view is there, and nothing of a trap is more than text."""
    expect(page.locator("main")).not_to_be_empty()
    assert page.evaluate("window.trapped") == []
    found = page.evaluate(FOUND, server.url)
    assert found == []


def test_every_view_shows_it_as_text_and_what_is_asked_for_arrives(
    page: Page, server: ServerProcess, run: HostileRun
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    is_harmless(page, server)  # the list of runs
    for view in (*VIEWS, f"/snapshots/{run.snapshot}", f"/oom/{run.report}"):
        page.goto(f"{server.url}/runs/{run.agent.run.id}{view}", wait_until="networkidle")
        is_harmless(page, server)
    acts_on(page, server, run)
    assert [url for url in asked if not url.startswith((server.url, "data:", "blob:"))] == []


def acts_on(page: Page, server: ServerProcess, run: HostileRun) -> None:
    """A person sends the job's own command, and opens all there is of policies and audit."""
    page.goto(f"{server.url}/runs/{run.agent.run.id}/commands")
    own = page.locator(".command-forms details", has_text="This job's own").locator("li")
    expect(own).to_have_count(1)
    own.get_by_role("button").click()
    dialog = page.locator("dialog")
    expect(dialog).to_contain_text("This changes training")
    is_harmless(page, server)
    primary = dialog.locator(".primary")
    expect(primary).to_be_disabled()
    dialog.locator(".consent input").check()
    primary.click()
    command = run.agent.wait_command()
    assert command.params[run.trap[:64]] == run.trap
    run.agent.update(command, "done", step=50, message=run.trap, result=[run.trap])
    run.agent.wait_acked()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("region", name="Receipt", exact=True)).to_be_visible()
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    is_harmless(page, server)
