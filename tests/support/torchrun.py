"""The data-parallel example under torchrun, as the quick start has it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.support.job_process import REPOSITORY, Api, child_environment

SCRIPT = REPOSITORY / "examples/train_ddp.py"


@contextmanager
def torchrun(
    api: Api,
    run: str,
    steps: int,
    options: Sequence[str] = (),
    script: Sequence[str] = (),
    *,
    ranks: int = 2,
    restarts: int = 0,
) -> Iterator[subprocess.Popen[str]]:
    """Ranks that train for ``steps`` steps, or run a script of their own with its arguments; the
    workers end with the launcher, which starts all of them again ``restarts`` times."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    launcher += ["--max-restarts", str(restarts)]
    watched = [sys.executable, "-m", "vramscope", "run", *options]
    watched += script or [str(SCRIPT), str(steps)]
    process = subprocess.Popen(
        [sys.executable, *launcher, "--no-python", *watched],
        env=child_environment(
            OMP_NUM_THREADS="1",
            VRAMSCOPE_URL=api.url,
            VRAMSCOPE_TOKEN=api.token,
            VRAMSCOPE_RUN=run,
            # gloo would look for the dead ranks, whose addresses are in the store of the launcher.
            TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1" if restarts else "0",
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        # Not killed: torchrun ends its workers, which live in sessions of their own.
        process.terminate()
        process.communicate(timeout=60)
