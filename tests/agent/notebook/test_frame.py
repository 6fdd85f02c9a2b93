from __future__ import annotations

import time
from html.parser import HTMLParser

import pytest

from tests.support.fake_api import FakeApi
from vramscope.cli.problem import Problem
from vramscope.notebook.frame import Frame, frame_html, open_frame
from vramscope.transport.address import parse_address
from vramscope.transport.transport import Target

FRAMES = "POST /api/v1/runs/r1/frames"
FRAME = Frame("/frame/r1", "vs_secret", 1_790_000_000_500_000_000)


class Seen(HTMLParser):
    """What a browser makes of the HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(url: str = "http://127.0.0.1:8470", page_url: str | None = None, **given: str) -> Seen:
    names = {"name": "train", "host": "gpu-3"} | given
    return Seen(frame_html(FRAME, parse_address(url), page_url or url, height_px=500, **names))


def test_the_server_is_asked_for_a_frame_of_the_run() -> None:
    answer = {"path": "/frame/r1", "token": "vs_secret", "expires_ns": 5, "scopes": ["view"]}
    with FakeApi({FRAMES: [(201, answer)]}) as api:
        frame = open_frame(Target(parse_address(api.url), "mine"), "r1", ["view"])
        (line, body, headers), *_ = api.requests
    assert frame == Frame("/frame/r1", "vs_secret", 5)
    assert (line, body) == (FRAMES, {"scopes": ["view"]})
    assert headers["Authorization"] == "Bearer mine"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            (403, {"error": {"code": "forbidden", "message": "expected view, got agent"}}),
            "got agent",
        ),
        ((404, "no such page"), "is not a vramscope server"),
        ((201, {"token": 5}), "knows no frames"),
        ((201, []), "knows no frames"),
    ],
)
def test_why_there_is_none_is_said(answer: tuple[int, object], said: str) -> None:
    with (
        FakeApi({FRAMES: [answer]}) as api,
        pytest.raises(Problem, match=said),
    ):
        open_frame(Target(parse_address(api.url), "mine"), "r1", ["view"])


def test_the_token_is_in_the_fragment_alone() -> None:
    source = FRAME.source("http://127.0.0.1:8470")
    assert source == "http://127.0.0.1:8470/frame/r1#token=vs_secret&until=1790000000"


def test_the_frame_and_the_link_lead_to_the_page() -> None:
    seen = shown()
    frame = next(attributes for tag, attributes in seen.tags if tag == "iframe")
    link = next(attributes for tag, attributes in seen.tags if tag == "a")
    assert frame["src"] == link["href"] == FRAME.source("http://127.0.0.1:8470")
    assert (frame["height"], frame["width"]) == ("500", "100%")
    assert link["target"] == "_blank"


def test_names_are_text() -> None:
    seen = shown(name='<img src=x onerror="a">', host="<b>")
    assert {tag for tag, _ in seen.tags} == {"iframe", "p", "a", "code"}
    assert '<img src=x onerror="a">' in seen.text


def test_how_long_it_lasts_is_said_in_hours() -> None:
    for left_s, hours in ((12 * 3600, 12), (3600, 1), (60, 1)):
        frame = Frame("/frame/r1", "t", time.time_ns() + int(left_s * 1e9))
        address = parse_address("http://127.0.0.1:1")
        html = frame_html(frame, address, address.http_url, name="n", host="h", height_px=500)
        assert f"(for {hours} h)" in html


def test_a_server_of_one_machine_needs_a_forwarded_port_elsewhere() -> None:
    assert "ssh -L 8470:127.0.0.1:8470 gpu-3" in shown().text
    assert "ssh" not in shown("http://box:8470").text
    assert "Your browser has to reach http://box:8470" in shown("http://box:8470").text


def test_a_page_elsewhere_is_where_the_frame_and_the_advice_lead() -> None:
    seen = shown(page_url="http://localhost:9000")
    assert str(seen.tags[0][1]["src"]).startswith("http://localhost:9000/frame/r1#")
    assert "Your browser has to reach http://localhost:9000" in seen.text
