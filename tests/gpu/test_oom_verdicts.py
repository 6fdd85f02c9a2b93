"""On a real GPU: memory runs out in several ways, and each is told for what it is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, child_environment, finish, start

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

JOB = REPOSITORY / "tests/support/jobs/gpu_ooms.py"


def diagnosed(spool: Path, kind: str) -> dict[str, Any]:
    """Run the job without a server, and judge the report that it leaves."""
    command = [sys.executable, "-m", "vramscope", "run", "--no-local-server", "--run", kind]
    options = ["--spool-dir", str(spool), "--", str(JOB), kind]
    code, _, errors = finish(start([*command, *options]))
    assert (code, "OutOfMemoryError" in errors) == (1, True), errors
    reports = sorted(spool.rglob("oom-*.json"))
    assert reports, f"no report in {spool}: {errors}"
    judge = [sys.executable, "-m", "vramscope", "diagnose", str(reports[-1]), "--json"]
    code, output, errors = finish(start(judge, **child_environment()))
    assert code == 1, errors
    (finding,) = json.loads(output)["findings"]
    found: dict[str, Any] = finding
    return found


@pytest.mark.parametrize(
    ("kind", "cause", "function"),
    [
        ("long_sample", "spike", "step"),
        ("evaluation", "evaluation", "main"),
        ("state", "first_step_state", "main"),
        ("garbage", "garbage", "block"),
        ("carved", "fragmentation", "block"),
    ],
)
def test_the_cause_and_the_line_are_told(
    tmp_path: Path, kind: str, cause: str, function: str
) -> None:
    finding = diagnosed(tmp_path, kind)
    assert finding["evidence"]["cause"] == cause, finding
    assert finding["culprits"][-1]["file"].endswith("gpu_ooms.py"), finding
    assert function in finding["evidence"]["line"], finding
    assert finding["remedies"], finding
