from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_api import FakeApi
from vramscope.local.runtime_file import LocalServer, is_healthy, read_local_server, runtime_folder


def write(folder: Path, mode: int = 0o600, **changes: Any) -> Path:
    content = {
        "url": "http://127.0.0.1:8470",
        "token": "secret",
        "pid": os.getpid(),
        "started_ns": 1,
        "version": "0.1.0",
        "from_the_future": True,
    }
    path = folder / "server.json"
    path.write_text(json.dumps({**content, **changes}))
    path.chmod(mode)
    return path


def test_a_private_file_of_a_living_process_is_the_server(tmp_path: Path) -> None:
    write(tmp_path)
    server = read_local_server(tmp_path)
    assert server == LocalServer("http://127.0.0.1:8470", "secret", os.getpid(), 1, "0.1.0")
    assert server is not None
    assert server.address.port == 8470


def test_the_folder_is_the_logins_or_one_of_this_user_in_tmp() -> None:
    assert runtime_folder({"XDG_RUNTIME_DIR": "/run/user/7"}) == Path("/run/user/7/vramscope")
    in_tmp = Path(f"/tmp/vramscope-{os.getuid()}")
    assert runtime_folder({}) == in_tmp
    assert runtime_folder({"XDG_RUNTIME_DIR": "relative"}) == in_tmp


def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": 0o644},
        {"pid": -1},
        {"pid": 10**30},
        {"pid": "one"},
        {"url": "not a url"},
        {"token": None},
    ],
    ids=str,
)
def test_what_cannot_be_trusted_is_no_server(tmp_path: Path, changes: dict[str, Any]) -> None:
    write(tmp_path, **changes)
    assert read_local_server(tmp_path) is None


def test_a_dead_process_a_link_and_nothing_are_no_server(tmp_path: Path) -> None:
    assert read_local_server(tmp_path) is None
    real = write(tmp_path, pid=dead_pid())
    assert read_local_server(tmp_path) is None
    write(tmp_path)
    real.rename(tmp_path / "elsewhere.json")
    real.symlink_to(tmp_path / "elsewhere.json")
    assert read_local_server(tmp_path) is None
    real.unlink()
    os.mkfifo(real, 0o600)
    assert read_local_server(tmp_path) is None
    real.unlink()
    real.write_bytes(b"\xff not json")
    real.chmod(0o600)
    assert read_local_server(tmp_path) is None


def test_health_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with FakeApi({"GET /healthz": [(200, {}), (503, {})]}) as fake:
        server = LocalServer(fake.url, "t", os.getpid())
        assert is_healthy(server)
        assert not is_healthy(server)
    assert not is_healthy(server)
