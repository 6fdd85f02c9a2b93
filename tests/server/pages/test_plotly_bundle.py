from __future__ import annotations

import gzip
import threading

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from vramscope_protocol.errors import VramscopeError
from vramscope_server.pages import plotly_bundle
from vramscope_server.pages.plotly_bundle import PlotlyBundle, plotly_router

SCRIPT = b"window.Plotly = {};" * 100
BUNDLE = PlotlyBundle("7.1.0", SCRIPT, gzip.compress(SCRIPT))
PATH = "/vendor/plotly.min.js"


def client(loads: list[int] | None = None) -> TestClient:
    def load() -> PlotlyBundle:
        if loads is not None:
            loads.append(threading.get_ident())
        return BUNDLE

    app = FastAPI()
    app.include_router(plotly_router(load))
    return TestClient(app)


def test_the_installed_package_has_it() -> None:
    bundle = PlotlyBundle.load()
    assert len(bundle.plain) > 1_000_000
    assert gzip.decompress(bundle.gzipped) == bundle.plain
    assert len(bundle.gzipped) < len(bundle.plain) / 2


def test_without_plotly_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plotly_bundle, "find_spec", lambda _name: None)
    with pytest.raises(VramscopeError, match=r"expected plotly\.min\.js"):
        PlotlyBundle.load()


def test_compressed_for_who_takes_it() -> None:
    zipped = client().get(PATH, headers={"accept-encoding": "gzip"})
    plain = client().get(PATH, headers={"accept-encoding": "identity"})
    assert zipped.headers["content-encoding"] == "gzip"
    assert int(zipped.headers["content-length"]) == len(BUNDLE.gzipped)
    assert "content-encoding" not in plain.headers
    assert zipped.content == plain.content == SCRIPT
    assert zipped.headers["content-type"].startswith("text/javascript")
    assert zipped.headers["etag"] != plain.headers["etag"]


def test_loaded_once_and_not_on_the_event_loop() -> None:
    loads: list[int] = []
    page = client(loads)
    page.get(PATH)
    page.get(PATH)
    assert len(loads) == 1


def test_kept_for_good_under_an_address_that_names_the_version() -> None:
    page = client()
    assert "immutable" in page.get(f"{PATH}?v=7.1.0").headers["cache-control"]
    for query in ("", "?v=6.0.0"):
        assert page.get(PATH + query).headers["cache-control"] == "no-cache"


def test_not_sent_again_to_who_has_it() -> None:
    page = client()
    etag = page.get(PATH).headers["etag"]
    again = page.get(PATH, headers={"if-none-match": f'"old", {etag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert page.get(PATH, headers={"if-none-match": '"old"'}).status_code == 200
