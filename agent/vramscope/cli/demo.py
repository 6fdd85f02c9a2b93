"""``vramscope demo``: a server and a training job to look at, both ended by Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
import webbrowser
from pathlib import Path
from typing import IO, Final

from vramscope.cli.one_line_parser import OneLineParser
from vramscope.cli.problem import Problem
from vramscope.cli.serve import check_server_extra
from vramscope.local.local_server import server_command
from vramscope.notices import PREFIX
from vramscope.transport.address import DEFAULT_PORT

_START_TIMEOUT_S: Final = 30.0
_STOP_TIMEOUT_S: Final = 5.0
_CAPACITY: Final = "1GiB"
_MMAP_THRESHOLD: Final = str(1 << 20)
"""Tensors that the job keeps would lie between those that it frees: of its 0.6 GiB the heap of the
host would make 5 GiB within ten minutes."""
_HAS_GPU: Final = "import sys, torch; sys.exit(not torch.cuda.is_available())"


def execute(arguments: list[str]) -> int:
    """Start both, print the address, wait for the job or for Ctrl-C, end both."""
    options = _parser().parse_args(arguments)
    check_server_extra()
    if importlib.util.find_spec("torch") is None:
        raise Problem("the demo trains with PyTorch, which is not here; pip install torch")
    # SIGINT too: a shell that starts us in the background has it ignored, which is inherited, also
    # by our children. A handler is not: they start with the default.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    children: list[subprocess.Popen[bytes]] = []
    try:
        return _run(options, children)
    except KeyboardInterrupt:
        return 0
    finally:
        # The job first: it still says goodbye to the server.
        for child in reversed(children):
            _end(child)


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="vramscope demo",
        description="Start a server and a training job to look at: on the GPU if there is one, "
        "else on the CPU with an emulated GPU. Ctrl-C ends both.",
    )
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"({DEFAULT_PORT}; 0: any)")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.add_argument("--steps", type=int, help="end after so many optimizer steps")
    return parser


def _run(options: argparse.Namespace, children: list[subprocess.Popen[bytes]]) -> int:
    server = subprocess.Popen(
        server_command("--port", str(options.port), "--no-runtime-file"),
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for us: we end the job first, then its server
    )
    children.append(server)
    page_url = _wait_for_address(server)
    print(f"{PREFIX}{page_url}   (Ctrl-C ends the demo)", flush=True)
    url, _, token = page_url.partition("/?token=")
    # By the environment: other users of the machine can read command lines.
    environ = {
        "MALLOC_MMAP_THRESHOLD_": _MMAP_THRESHOLD,
        **os.environ,
        "VRAMSCOPE_URL": url,
        "VRAMSCOPE_TOKEN": token,
    }
    job = subprocess.Popen(_job_command(options.steps), env=environ, start_new_session=True)
    children.append(job)
    if not options.no_browser:
        webbrowser.open(page_url)
    return _wait_for_end(server, job, keep_serving=options.steps is not None)


def _job_command(steps: int | None) -> list[str]:
    has_gpu = subprocess.run([sys.executable, "-c", _HAS_GPU], check=False).returncode == 0
    emulation = [] if has_gpu else ["--emulate", "--capacity", _CAPACITY]
    script = Path(__file__).parents[1] / "demo" / "train.py"
    command = [sys.executable, "-m", "vramscope", "run", "--run", "demo", *emulation, str(script)]
    return command if steps is None else [*command, "--steps", str(steps)]


def _wait_for_address(server: subprocess.Popen[bytes]) -> str:
    """The address that the server prints when it is ready."""
    lines: list[str] = []
    output: IO[bytes] | None = server.stdout
    assert output is not None  # it was asked for
    reader = threading.Thread(target=lambda: lines.append(output.readline().decode()), daemon=True)
    reader.start()
    reader.join(_START_TIMEOUT_S)
    line = lines[0].strip() if lines else ""
    if not line.startswith(f"{PREFIX}http"):
        if lines and not line:  # it closed its output: it is about to be gone, if it is not yet
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(_STOP_TIMEOUT_S)
        if server.poll() is not None:
            # It has said on stderr what is wrong; a second line would say less.
            raise SystemExit(server.returncode or 1)
        raise Problem(f"the server did not start within {_START_TIMEOUT_S:g} s", 1)
    return line.removeprefix(PREFIX)


def _wait_for_end(
    server: subprocess.Popen[bytes], job: subprocess.Popen[bytes], *, keep_serving: bool
) -> int:
    code = job.wait()
    if code != 0:
        raise Problem(f"the demo's job ended with exit code {code}", 1)
    if keep_serving:
        print(f"{PREFIX}the job has ended; the page stays until Ctrl-C", flush=True)
        server.wait()
    return 0


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is not None:
        return
    child.send_signal(signal.SIGINT)
    deadline_s = time.monotonic() + _STOP_TIMEOUT_S
    try:
        child.wait(max(0.0, deadline_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
