"""The list of training processes: of this machine, and of made-up ones that it has none of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_nvml import FakeNvml
from tests.support.fake_training import FakeTorch
from tests.support.job_process import child_environment
from tests.support.made_processes import made_process
from vramscope.injection.errors import NotInjectable
from vramscope.processes import training_processes as module
from vramscope.processes.attached import THREAD_MARK
from vramscope.processes.gpu_memory import GpuUse
from vramscope.processes.obstacle import Obstacle
from vramscope.processes.process import NoSuchProcess
from vramscope.processes.python_program import PythonProgram
from vramscope.processes.roles import Observed
from vramscope.processes.training_processes import (
    TrainingProcess,
    gpu_bytes,
    list_processes,
    training_processes,
)

USES_GPU = PythonProgram((3, 11), "2.9.1", None, True)
NO_GPU = PythonProgram((3, 11), "2.9.1", None, False)
HIDDEN = PythonProgram((3, 11), None, None, None)
ON_GPU = [GpuUse(0, "GPU-a", "H200", 100)]

LISTS_AS_NOBODY = """
import ctypes, json, os, sys
import msgspec
from vramscope.processes.training_processes import training_processes
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
(mine,) = [each for each in training_processes(everything=True) if each.pid == int(sys.argv[1])]
print(msgspec.json.encode(mine).decode())
"""

LOADS_DATA = """
import multiprocessing, os, sys
from torch.utils.data import DataLoader
if __name__ == "__main__":
    batches = iter(DataLoader(list(range(64)), num_workers=2, multiprocessing_context="fork"))
    next(batches)
    children = [child.pid for child in multiprocessing.active_children()]
    print(os.getpid(), *children, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def torch(tmp_path: Path) -> FakeTorch:
    """A torch that costs nothing to import."""
    return FakeTorch(tmp_path)


def found(pids: list[int], **options: Any) -> dict[int, TrainingProcess]:
    """Those of the list that the test has started."""
    return {each.pid: each for each in training_processes(**options) if each.pid in pids}


def listed(program: PythonProgram, **changes: Any) -> TrainingProcess:
    """How a made-up process is listed."""
    observed = Observed(process=made_process(**changes), program=program)
    (only,) = list_processes({observed.process.pid: observed}, {}, everything=True)
    return only


def test_a_training_process_is_found(torch: FakeTorch) -> None:
    with torch.running() as (pid,):
        each = found([pid])[pid]
    assert each.command == f"{os.path.basename(sys.executable)} train.py"
    assert each.python == "{}.{}".format(*sys.version_info[:2])
    assert each.torch == "2.9.1+cu128"
    assert each.role == "training"
    assert each.attachable
    assert each.why_not is each.fix is each.obstacle is None
    assert not each.attached
    assert each.workers == 0
    assert not each.container
    assert each.readable


def test_workers_are_counted_and_not_listed(torch: FakeTorch) -> None:
    with torch.running("worker", count=2) as pids:
        first, second = pids
        assert list(found(pids)) == [first]
        assert found(pids)[first].workers == 1
        worker = found(pids, everything=True)[second]
    assert worker.role == "worker"
    assert worker.parent == first
    assert not worker.attachable
    assert worker.fix == f"attach to process {first}"


def test_ranks_that_a_process_forks_are_listed_in_its_place(torch: FakeTorch) -> None:
    with torch.running("rank", "pt_gloo_runloop", count=2) as pids:
        assert list(found(pids)) == [pids[1]]
        assert found(pids, everything=True)[pids[0]].role == "launcher"


def test_a_process_that_is_watched_says_so(torch: FakeTorch) -> None:
    with torch.running("alone", THREAD_MARK) as (pid,):
        assert found([pid])[pid].attached


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_of_another_users_process_little_is_known(torch: FakeTorch) -> None:
    with torch.running() as (pid,):
        ran = subprocess.run(
            [sys.executable, "-c", LISTS_AS_NOBODY, str(pid)],
            env=child_environment(),
            capture_output=True,
            timeout=60,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr.decode()
    each = json.loads(ran.stdout)
    assert each["user"] == "root"
    assert each["command"].endswith(" train.py")
    assert each["torch"] is None
    assert not each["readable"]
    assert each["role"] == "other"
    assert (each["attachable"], each["obstacle"]) == (False, "uid")


@pytest.mark.torch
def test_the_workers_of_a_real_data_loader_are_counted(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(LOADS_DATA)
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as job:
        assert job.stdout is not None
        pids = [int(number) for number in job.stdout.readline().split()]
        each = found(pids, everything=True)
        job.communicate()
    assert pids[0] == job.pid
    assert each[job.pid].role == "training"
    assert each[job.pid].workers == 2
    assert each[job.pid].torch == metadata.version("torch")
    assert {each[pid].role for pid in pids[1:]} == {"worker"}


def test_the_oldest_come_first(torch: FakeTorch) -> None:
    with torch.running() as (first,), torch.running() as (second,):
        mine = [each.pid for each in training_processes() if each.pid in (first, second)]
    assert mine in ([first, second], [second, first])
    starts = [each.start_ticks for each in training_processes(everything=True)]
    assert starts == sorted(starts)


def test_a_process_without_torch_is_listed_only_on_request() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert found([process.pid]) == {}
        each = found([process.pid], everything=True)[process.pid]
        process.communicate(b"\n")
    assert each.role == "other"
    assert each.torch is None


def test_this_very_process_is_not_listed() -> None:
    assert found([os.getpid()], everything=True) == {}


def test_memory_comes_from_nvml(torch: FakeTorch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_in_container", lambda: False)
    with torch.running() as (pid,):
        nvml = FakeNvml({"uuid": "GPU-a", "name": "H200", "processes": [(pid, 123)]})
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        each = found([pid])[pid]
    assert each.gpu_bytes == 123
    assert each.gpus == [GpuUse(0, "GPU-a", "H200", 123)]
    assert nvml.calls[-1] == "nvmlShutdown"


def test_in_a_container_a_number_of_the_host_is_nobodys(
    torch: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "is_in_container", lambda: True)
    with torch.running("worker", count=2) as pids:
        host = [(pid, 123) for pid in pids]  # held by others, which have these numbers there
        nvml = FakeNvml({"uuid": "GPU-a", "name": "H200", "processes": host})
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        listed = found(pids, everything=True)
    first, second = (listed[pid] for pid in pids)
    assert (first.gpu_bytes, first.gpus, first.role) == (0, [], "training")
    assert second.role == "worker"


def test_without_nvml_memory_is_unknown(torch: FakeTorch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with torch.running() as (pid,):
        assert found([pid])[pid].gpu_bytes is None


def test_a_process_that_ends_meanwhile_is_left_out(
    torch: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(process: Any) -> PythonProgram:
        raise NoSuchProcess(process.pid)

    monkeypatch.setattr(module, "read_python_program", gone)
    with torch.running() as (pid,):
        assert found([pid]) == {}


@pytest.mark.parametrize(
    ("held", "program", "sees_every_process", "expected"),
    [
        (None, USES_GPU, True, None),  # no NVML
        (ON_GPU, USES_GPU, True, 100),
        (ON_GPU, HIDDEN, True, 100),
        ([], NO_GPU, True, 0),
        ([], USES_GPU, True, None),  # it must be somewhere
        (ON_GPU, USES_GPU, False, 100),
        (ON_GPU, NO_GPU, False, 0),  # the same number on the host
        (ON_GPU, HIDDEN, False, None),
        ([], HIDDEN, True, None),
    ],
)
def test_unknown_memory_stays_unknown(
    held: list[GpuUse] | None,
    program: PythonProgram,
    sees_every_process: bool,
    expected: int | None,
) -> None:
    assert gpu_bytes(held, program, sees_every_process=sees_every_process) == expected


def test_an_obstacle_is_told_with_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    obstacle = Obstacle("uid", "it belongs to user ada", "sudo vramscope attach 41327")
    monkeypatch.setattr(module, "why_not_reachable", lambda process, *, method: obstacle)
    each = listed(NO_GPU)
    assert not each.attachable
    assert (each.obstacle, each.why_not, each.fix) == ("uid", obstacle.reason, obstacle.fix)


def test_a_python_that_cannot_be_entered_is_not_attachable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(pid: int) -> None:
        raise NotInjectable("its Python exports no such symbol", "symbols")

    monkeypatch.setattr(module, "why_not_reachable", lambda process, *, method: None)
    monkeypatch.setattr(module, "find_interpreter", refuse)
    each = listed(NO_GPU)
    assert (each.attachable, each.obstacle) == (False, "symbols")
    assert each.why_not == "its Python exports no such symbol"
    assert each.fix is not None
    assert "vramscope run" in each.fix


def test_new_pythons_are_asked_for_without_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    methods: list[str] = []
    monkeypatch.setattr(
        module, "why_not_reachable", lambda process, *, method: methods.append(method)
    )
    monkeypatch.setattr(module, "find_interpreter", lambda pid: None)
    listed(PythonProgram((3, 13), "2.9", None, False))
    listed(PythonProgram((3, 14), "2.9", None, False))
    listed(PythonProgram(None, "2.9", None, False))
    assert methods == ["pending_call", "remote_exec", "pending_call"]


def test_a_spawned_child_is_named_after_what_its_parent_runs() -> None:
    spawned = ("python", "-c", "from multiprocessing.spawn import spawn_main", "x")
    pids = {
        1: Observed(process=made_process(1, ppid=0), program=NO_GPU),
        2: Observed(process=made_process(2, ppid=1, argv=spawned), program=NO_GPU),
        3: Observed(process=made_process(3, ppid=99, argv=spawned), program=NO_GPU),
    }
    commands = {each.pid: each.command for each in list_processes(pids, {}, everything=True)}
    assert commands[2] == "python train.py (child)"
    assert commands[3] == "python (child of a process that has ended)"
