"""A real process with memory of a GPU, as ``vramscope ps`` sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vramscope.processes.process import read_process
from vramscope.processes.python_program import read_python_program
from vramscope.processes.training_processes import training_processes

pytestmark = pytest.mark.gpu

HELD_BYTES = 512 << 20

HOLDS = f"""
import sys, torch
held = torch.zeros({HELD_BYTES}, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
print("up", flush=True)
sys.stdin.read()
"""


def test_memory_of_a_gpu_is_that_of_the_process_or_unknown(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(HOLDS)
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == b"up\n"
        program = read_python_program(read_process(job.pid))
        (each,) = [each for each in training_processes() if each.pid == job.pid]
        job.communicate()
    assert program is not None
    assert program.uses_nvidia
    assert each.attachable
    # In a container the driver may count processes by other numbers: then nothing is claimed.
    if each.gpu_bytes is not None:
        assert each.gpu_bytes >= HELD_BYTES
        assert [use.bytes for use in each.gpus] == [each.gpu_bytes]
