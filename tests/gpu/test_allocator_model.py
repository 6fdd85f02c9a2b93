"""On a real GPU: workloads recorded here and now are replayed to the byte by the model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.allocator_traces import flatten
from tests.support.job_process import REPOSITORY, child_environment
from tests.support.known_calls import KnownCalls, with_pool_ids
from tests.support.recorded_run import RecordedRun, differences, load_run
from vramscope_analysis.replay import Recording, replay_recorded
from vramscope_analysis.snapshot import read_snapshot

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

# Workload, PYTORCH_CUDA_ALLOC_CONF, memory limit in MiB.
CASES = [
    pytest.param("checkpointing", "", None, id="plain"),
    pytest.param("checkpointing", "expandable_segments:True", None, id="expandable"),
    pytest.param("streams", "", None, id="streams"),
    pytest.param("cuda_graphs", "", None, id="graphs"),
    pytest.param("oom_retry", "max_split_size_mb:64", 768, id="out-of-memory"),
]


def record(folder: Path, workload: str, conf: str, limit_mib: int | None) -> RecordedRun:
    """Run one workload of benchmarks/workloads in a process of its own, and load its recording."""
    command = [sys.executable, "-m", "benchmarks.record_traces", workload]
    command += [f"--conf={conf}", "--name=fresh", f"--out={folder}"]
    if limit_mib is not None:
        command.append(f"--limit-mib={limit_mib}")
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return load_run("fresh", folder)


@pytest.mark.parametrize(("workload", "conf", "limit_mib"), CASES)
def test_a_fresh_recording_is_replayed_to_the_byte(
    tmp_path: Path, workload: str, conf: str, limit_mib: int | None
) -> None:
    run = record(tmp_path, workload, conf, limit_mib)
    assert (run.final_stats["num_ooms"] > 0) == (limit_mib is not None)

    # Every trace entry with its address, every counter after every step, and the segments left.
    known = KnownCalls(run)
    known.replay()
    assert known.rows_compared == len(run.rows) > 0

    # From the trace alone, as `vramscope replay` has it. Up to torch 2.11 a trace does not say
    # which pool an entry was of: the run itself tells.
    recording = Recording.from_snapshot(run.snapshot)
    if recording.events.pool_ids is None:
        recording = with_pool_ids(recording, run)
    report = replay_recorded(recording, version=run.version)
    assert report.is_exact, report.first_mismatches
    # An empty_cache that found nothing to give back left no entry, but was counted.
    truth = {k: v for k, v in run.final_stats.items() if k != "num_sync_all_streams"}
    assert differences(truth, flatten(report.counters)) == []


@pytest.mark.parametrize("conf", ["", "expandable_segments:True"])
@pytest.mark.parametrize(("begin", "max_entries"), [("first", 1500), ("later", 100_000)])
def test_a_recording_without_its_beginning_is_replayed_to_the_byte(
    tmp_path: Path, begin: str, max_entries: int, conf: str
) -> None:
    path = tmp_path / "late.pickle"
    job = "tests.support.jobs.gpu_recorded_late"
    done = subprocess.run(
        [sys.executable, "-m", job, str(path), begin, str(max_entries)],
        cwd=REPOSITORY,
        env={**child_environment(), "PYTORCH_CUDA_ALLOC_CONF": conf},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    requests = json.loads(done.stdout.splitlines()[-1])["allocation.all.allocated"]

    recording = Recording.from_snapshot(read_snapshot(path))
    report = replay_recorded(recording)

    assert 0 < report.blocks < requests  # the beginning really is missing
    assert report.initial is not None
    assert not report.initial.is_complete
    assert report.is_exact, report.first_mismatches
