"""On a real GPU: settings that a replay of the job advises do what was said of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.job_process import REPOSITORY
from vramscope_analysis.diagnosis.settings_advice import VARIABLE, may_advise
from vramscope_analysis.diagnosis.snapshot_verdict import diagnose_snapshot, settings_of
from vramscope_analysis.moments.recorded_memory import RecordedMemory
from vramscope_analysis.snapshot import read_snapshot

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

JOB = REPOSITORY / "tests/support/jobs/gpu_in_pieces.py"
MIB = 1 << 20


def reserved(*arguments: str, conf: str = "") -> int:
    """Run the job in a process of its own; most that it had reserved."""
    environ = {**os.environ, VARIABLE: conf}
    run = subprocess.run(
        [sys.executable, str(JOB), *arguments],
        env=environ,
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    return int(run.stdout.split()[0])


def test_the_job_reserves_as_much_less_as_was_predicted(tmp_path: Path) -> None:
    file = tmp_path / "job.pickle"
    before = reserved(str(file))
    memory = RecordedMemory.of(read_snapshot(str(file)))
    assert int(memory.reserved_bytes.max()) == before
    findings = [each for each in diagnose_snapshot(memory) if each.kind == "fragmentation"]
    remedies = [remedy for finding in findings for remedy in finding.remedies if remedy.fix]
    assert remedies, "nothing was advised: the job does not lie in pieces on this GPU"
    for remedy in remedies:
        conf = remedy.fix.partition("=")[2]
        assert remedy.predicted_bytes is not None
        predicted = before - remedy.predicted_bytes
        assert reserved(conf=conf) == pytest.approx(predicted, rel=0.05), remedy


def test_what_is_on_is_known_and_not_advised_again(tmp_path: Path) -> None:
    file, conf = tmp_path / "job.pickle", "expandable_segments:True"
    reserved(str(file), conf=conf)
    memory = RecordedMemory.of(read_snapshot(str(file)))
    assert settings_of(memory) == conf
    assert not may_advise(settings_of(memory), conf)
    assert conf not in str([finding.remedies for finding in diagnose_snapshot(memory)])
