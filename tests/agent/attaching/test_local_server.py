from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.made_processes import made_process
from vramscope.attaching import local_server
from vramscope.attaching.local_server import page_with_token, server_options
from vramscope.local.runtime_file import LocalServer
from vramscope.processes.process import Ids

SERVER = LocalServer("http://127.0.0.1:8470", "secret", 1)


@pytest.fixture(autouse=True)
def running(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(local_server, "read_local_server", lambda: SERVER)
    monkeypatch.setattr(local_server, "is_healthy", lambda server: True)


def options(environment: dict[str, str], **changes: Any) -> dict[str, str]:
    own = Ids(os.getuid(), os.getuid(), os.getuid())
    return server_options(made_process(**{"uids": own, **changes}), environment)


def test_a_job_with_another_runtime_folder_is_led_to_our_server() -> None:
    assert options({}) == {"url": SERVER.url, "token": SERVER.token}


def test_a_job_that_finds_it_itself_is_told_nothing(tmp_path: Path) -> None:
    # It follows the server when that is started again on another port.
    assert options({"XDG_RUNTIME_DIR": str(tmp_path)}) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"uids": Ids(os.getuid() + 1, os.getuid() + 1, os.getuid() + 1)},
        {"uids": Ids(os.getuid(), os.getuid() + 1, os.getuid())},
        {"same_root": False},
        {"same_pid_namespace": False},
        {"same_net_namespace": False},
        {"same_net_namespace": None},
    ],
)
def test_the_token_goes_to_nobody_else(changes: dict[str, Any]) -> None:
    assert options({}, **changes) == {}


def test_a_server_that_does_not_answer_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server, "is_healthy", lambda server: False)
    assert options({}) == {}
    monkeypatch.setattr(local_server, "read_local_server", lambda: None)
    assert options({}) == {}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8470/runs/a", "http://127.0.0.1:8470/runs/a?token=secret"),
        ("http://127.0.0.1:8470", "http://127.0.0.1:8470?token=secret"),
        ("http://127.0.0.1:8470/runs/a?token=x", "http://127.0.0.1:8470/runs/a?token=x"),
        ("http://127.0.0.1:84700/runs/a", "http://127.0.0.1:84700/runs/a"),
        ("http://elsewhere:8470/runs/a", "http://elsewhere:8470/runs/a"),
        ("", ""),
    ],
)
def test_only_the_page_of_our_own_server_gets_its_token(url: str, shown: str) -> None:
    assert page_with_token(url, SERVER) == shown
    assert page_with_token(url, None) == url
