"""On a real GPU: the settings in force are told, those of the environment and those set later."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]

SCRIPT = """
import torch
from vramscope.collectors.allocator_settings import AllocatorSettings
from vramscope.sampling.clock import Clock
settings = AllocatorSettings(Clock(), print, lambda: 0)
assert settings.text() is None, settings.text()  # CUDA is not up, and asking does not bring it up
assert not torch.cuda.is_initialized()
torch.zeros(1, device="cuda")
print(settings.text())
torch.cuda.memory._set_allocator_settings("expandable_segments:False,max_split_size_mb:64")
print(settings.text())
settings.remove()
"""


def test_of_the_environment_and_set_by_the_job() -> None:
    environ = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        env=environ,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[:2] == [
        "expandable_segments:True",
        "expandable_segments:False,max_split_size_mb:64",
    ]
