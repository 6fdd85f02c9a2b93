from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from vramscope.private_folder import check_private, make_private_folder


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """Privacy must not depend on what the login sets."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_is_only_for_this_user(tmp_path: Path) -> None:
    make_private_folder(str(tmp_path / "runtime" / "vramscope"))
    assert mode(tmp_path / "runtime" / "vramscope") == 0o700
    assert mode(tmp_path / "runtime") == 0o700


def test_a_private_folder_is_taken_with_what_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "vramscope"
    make_private_folder(str(folder))
    (folder / "server.json").write_text("{}")
    make_private_folder(str(folder))
    check_private(str(folder))
    assert (folder / "server.json").read_text() == "{}"


def test_a_folder_beside_the_working_folder_needs_no_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_private_folder("spool")
    assert mode(tmp_path / "spool") == 0o700


@pytest.mark.parametrize("permissions", [0o750, 0o705, 0o701, 0o720, 0o777])
def test_a_folder_that_is_open_to_others_is_refused_and_not_changed(
    tmp_path: Path, permissions: int
) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(permissions)
    with pytest.raises(PermissionError, match="mode 0700") as refused:
        make_private_folder(str(folder))
    assert str(folder) in str(refused.value)
    assert mode(folder) == permissions


def test_a_link_is_refused_even_to_a_private_folder(tmp_path: Path) -> None:
    make_private_folder(str(tmp_path / "private"))
    (tmp_path / "planted").symlink_to(tmp_path / "private")
    with pytest.raises(PermissionError):
        make_private_folder(str(tmp_path / "planted"))
    with pytest.raises(PermissionError):
        check_private(str(tmp_path / "planted"))


def test_a_private_folder_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_private_folder(str(tmp_path / "theirs"))
    somebody_else = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody_else)
    with pytest.raises(PermissionError):
        make_private_folder(str(tmp_path / "theirs"))


def test_a_file_in_its_place_and_nothing_at_all_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch(0o700)
    with pytest.raises(PermissionError):
        make_private_folder(str(tmp_path / "file"))
    with pytest.raises(FileNotFoundError):
        check_private(str(tmp_path / "missing"))
