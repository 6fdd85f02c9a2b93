"""Runs the jobs of ``jobs/resized.py``, on one rank or several, and reads what they tell."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.job_process import REPOSITORY, child_environment

SCRIPT = REPOSITORY / "tests/support/jobs/resized.py"
LIMIT_S = 240


def run_jobs(
    framework: str, scenarios: list[dict[str, Any]], ranks: int = 1
) -> list[list[dict[str, Any]]]:
    """What became of each scenario, by rank."""
    command = [sys.executable]
    if ranks > 1:
        launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        command += ["-m", *launcher]
    texts = [json.dumps(scenario) for scenario in scenarios]
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [*command, str(SCRIPT), folder, framework, *texts],
            env=child_environment(OMP_NUM_THREADS="1", PYTHONPATH=str(REPOSITORY)),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        lines = [Path(folder, str(rank)).read_text().splitlines() for rank in range(ranks)]
    return [[json.loads(line) for line in of_rank] for of_rank in lines]
