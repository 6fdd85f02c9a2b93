"""Records jobs that grow, with the step at which they really ran out of memory.

``python -m tests.cases.workloads.record_growing [NAME]``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tests.cases.workloads.growing import GROWING
from tests.cases.workloads.record import environment
from tests.support.fake_server import FakeServer
from tests.support.job_process import REPOSITORY, finish, start
from tests.support.recorded_workload import RecordedWorkload

FOLDER: Final = REPOSITORY / "tests/data/growing"
_RAN_OUT: Final = "OutOfMemoryError"


def record(name: str) -> RecordedWorkload:
    """Run one until its memory or its steps are over, and keep what was told."""
    growing = GROWING[name]
    with FakeServer() as server:
        options = [f"--url={server.url}", f"--token={server.token}", f"--run={name}"]
        emulation = ["--emulate", f"--capacity={growing.capacity_mib}MiB"]
        job = ["-m", "tests.cases.workloads", name, str(growing.steps)]
        command = [sys.executable, "-m", "vramscope", "run", *options, *emulation, "--", *job]
        code, output, errors = finish(start(command, **environment()), timeout_s=3600)
        if (_RAN_OUT in errors) != growing.ends or (code == 0) == growing.ends:
            raise SystemExit(f"{name} ended with {code}:\n{output}\n{errors}")
        told = RecordedWorkload.of(name, server, growing.capacity_mib << 20)
    assert told.steps.number is not None
    told.about["oom_step"] = int(told.steps.number[-1]) + 1 if growing.ends else None
    return told


def main(names: list[str], folder: Path = FOLDER) -> None:
    folder.mkdir(exist_ok=True)
    for name in names or list(GROWING):
        recorded = record(name)
        path = recorded.write(folder)
        size_kib = path.stat().st_size // 1024
        print(f"{name}: {len(recorded.steps)} steps, {size_kib} KiB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
