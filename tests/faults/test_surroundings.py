"""A machine that lacks what the agent would like to have."""

from __future__ import annotations

from pathlib import Path

from tests.support.fake_server import FakeServer, free_port, wait_until
from tests.support.job_process import finish, start, watched_command
from tests.support.same_job import run_both, write_script

NO_TORCH = """
import sys
sys.modules["torch"] = None
import vramscope
vramscope.step()
try:
    import torch
except ImportError:
    print("no torch")
"""
MUCH = """
import time, vramscope
for number in range(100):
    vramscope.log(**{f"value_{i}": float(i) for i in range(60)})
    vramscope.step()
    time.sleep(0.008)
print("done", flush=True)
"""
AFTERWARDS = """
import os
open("ready", "w").close()
deadline = time.monotonic() + 20
while not os.path.exists("served") and time.monotonic() < deadline:
    time.sleep(0.05)
time.sleep(1)
"""
TINY = ("--outbox-bytes", "32KiB", "--spool-bytes", "32KiB")


def test_no_torch(tmp_path: Path) -> None:
    with FakeServer() as server:
        run_both(write_script(tmp_path, NO_TORCH), server.url, server.token)
        assert [row["step"] for row in server.rows("step")] == [1]


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """No file may grow at all, for the whole process."""
    script = write_script(tmp_path, MUCH)
    url = f"http://127.0.0.1:{free_port()}"
    limit = ("prlimit", "--fsize=0", "--")
    options = (*TINY, "--spool-dir", str(tmp_path / "spool"))
    run_both(script, url, options=options, prefix=limit)
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_spool_folder_that_cannot_be(tmp_path: Path) -> None:
    script = write_script(tmp_path, MUCH)
    (tmp_path / "file").write_text("")
    url = f"http://127.0.0.1:{free_port()}"
    run_both(script, url, options=(*TINY, "--spool-dir", str(tmp_path / "file" / "spool")))
    run_both(script, url, options=(*TINY, "--spool-dir", "/dev/full"))


def test_a_small_spool_keeps_the_newest_and_counts_the_rest(tmp_path: Path) -> None:
    script = write_script(tmp_path, MUCH + AFTERWARDS)
    server = FakeServer(port=free_port())
    options = (*TINY, "--spool-dir", str(tmp_path / "spool"))
    command = watched_command(script, url=server.url, token=server.token, run="r", options=options)
    job = start(["env", "-C", str(tmp_path), *command])
    wait_until((tmp_path / "ready").exists, "the steps", 30)
    with server:
        server.wait_for(lambda s: s.connections, timeout_s=30)
        (tmp_path / "served").touch()
        code, _, errors = finish(job)
        assert code == 0, errors
        steps = [row["step"] for row in server.rows("step")]
        lost = sum(server.lost.steps.values())
    assert 0 < lost < 100
    assert len(steps) + lost == 100
    assert steps[-1] == 100
    assert steps == sorted(set(steps))
