from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vramscope_protocol.errors import VramscopeError
from vramscope_server.settings import (
    DEFAULT_SNAPSHOTS_GIB,
    Limits,
    Settings,
    data_folder,
    is_loopback_host,
    snapshot_limits,
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"host": " "}, "--host: expected"),
        ({"port": -1}, "--port: expected a port from 0 to 65535, got -1"),
        ({"port": 65536}, "got 65536"),
        ({"lost_after_s": 0}, "--lost-after-s: expected more than 0, got 0"),
        ({"lost_after_s": float("nan")}, "--lost-after-s"),
        ({"idle_exit_s": -1}, "--idle-exit-s: expected 0 or more, got -1"),
        ({"token": ""}, "--token: expected at least one character"),
        ({"token": " x"}, "--token"),
        ({"host": "0.0.0.0"}, "refusing to listen on 0.0.0.0 without a token"),
        ({"host": "gpu-box.example"}, "refusing to listen"),
        (
            {"host": "0.0.0.0", "token": "t", "allow_attach": True},
            "--allow-attach: expected a server of this machine only, got --host 0.0.0.0",
        ),
    ],
)
def test_what_was_expected_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(VramscopeError, match=message):
        Settings(**options)


def test_a_remote_address_needs_a_token_and_gets_it() -> None:
    assert not Settings(host="0.0.0.0", token="t").is_loopback
    assert not Settings().is_reachable
    assert Settings(host="0.0.0.0", token="t").is_reachable
    assert Settings(allow_hosts=("gpu-box.example",)).is_reachable  # through a proxy


def test_jobs_find_a_server_of_this_machine_unless_it_is_told_to_hide() -> None:
    assert Settings().is_found_by_jobs
    assert not Settings(runtime_file=False).is_found_by_jobs
    assert not Settings(host="0.0.0.0", token="t").is_found_by_jobs


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("LOCALHOST.", True),
        ("app.localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
    ],
)
def test_is_loopback_host(host: str, loopback: bool) -> None:
    assert is_loopback_host(host) is loopback


def test_data_folder_follows_the_environment(tmp_path: Path) -> None:
    assert data_folder({"XDG_DATA_HOME": str(tmp_path)}) == tmp_path / "vramscope"
    assert data_folder({}) == Path.home() / ".local/share/vramscope"
    assert data_folder({"XDG_DATA_HOME": "relative"}) == Path.home() / ".local/share/vramscope"


def test_the_database_is_in_the_data_folder_unless_said_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Settings().database == f"sqlite:///{tmp_path}/vramscope/vramscope.db"
    assert Settings(database_url="sqlite:///x.db").database == "sqlite:///x.db"


def test_snapshots_of_a_run_take_a_quarter_of_all() -> None:
    limits = snapshot_limits(2)
    assert (limits.snapshot_total_bytes, limits.snapshot_run_bytes) == (2 << 30, 1 << 29)
    assert snapshot_limits(DEFAULT_SNAPSHOTS_GIB) == Limits()
    for wrong in (-1.0, float("nan"), 1e9):
        with pytest.raises(VramscopeError, match="--snapshots-gib: expected 0 to"):
            snapshot_limits(wrong)
