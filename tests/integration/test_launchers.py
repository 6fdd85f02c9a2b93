"""Real launchers, no line of vramscope in the script: one run, every rank with its own number."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_server import free_port
from tests.support.job_process import REPOSITORY, Api, child_environment, finish, foreign_lines
from tests.support.server_process import ServerProcess
from vramscope.startup.startup_file import has_startup_file

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

JOB = REPOSITORY / "tests/support/jobs/ranks.py"
TOKEN = "launchers"
WATCHED = (sys.executable, "-m", "vramscope", "run")

needs_startup_file = pytest.mark.skipif(
    not has_startup_file(), reason="vramscope is found here, but not installed"
)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with ServerProcess(tmp_path_factory.mktemp("server"), token=TOKEN) as server:
        yield Api(server.url, TOKEN)


@pytest.fixture
def runtime_folder(tmp_path: Path) -> Path:
    # Not the user's own, where something of another process may lie.
    (tmp_path / "runtime").mkdir(mode=0o700)
    return tmp_path / "runtime"


def start(api: Api, run: str, command: Sequence[str], folder: Path, **extra: str) -> Any:
    return subprocess.Popen(
        list(command),
        env=child_environment(
            OMP_NUM_THREADS="1",
            VRAMSCOPE_URL=api.url,
            VRAMSCOPE_TOKEN=api.token,
            VRAMSCOPE_RUN=run,
            VRAMSCOPE_EXIT_TIMEOUT_S="20",
            XDG_RUNTIME_DIR=str(folder),
            **extra,
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def only_run(api: Api, name: str) -> dict[str, Any]:
    """The run of that name, ended; there must not be a second one."""
    run = api.wait_for_run(name, lambda run: run["state"] == "ended", "to end")
    assert [found["id"] for found in api.get("/api/v1/runs") if found["name"] == name] == [
        run["id"]
    ]
    return run


def of_each_rank(run: dict[str, Any], key: str) -> list[Any]:
    return [rank[key] for rank in run["ranks"]]


def test_a_rank_that_torchrun_starts_again_is_another_life_of_the_same_run(
    api: Api, runtime_folder: Path
) -> None:
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    job = start(
        api,
        "elastic",
        (
            *(sys.executable, *launcher, "--max-restarts", "1", "--no-python"),
            *(*WATCHED, "--emulate", str(JOB), "env", "--die-once", "1"),
        ),
        runtime_folder,
        # gloo would look for the dead ranks, whose addresses are in the store of the launcher.
        TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1",
    )
    code, output, _ = finish(job)
    assert (code, output) == (0, "")
    run = only_run(api, "elastic")
    assert (run["world_size"], run["emulated"]) == (2, True)
    assert of_each_rank(run, "rank") == of_each_rank(run, "local_rank") == [0, 1]
    for rank in run["ranks"]:
        first, second = rank["lives"]
        assert (first["kind"], second["kind"]) == ("start", "restart")
        assert first["pid"] != second["pid"]
        # Nothing of the first life is lost but what was not yet sent when it was killed.
        assert 0 < first["last_step"] <= 11
        assert (second["first_step"], second["last_step"]) == (1, 20)
        assert (second["end_reason"], second["exit_code"]) == ("exit", 0)
    assert run["ranks"][1]["lives"][0]["end_reason"] is None  # killed: no goodbye


@needs_startup_file
@pytest.mark.skipif(importlib.util.find_spec("accelerate") is None, reason="no accelerate")
def test_a_launcher_is_no_rank_and_those_that_it_starts_are(api: Api, runtime_folder: Path) -> None:
    options = ("--multi_gpu", "--num_processes", "2", "--num_machines", "1")
    plain = ("--mixed_precision", "no", "--dynamo_backend", "no")
    job = start(
        api,
        "accelerated",
        (*WATCHED, "accelerate", "launch", *options, *plain, str(JOB), "env"),
        runtime_folder,
    )
    code, _, errors = finish(job)
    assert code == 0, errors
    run = only_run(api, "accelerated")
    assert run["world_size"] == 2
    assert of_each_rank(run, "rank") == of_each_rank(run, "local_rank") == [0, 1]
    assert of_each_rank(run, "launcher") == ["accelerate", "accelerate"]
    assert of_each_rank(run, "steps_received") == [20, 20]


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")
def test_mpirun_numbers_the_ranks_whatever_the_script_does_with_the_numbers(
    api: Api, runtime_folder: Path
) -> None:
    mpirun = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2")
    command = (*mpirun, *WATCHED, str(JOB), "mpi", str(free_port()))
    code, _, errors = finish(start(api, "mpi", command, runtime_folder))
    assert (code, foreign_lines(errors)) == (0, [])
    run = only_run(api, "mpi")
    assert run["world_size"] == 2
    assert of_each_rank(run, "rank") == of_each_rank(run, "local_rank") == [0, 1]
    assert of_each_rank(run, "launcher") == ["mpirun", "mpirun"]
    assert [len(lives) for lives in of_each_rank(run, "lives")] == [1, 1]
    assert of_each_rank(run, "steps_received") == [20, 20]


@pytest.mark.parametrize(
    "how", [pytest.param("spawn", marks=needs_startup_file), pytest.param("fork")]
)
def test_ranks_that_a_script_starts_itself_take_the_place_of_the_script(
    api: Api, runtime_folder: Path, how: str
) -> None:
    command = (*WATCHED, "--emulate", str(JOB), how, "2", str(free_port()))
    code, output, errors = finish(start(api, how, command, runtime_folder))
    assert (code, output, foreign_lines(errors)) == (0, "", [])
    run = only_run(api, how)
    # Their data loaders' workers are processes of the same kind, and no ranks.
    assert (run["world_size"], of_each_rank(run, "rank")) == (2, [0, 1])
    assert of_each_rank(run, "launcher") == ["spawn", "spawn"]
    assert of_each_rank(run, "steps_received") == [20, 20]
    assert of_each_rank(run, "exit_code") == [0, 0]
    assert of_each_rank(run, "restarts") == [0, 0]
    script = run["ranks"][0]["lives"][0]
    assert (script["end_reason"], script["last_step"]) == ("detach", 0)
    assert list((runtime_folder / "vramscope").glob("rank0-*")) == []


def test_ranks_that_are_started_by_hand_meet_in_one_run(api: Api, runtime_folder: Path) -> None:
    port = str(free_port())
    jobs = [
        start(api, "by-hand", (*WATCHED, str(JOB), "own", rank, "2", port), runtime_folder)
        for rank in ("0", "1")
    ]
    for job in jobs:
        code, output, errors = finish(job)
        assert (code, output, foreign_lines(errors)) == (0, "", [])
    runs = [run for run in api.get("/api/v1/runs") if run["name"] == "by-hand"]
    (shared,) = [run for run in runs if run["world_size"] == 2]
    run = api.wait_for_run(shared["id"], lambda run: run["state"] == "ended", "to end")
    assert of_each_rank(run, "rank") == [0, 1]
    assert of_each_rank(run, "launcher") == ["distributed", "distributed"]
    assert of_each_rank(run, "samples_lost") == [0, 0]
    # Until PyTorch knew better, each was a run of its own.
    for alone in runs:
        if alone["id"] != shared["id"]:
            (rank,) = api.get(f"/api/v1/runs/{alone['id']}")["ranks"]
            assert rank["lives"][0]["end_reason"] == "detach"


@needs_startup_file
def test_a_variable_alone_attaches_what_trains_and_nothing_else(
    api: Api, runtime_folder: Path
) -> None:
    probe = start(
        api,
        "switched",
        (sys.executable, "-c", "import torch"),
        runtime_folder,
        VRAMSCOPE_ATTACH="1",
    )
    assert finish(probe) == (0, "", "")
    code = "import torch\np = torch.nn.Parameter(torch.ones(1))\np.grad = torch.ones(1)\n"
    script = runtime_folder / "train.py"
    script.write_text(f"{code}torch.optim.SGD([p]).step()\n")
    job = start(
        api, "switched", (sys.executable, str(script)), runtime_folder, VRAMSCOPE_ATTACH="1"
    )
    assert finish(job) == (0, "", f"vramscope: dashboard: {api.url}\n")
    run = only_run(api, "switched")
    assert (of_each_rank(run, "steps_received"), run["script"]) == ([1], "train.py")


@needs_startup_file
def test_without_the_variable_nothing_of_vramscope_is_imported(runtime_folder: Path) -> None:
    show = "import sys; print([name for name in sys.modules if 'vramscope' in name])"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("VRAMSCOPE_")}
    done = subprocess.run(
        [sys.executable, "-c", show], env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
