"""A real browser for the tests of a file, and pages in it that must not raise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

# Only against a hang: other tests use the processors as well, and what is right comes at once.
SLOW_MACHINE_MS = 120_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium: it starts once for a file."""
    expect.set_options(timeout=SLOW_MACHINE_MS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page in a profile of its own."""
    with profile_page(browser) as opened:
        yield opened


@contextmanager
def profile_page(browser: Browser, width: int = 1440, height: int = 900) -> Iterator[Page]:
    """A page in a profile of its own; fails if a script in it has raised."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="dark")
    opened = context.new_page()
    opened.set_default_timeout(SLOW_MACHINE_MS)
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    try:
        yield opened
    finally:
        context.close()
    assert errors == []
