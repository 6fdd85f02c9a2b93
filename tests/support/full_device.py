"""A GPU on which another process leaves only little."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BESIDE_PYTORCH_BYTES = 800 << 20
"""What a small job holds beside PyTorch's allocator on an H200: context, cuBLAS, kernels."""

SCRIPT = """
import sys, torch
torch.zeros(1, device="cuda")
left_bytes = int(sys.argv[1])
held = torch.empty(torch.cuda.mem_get_info()[0] - left_bytes, dtype=torch.uint8, device="cuda")
print("up", flush=True)
sys.stdin.read()
"""


@contextmanager
def device_with(left_bytes: int) -> Iterator[None]:
    """While it is open, PyTorch in another small job can have about so much of the first device."""
    command = [sys.executable, "-c", SCRIPT, str(left_bytes + BESIDE_PYTORCH_BYTES)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield
        process.communicate()
