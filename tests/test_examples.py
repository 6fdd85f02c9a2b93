"""The examples run, and are what their first lines say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.job_process import child_environment

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(command: list[str], **environment: str) -> tuple[int, str, str]:
    """Exit code, output and error output; torchrun's workers end with it, whatever happens."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=child_environment(OMP_NUM_THREADS="1", **environment),
    ) as process:
        try:
            output, errors = process.communicate(timeout=100)
        except subprocess.TimeoutExpired:
            # Not killed: torchrun ends its workers, which live in sessions of their own.
            process.terminate()
            process.communicate(timeout=60)
            raise
    return process.returncode, output, errors


def test_data_parallel_example_trains_on_two_ranks() -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    code, output, errors = run(
        [*torchrun, "--nproc-per-node", "2", str(EXAMPLES / "train_ddp.py"), "100"]
    )
    assert code == 0, errors
    assert output.startswith("step 100  loss ")
    assert "vramscope" not in (EXAMPLES / "train_ddp.py").read_text().partition('"""\n\n')[2]


def test_minimal_example_trains_with_no_server_to_be_had(tmp_path: Path) -> None:
    code, output, errors = run(
        [sys.executable, str(EXAMPLES / "train_minimal.py"), "100"],
        VRAMSCOPE_LOCAL_SERVER="0",
        VRAMSCOPE_SPOOL_DIR=str(tmp_path / "spool"),
        VRAMSCOPE_EXIT_TIMEOUT_S="1",
        XDG_RUNTIME_DIR=str(tmp_path),
    )
    assert code == 0, errors
    assert output.startswith("step 100  loss ")
    assert [line for line in errors.splitlines() if not line.startswith("vramscope: ")] == []
