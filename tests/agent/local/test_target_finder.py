from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from tests.support.fake_api import FakeApi
from vramscope.config import load_config
from vramscope.local.target_finder import TargetFinder
from vramscope.notices import Notices
from vramscope.transport.transport import Target


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "vramscope").mkdir(mode=0o700)
    return tmp_path / "vramscope" / "server.json"


def write(path: Path, url: str) -> None:
    path.write_text(json.dumps({"url": url, "token": "local token", "pid": os.getpid()}))
    path.chmod(0o600)


def finder(**options: object) -> TargetFinder:
    config = load_config({}, local_server=False, **options)
    return TargetFinder(config, Notices(), threading.Event())


def test_the_server_that_was_given_is_the_target(local: Path) -> None:
    given = finder(url="http://box:1", token="t")
    target = given.find()
    assert target is not None
    assert (target.address.http_url, target.token) == ("http://box:1", "t")
    assert given.page_url(target) == "http://box:1"
    assert given.page_url(target, "/runs/r1") == "http://box:1/runs/r1"


def test_the_local_server_is_the_target_with_its_own_token(local: Path) -> None:
    with FakeApi({"GET /healthz": [(200, {})]}) as fake:
        write(local, fake.url)
        found = finder()
        target = found.find()
        assert target is not None
        assert target.token == "local token"
        assert found.page_url(target) == f"{fake.url}/?token=local token"
        assert found.page_url(target, "/runs/r1") == f"{fake.url}/runs/r1?token=local token"
    assert finder().find() is None  # its process lives, but it does not answer


def test_the_local_server_by_its_address_needs_no_token(local: Path) -> None:
    write(local, "http://127.0.0.1:8470")
    by_address = finder(url="http://127.0.0.1:8470").find()
    assert isinstance(by_address, Target)
    assert by_address.token == "local token"
    elsewhere = finder(url="http://127.0.0.1:8471").find()
    assert isinstance(elsewhere, Target)
    assert elsewhere.token == ""
