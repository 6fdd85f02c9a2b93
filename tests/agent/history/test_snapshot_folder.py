"""Files are private, counted, and removed: by their process, or by the next agent."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from vramscope.history.snapshot_folder import SnapshotFolder
from vramscope.outbox.spool import remove_stale_spools


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    folder = SnapshotFolder(str(tmp_path / "spools"), "one-snapshots", 100)
    path = Path(folder.path("abc"))
    assert path == tmp_path / "spools" / "one-snapshots" / "abc.pickle.gz"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    folder.remove()
    assert not path.parent.exists()


def test_what_lies_there_is_counted(tmp_path: Path) -> None:
    folder = SnapshotFolder(str(tmp_path / "spools"), "one-snapshots", 100)
    assert folder.used_bytes() == 0
    Path(folder.path("a")).write_bytes(bytes(30))
    Path(folder.path("b")).write_bytes(bytes(12))
    assert folder.used_bytes() == 42
    folder.remove()
    assert folder.used_bytes() == 0


def test_the_next_agent_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    parent = str(tmp_path / "spools")
    code = (
        "from vramscope.history.snapshot_folder import SnapshotFolder\n"
        f"f = SnapshotFolder({parent!r}, 'dead-snapshots', 100)\n"
        "open(f.path('a'), 'wb').write(b'x')\n"
        "import os; os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    alive = SnapshotFolder(parent, "alive-snapshots", 100)
    kept = Path(alive.path("b"))
    kept.write_bytes(b"y")
    assert remove_stale_spools(parent) == 1
    assert os.listdir(parent) == ["alive-snapshots"]
    assert kept.exists()
    alive.remove()


def test_a_forked_child_leaves_the_files_to_their_owner(tmp_path: Path) -> None:
    folder = SnapshotFolder(str(tmp_path / "spools"), "one-snapshots", 100)
    path = Path(folder.path("a"))
    path.write_bytes(b"x")
    pid = os.fork()
    if pid == 0:
        folder.forget_after_fork()
        folder.remove()
        os._exit(0)
    os.waitpid(pid, 0)
    assert path.exists()
    assert remove_stale_spools(str(tmp_path / "spools")) == 0
    folder.remove()
