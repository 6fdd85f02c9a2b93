"""A CPU job under ``--emulate``: it can handle running out of memory, and write snapshots."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, child_environment, finish, foreign_lines, start

JOB = REPOSITORY / "tests/support/jobs/emulated_memory.py"
CAPACITY_BYTES = 160 << 20
SETTINGS = ("", "expandable_segments:True", "max_split_size_mb:32")

END = "---- end of a command\n"
# Its command line, some times in one process: PyTorch is loaded once.
MEMORY_VIZ = f"""
import runpy, sys
for line in sys.argv[1:]:
    sys.argv = ["_memory_viz.py", *line.split()]
    runpy.run_module("torch.cuda._memory_viz", run_name="__main__", alter_sys=True)
    print({END!r}, end="")
"""

pytestmark = pytest.mark.torch


class Runs:
    """The job under different settings of the allocator, run once under each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._facts: dict[str, dict[str, Any]] = {}

    def of(self, settings: str) -> tuple[dict[str, Any], Path]:
        """What the job printed on an emulated device of 160 MiB, and the snapshot that it wrote."""
        snapshot = self._folder / f"{SETTINGS.index(settings)}.pickle"
        if settings not in self._facts:
            self._facts[settings] = run_job(snapshot, settings)
        return self._facts[settings], snapshot


def run_job(snapshot: Path, settings: str) -> dict[str, Any]:
    """Run the job; what it printed."""
    launcher = [sys.executable, "-m", "vramscope", "run", "--no-local-server"]
    emulation = ["--emulate", f"--capacity={CAPACITY_BYTES}"]
    command = [*launcher, *emulation, "--exit-timeout-s=0", str(JOB), str(snapshot)]
    code, output, errors = finish(start(command, PYTORCH_CUDA_ALLOC_CONF=settings))
    assert (code, foreign_lines(errors)) == (0, [])
    (line,) = output.splitlines()
    facts: dict[str, Any] = json.loads(line)
    return facts


def run_tool(*arguments: str) -> str:
    """Output of a Python module that succeeds."""
    return run_python("-m", *arguments)


def run_python(*arguments: str) -> str:
    """Output of a Python that succeeds."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def torch_release() -> str:
    import torch

    return ".".join(str(torch.__version__).split(".")[:2])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def default_run(runs: Runs) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the job printed under default settings, and the snapshot that it wrote."""
    facts, path = runs.of("")
    return facts, pickle.loads(path.read_bytes())


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_snapshot_replays_exactly(runs: Runs, settings: str) -> None:
    facts, snapshot = runs.of(settings)

    replayed = json.loads(
        run_tool(
            "vramscope",
            "replay",
            str(snapshot),
            "--json",
            f"--capacity={CAPACITY_BYTES}",
            f"--torch={torch_release()}",
        )
    )

    assert replayed["segment_mismatches"] == 0
    assert replayed["segment_events"] > 0
    assert replayed["predicted_peak_reserved_bytes"] == facts["peak_reserved_bytes"]
    assert replayed["predicted_peak_allocated_bytes"] == facts["peak_allocated_bytes"]


def test_running_out_is_handled_as_on_a_device(
    default_run: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    facts, snapshot = default_run

    assert (facts["ooms"], facts["retries"]) == (1, 1)
    assert facts["caught"].startswith(
        "CUDA out of memory. Tried to allocate 98.00 MiB. GPU 0 (emul"
    )
    ((device, asked_bytes, capacity_bytes, free_bytes),) = facts["observed"]
    assert (device, asked_bytes, capacity_bytes) == (0, 98 << 20, CAPACITY_BYTES)
    assert 0 <= free_bytes < asked_bytes
    assert facts["peak_reserved_bytes"] <= CAPACITY_BYTES
    # It went on after the error, with an empty cache.
    trace = snapshot["device_traces"][0]
    actions = [entry["action"] for entry in trace]
    after = actions[actions.index("oom") :]
    assert "segment_free" in after
    assert after.count("alloc") > 100


def test_pytorchs_own_tools_read_the_snapshot(runs: Runs, tmp_path: Path) -> None:
    _, snapshot = runs.of("expandable_segments:True")
    pages = [tmp_path / "trace_plot.html", tmp_path / "segment_plot.html"]
    stats, trace, *written = run_python(
        "-c",
        MEMORY_VIZ,
        *(f"stats {snapshot}", f"trace {snapshot}"),
        *(f"{page.stem} {snapshot} -o {page}" for page in pages),
    ).split(END)
    assert "total_reserved" in stats
    assert "emulated_memory.py" in trace
    assert len(written) == len(pages) + 1
    for page in pages:
        assert page.stat().st_size > 10_000


def test_the_job_and_nothing_of_ours_is_on_its_stacks(
    default_run: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    _, snapshot = default_run
    trace = snapshot["device_traces"][0]
    stacks = [entry["frames"] for entry in trace if entry["action"] == "alloc"]
    files = {frame["filename"] for frames in stacks for frame in frames}
    assert {frames[-1]["name"] for frames in stacks} == {"<module>"}
    assert {frames[-1]["filename"] for frames in stacks} == {str(JOB)}
    assert any(file.endswith("torch/nn/modules/linear.py") for file in files)
    ours = [f"{REPOSITORY}/{root}/" for root in ("agent", "analysis")]
    assert [file for file in files if file.startswith(tuple(ours))] == []


def test_steps_can_be_told_apart(
    default_run: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    _, snapshot = default_run
    annotations = snapshot["external_annotations"]
    steps = [each for each in annotations if each["name"] == "Optimizer.step#AdamW.step"]
    assert [each["stage"] for each in steps] == ["START", "END"] * 7
    times = [each["time_us"] for each in annotations]
    assert times == sorted(times)
