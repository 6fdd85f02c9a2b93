from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest

from vramscope_protocol.errors import VramscopeError
from vramscope_server.runtime_file import RuntimeFile, ServerEntry, runtime_file_path

ENTRY = ServerEntry("http://127.0.0.1:1", "secret", 77, 5, "1.0")


def test_where_it_lies(tmp_path: Path) -> None:
    assert runtime_file_path({"XDG_RUNTIME_DIR": str(tmp_path)}, 5) == (
        tmp_path / "vramscope" / "server.json"
    )
    assert runtime_file_path({}, 5) == Path("/tmp/vramscope-5/server.json")
    assert runtime_file_path({"XDG_RUNTIME_DIR": "rel"}, 5) == Path("/tmp/vramscope-5/server.json")


def test_only_the_owner_can_read_it_even_with_an_open_umask(tmp_path: Path) -> None:
    path = tmp_path / "vramscope" / "server.json"
    before = os.umask(0)
    try:
        RuntimeFile(path).write(ENTRY)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert msgspec.json.decode(path.read_bytes(), type=ServerEntry) == ENTRY
    assert [entry.name for entry in path.parent.iterdir()] == ["server.json"]


def test_a_folder_that_was_open_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "vramscope"
    folder.mkdir(mode=0o755)
    RuntimeFile(folder / "server.json").write(ENTRY)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_of_someone_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(VramscopeError, match="to be a folder of user 12345"):
        RuntimeFile(tmp_path / "vramscope" / "server.json").write(ENTRY)


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir()
    (tmp_path / "vramscope").symlink_to(target)
    with pytest.raises(VramscopeError, match="to be a folder"):
        RuntimeFile(tmp_path / "vramscope" / "server.json").write(ENTRY)
    assert list(target.iterdir()) == []


def test_it_is_removed_at_the_end(tmp_path: Path) -> None:
    file = RuntimeFile(tmp_path / "server.json")
    file.write(ENTRY)
    file.remove()
    file.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_another_server_stays(tmp_path: Path) -> None:
    first, second = RuntimeFile(tmp_path / "server.json"), RuntimeFile(tmp_path / "server.json")
    first.write(ENTRY)
    second.write(ServerEntry("http://127.0.0.1:2", "other", 78, 6, "1.0"))
    first.remove()
    assert b"other" in (tmp_path / "server.json").read_bytes()


def test_what_was_never_written_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text("{}")
    RuntimeFile(tmp_path / "server.json").remove()
    assert (tmp_path / "server.json").exists()
