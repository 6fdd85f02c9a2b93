from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from vramscope.attaching import request as request_module
from vramscope.attaching.outcome import AttachError
from vramscope.attaching.request import Request
from vramscope.processes.process import Ids, Process, read_process


@pytest.fixture
def here() -> Process:
    return read_process(os.getpid())


@pytest.fixture
def request_here(here: Process) -> Iterator[Request]:
    with Request(here, {"action": "attach"}, {"arrive.py": "text"}) as made:
        yield made


def test_a_request_is_private_and_gone_at_the_end(here: Process) -> None:
    with Request(here, {"token": "secret"}, {"arrive.py": "text"}) as made:
        folder = Path(made.folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
        assert json.loads((folder / "request.json").read_text()) == {"token": "secret"}
        assert (folder / "arrive.py").read_text() == "text"
        (folder / "left behind").touch()
    assert not folder.exists()


def test_only_one_of_taking_and_cancelling_succeeds(here: Process) -> None:
    with Request(here, {}, {}) as taken:
        os.rename(f"{taken.folder}/request.json", f"{taken.folder}/picked_up")
        assert taken.is_picked_up()
        assert not taken.cancel()
    with Request(here, {}, {}) as cancelled:
        assert cancelled.cancel()
        assert not cancelled.is_picked_up()
        assert not Path(cancelled.folder, "request.json").exists()


def test_the_answer_is_read_once_it_is_there(request_here: Request) -> None:
    assert request_here.answer() is None
    Path(request_here.folder, "answer.json").write_text('{"ok": true, "run_name": "train"}')
    answer = request_here.answer()
    assert answer is not None
    assert (answer.ok, answer.run_name, answer.final) == (True, "train", True)


@pytest.mark.parametrize("text", ["", "{", '{"ok": "yes"}', '{"run_id": "x"}', "null"])
def test_what_is_no_answer_is_not_taken_for_one(request_here: Request, text: str) -> None:
    Path(request_here.folder, "answer.json").write_text(text)
    assert request_here.answer() is None


def test_nothing_is_read_through_what_a_stranger_planted(
    request_here: Request, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "secret.json"
    elsewhere.write_text('{"ok": true}')
    answer = Path(request_here.folder, "answer.json")
    answer.symlink_to(elsewhere)
    assert request_here.answer() is None
    answer.unlink()
    os.mkfifo(answer)  # opening it would wait for a writer for ever
    assert request_here.answer() is None


def test_a_file_of_another_user_is_no_answer(here: Process) -> None:
    stranger = msgspec.structs.replace(here, uids=Ids(*[here.uids.effective + 1] * 3))
    with Request(here, {}, {}) as made:
        Path(made.folder, "answer.json").write_text('{"ok": true}')
        made._process = stranger
        assert made.answer() is None


def test_no_link_is_followed_on_the_way(
    here: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    monkeypatch.setattr(request_module, "_PLACES", (str(tmp_path / "link"), str(real)))
    with Request(here, {}, {}) as made:
        assert made.folder.startswith(f"{real}/")
    monkeypatch.setattr(request_module, "_PLACES", (str(tmp_path / "link"),))
    monkeypatch.chdir(tmp_path / "link")
    with Request(here, {}, {}) as made:  # the working folder's own name has no link in it
        assert made.folder.startswith(f"{real}/")


def test_a_full_disk_is_no_place(
    here: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, room = tmp_path / "full", tmp_path / "room"
    full.mkdir()
    room.mkdir()
    monkeypatch.setattr(request_module, "_PLACES", (str(full), str(room)))
    write, refusals = os.write, [OSError(errno.ENOSPC, "No space left on device")]

    def no_space(file: int, data: bytes) -> int:
        if refusals and data:
            raise refusals.pop()
        return write(file, data)

    monkeypatch.setattr(os, "write", no_space)
    descriptors = len(os.listdir("/proc/self/fd"))
    with Request(here, {}, {"arrive.py": "text"}) as made:
        assert made.folder.startswith(f"{room}/")
        assert Path(made.folder, "arrive.py").read_text() == "text"
    assert list(full.iterdir()) == list(room.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize("name", ["x" * 200, "ü"])
def test_a_working_folder_that_the_line_cannot_name_is_no_place(
    here: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    monkeypatch.setattr(request_module, "_PLACES", ("/nowhere",))
    with pytest.raises(AttachError, match="share no folder"):
        Request(here, {}, {})


def test_without_any_place_the_reason_is_told(
    here: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_module, "_PLACES", ("/nowhere",))
    monkeypatch.setattr(Request, "_working_folder", lambda self: [])
    with pytest.raises(AttachError, match=r"/nowhere: No such file") as raised:
        Request(here, {}, {})
    assert raised.value.kind == "folder"


def test_who_waits_holds_a_lock(request_here: Request) -> None:
    with (
        open(f"{request_here.folder}/client.lock", "rb") as lock,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_root_gives_the_request_to_the_user_of_the_process(here: Process) -> None:
    theirs = msgspec.structs.replace(
        here, uids=Ids(12345, 12345, 12345), gids=Ids(54321, 54321, 54321)
    )
    with Request(theirs, {}, {"arrive.py": ""}) as made:
        folder = Path(made.folder)
        found = {(p.stat().st_uid, p.stat().st_gid) for p in (folder, *folder.iterdir())}
        assert found == {(12345, 54321)}
    assert not folder.exists()
