"""Nothing that the agent does in a job starts CUDA: it asks the driver for no context."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.job_process import Api, finish, plain_command, start, wait_until, watched_command
from tests.support.server_process import ServerProcess
from vramscope.attaching.attach import attach_process

# Whatever starts CUDA goes through one of these, or through a library opened with ctypes. The
# script itself makes a forward pass on the CPU only: backward and optimizers count devices.
SCRIPT = """
import json, os, sys, threading, time, torch
from pathlib import Path
folder = Path(sys.argv[1])
asked, opened = [], []

def recording(owner, name):
    original = getattr(owner, name)
    def ask(*args, **options):
        asked.append(f"{threading.current_thread().name}: {name}")
        return original(*args, **options)
    setattr(owner, name, ask)

for name in ("init", "_lazy_init", "is_available", "device_count", "current_device",
             "mem_get_info", "get_device_properties", "synchronize", "empty_cache"):
    recording(torch.cuda, name)
for name in dir(torch._C):
    if name.startswith(("_cuda_", "_accelerator_")) and callable(getattr(torch._C, name)):
        recording(torch._C, name)
sys.addaudithook(lambda event, args: event == "ctypes.dlopen" and opened.append(str(args[0])))

(folder / "pid").write_text(str(os.getpid()))
while not (folder / "watched").exists():
    torch.ones(64).sum()
    time.sleep(0.02)
print(json.dumps({"asked": asked, "opened": opened}))
"""

# Without effect on the driver: no library of CUDA among them.
HARMLESS_LIBRARIES = ("libnvidia-ml", "libc.", "None")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    pytest.importorskip("torch")
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


@pytest.mark.parametrize("way", ["run", "attach"])
def test_a_watched_job_has_not_been_made_to_use_cuda(way: str, api: Api, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    if way == "run":
        command = watched_command(script, str(tmp_path), url=api.url, token=api.token, run="r")
    else:
        command = plain_command(script, str(tmp_path))
    job = start(command)
    wait_until((tmp_path / "pid").exists, bool, "the job to begin", timeout_s=120)
    if way == "attach":
        options = {"url": api.url, "token": api.token, "run": "r"}
        pid = int((tmp_path / "pid").read_text() or job.pid)
        assert attach_process(pid, options, say=print).ok
    api.wait_for_run("r", lambda run: run["ranks"][0]["samples_received"] > 20, "samples")
    (tmp_path / "watched").touch()
    code, output, errors = finish(job)
    assert code == 0, errors
    seen = json.loads(output)
    assert seen["asked"] == []
    unexpected = [name for name in seen["opened"] if not name.startswith(HARMLESS_LIBRARIES)]
    assert unexpected == []
