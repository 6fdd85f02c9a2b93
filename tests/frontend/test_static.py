"""What lies in the folder that the server hands out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vramscope_frontend import INDEX_HTML, STATIC_DIR

SCRIPTS = sorted(STATIC_DIR.rglob("*.js"))
SHEETS = sorted(STATIC_DIR.rglob("*.css"))


def name_of(path: Path) -> str:
    """Path within the folder, as test id."""
    return str(path.relative_to(STATIC_DIR))


def test_everything_that_the_page_refers_to_is_there() -> None:
    html = INDEX_HTML.read_text("utf-8")
    paths = re.findall(r'(?:href|src)="(/static/[^"]+)"', html)
    assert paths
    for path in paths:
        assert (STATIC_DIR / path.removeprefix("/static/")).is_file(), path


def test_the_page_has_no_inline_code() -> None:
    html = INDEX_HTML.read_text("utf-8")
    assert not re.search(r"<script(?![^>]*\ssrc=)", html)
    assert not re.search(r"\s(?:on\w+|style)=", html)


@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
def test_imports_lead_to_files(script: Path) -> None:
    for target in re.findall(r'^import .*?from "([^"]+)";', script.read_text("utf-8"), re.M | re.S):
        assert target.startswith("."), f"expected a relative import, got {target}"
        assert (script.parent / target).is_file(), target


@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
def test_data_never_reaches_the_html_parser(script: Path) -> None:
    text = script.read_text("utf-8")
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert forbidden not in text


@pytest.mark.parametrize("file", [INDEX_HTML, *SCRIPTS, *SHEETS], ids=name_of)
def test_nothing_points_to_another_origin(file: Path) -> None:
    urls = re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s\"'`)]*", file.read_text("utf-8"))
    # The namespace of SVG is a name, not an address that is fetched.
    assert [url for url in urls if not url.startswith("http://www.w3.org/")] == []


def test_both_ways_into_the_light_theme_are_the_same() -> None:
    text = (STATIC_DIR / "css" / "tokens.css").read_text("utf-8")
    chosen = re.search(r':root\[data-theme="light"\] \{(.*?)\}', text, re.S)
    preferred = re.search(r":root:not\(\[data-theme\]\) \{(.*?)\}", text, re.S)
    assert chosen is not None
    assert preferred is not None
    assert chosen[1].split() == preferred[1].split()
