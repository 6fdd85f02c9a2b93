"""On two real GPUs: ranks that are started again, and ranks that the script starts itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_server import free_port
from tests.support.job_process import REPOSITORY, Api, child_environment, finish
from tests.support.server_process import ServerProcess
from vramscope.startup.startup_file import has_startup_file

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

JOB = str(REPOSITORY / "tests/support/jobs/ranks.py")
WATCHED = (sys.executable, "-m", "vramscope", "run")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


def ended_run(api: Api, run: str, command: Sequence[str], folder: Path) -> dict[str, Any]:
    job = subprocess.Popen(
        list(command),
        env=child_environment(
            VRAMSCOPE_URL=api.url,
            VRAMSCOPE_TOKEN=api.token,
            VRAMSCOPE_RUN=run,
            VRAMSCOPE_EXIT_TIMEOUT_S="20",
            XDG_RUNTIME_DIR=str(folder),
            # Ranks would find what the dead ones left in the launcher's store.
            TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1",
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    code, _, errors = finish(job, timeout_s=240)
    assert code == 0, errors
    return api.wait_for_run(run, lambda found: found["state"] == "ended", "to end")


def test_a_rank_that_torchrun_starts_again_is_another_life_on_the_same_device(
    api: Api, tmp_path: Path
) -> None:
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    options = ("--max-restarts", "1", "--no-python")
    command = (sys.executable, *launcher, *options, *WATCHED, JOB, "env", "--die-once", "1")
    run = ended_run(api, "elastic", (*command, "--cuda", "--steps", "200"), tmp_path)
    assert run["world_size"] == 2
    for rank in run["ranks"]:
        assert [life["kind"] for life in rank["lives"]] == ["start", "restart"]
        assert rank["lives"][1]["last_step"] == 200
        assert rank["devices"][0]["index"] == rank["rank"]
    assert len({rank["device_uuid"] for rank in run["ranks"]}) == 2


@pytest.mark.skipif(not has_startup_file(), reason="vramscope is found here, but not installed")
def test_spawned_ranks_have_a_device_each(api: Api, tmp_path: Path) -> None:
    command = (*WATCHED, JOB, "spawn", "2", str(free_port()), "--cuda", "--steps", "200")
    run = ended_run(api, "spawned", command, tmp_path)
    assert [rank["rank"] for rank in run["ranks"]] == [0, 1]
    assert [rank["steps_received"] for rank in run["ranks"]] == [200, 200]
    assert [rank["devices"][0]["index"] for rank in run["ranks"]] == [0, 1]
    assert len({rank["device_uuid"] for rank in run["ranks"]}) == 2
