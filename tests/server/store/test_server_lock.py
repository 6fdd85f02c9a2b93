from __future__ import annotations

import threading
from pathlib import Path

from tests.support.commits import WAIT_S
from vramscope_server.store.server_lock import ServerLock


def test_one_at_a_time(tmp_path: Path) -> None:
    first, second = (ServerLock(tmp_path / "db.lock") for _ in range(2))
    assert first.acquire()
    assert not second.acquire(0.1)
    first.release()
    first.release()
    assert second.acquire()
    second.release()


def test_the_lock_is_private(tmp_path: Path) -> None:
    lock = ServerLock(tmp_path / "db.lock")
    assert lock.acquire()
    assert (tmp_path / "db.lock").stat().st_mode & 0o777 == 0o600
    lock.release()


def test_a_server_that_is_ending_is_waited_for(tmp_path: Path) -> None:
    first, second = (ServerLock(tmp_path / "db.lock") for _ in range(2))
    assert first.acquire()
    threading.Timer(0.1, first.release).start()
    assert second.acquire(WAIT_S)
    second.release()
