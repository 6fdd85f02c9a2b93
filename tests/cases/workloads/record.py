"""Records clean workloads under emulation: ``python -m tests.cases.workloads.record [NAME]``."""

from __future__ import annotations

import sys

from tests.cases.workloads.catalogue import WORKLOADS
from tests.support.fake_server import FakeServer
from tests.support.job_process import REPOSITORY, child_environment, finish, start
from tests.support.recorded_workload import FOLDER, RecordedWorkload

CAPACITY_GIB = 2
STEPS = 1000


def command(name: str, url: str, token: str, run: str, steps: int = STEPS) -> list[str]:
    """Command line of a workload under the agent."""
    options = [f"--url={url}", f"--token={token}", f"--run={run}"]
    emulation = ["--emulate", f"--capacity={CAPACITY_GIB}GiB"]
    module = ["-m", "tests.cases.workloads", name, str(steps)]
    return [sys.executable, "-m", "vramscope", "run", *options, *emulation, "--", *module]


def environment() -> dict[str, str]:
    """In which a workload is found, and does not use more than one core."""
    path = f"{child_environment()['PYTHONPATH']}:{REPOSITORY}"
    return {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def record(name: str) -> RecordedWorkload:
    """Run one, and keep what was told."""
    with FakeServer() as server:
        job = start(command(name, server.url, server.token, name), **environment())
        code, output, errors = finish(job, timeout_s=3600)
        if code != 0:
            raise SystemExit(f"{name} ended with {code}:\n{output}\n{errors}")
        return RecordedWorkload.of(name, server, CAPACITY_GIB << 30)


def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in names or list(WORKLOADS):
        recorded = record(name)
        path = recorded.write()
        print(f"{name}: {len(recorded.steps)} steps, {path.stat().st_size // 1024} KiB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
