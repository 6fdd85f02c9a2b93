"""The examples run, and are what their first lines say; that of two ranks: test_two_ranks.py."""

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


def alone(name: str, *arguments: str, folder: Path) -> tuple[str, list[str]]:
    """Run an example with no server to be had; its output, and its errors without notices."""
    code, output, errors = run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        VRAMSCOPE_LOCAL_SERVER="0",
        VRAMSCOPE_SPOOL_DIR=str(folder / "spool"),
        VRAMSCOPE_EXIT_TIMEOUT_S="1",
        XDG_RUNTIME_DIR=str(folder),
    )
    assert code == 0, errors
    return output, [line for line in errors.splitlines() if not line.startswith("vramscope: ")]


def test_minimal_example_trains_with_no_server_to_be_had(tmp_path: Path) -> None:
    output, errors = alone("train_minimal.py", "100", folder=tmp_path)
    assert output.startswith("step 100  loss ")
    assert errors == []


def test_ignite_example_trains_and_evaluates(tmp_path: Path) -> None:
    pytest.importorskip("ignite")
    output, errors = alone("train_ignite.py", "2", folder=tmp_path)
    assert [line.split("  ")[0] for line in output.splitlines()] == ["epoch 1", "epoch 2"]
    assert errors == []


def test_composer_example_trains_and_evaluates(tmp_path: Path) -> None:
    """Composer asks for an older PyTorch than the tests have: where it is there, it is run."""
    pytest.importorskip("composer")
    _, errors = alone("train_composer.py", "2", folder=tmp_path)
    assert "eval           Epoch   1" in "\n".join(errors)
