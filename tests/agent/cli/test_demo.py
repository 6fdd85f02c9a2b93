from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

FAKE_SERVER = """
import signal, sys, time
print("vramscope: http://127.0.0.1:1/?token=-made-here", flush=True)
try:
    time.sleep(60)
finally:
    print("server ended", file=sys.stderr, flush=True)
"""
DEMO = """
import sys
from vramscope.cli import demo, main
demo.check_server_extra = lambda: None
demo.server_command = lambda *options: [sys.executable, sys.argv[1], *options]
demo._job_command = lambda steps: [sys.executable, "-c", sys.argv[2]]
sys.exit(main(["demo", "--no-browser", *sys.argv[3:]]))
"""
JOB = """
import os, sys, time
print("job", os.environ["VRAMSCOPE_URL"], os.environ["VRAMSCOPE_TOKEN"], flush=True)
try:
    time.sleep(60)
finally:
    print("job ended", file=sys.stderr, flush=True)
"""


def start(
    tmp_path: Path,
    job: str,
    *options: str,
    server: str = FAKE_SERVER,
    ignore_interrupts: bool = False,
) -> subprocess.Popen[str]:
    (tmp_path / "server.py").write_text(server)
    command = [sys.executable, "-c", DEMO, str(tmp_path / "server.py"), job, *options]
    if ignore_interrupts:
        command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    )


@pytest.mark.torch
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("in_background", [False, True])
def test_it_prints_the_address_and_ends_the_job_before_the_server(
    tmp_path: Path, number: signal.Signals, in_background: bool
) -> None:
    # A shell without job control starts what it puts into the background with SIGINT ignored.
    demo = start(tmp_path, JOB, ignore_interrupts=in_background)
    assert demo.stdout is not None
    address = demo.stdout.readline()
    assert address.startswith("vramscope: http://127.0.0.1:1/?token=")
    assert address.endswith("   (Ctrl-C ends the demo)\n")
    assert demo.stdout.readline() == "job http://127.0.0.1:1 -made-here\n"
    demo.send_signal(number)
    _, errors = demo.communicate(timeout=20)
    assert demo.returncode == 0
    ends = [line for line in errors.splitlines() if line.endswith(" ended")]
    assert ends == ["job ended", "server ended"]


@pytest.mark.torch
def test_a_job_that_fails_is_said(tmp_path: Path) -> None:
    demo = start(tmp_path, "raise SystemExit(3)")
    _, errors = demo.communicate(timeout=20)
    assert demo.returncode == 1
    assert "vramscope: the demo's job ended with exit code 3\n" in errors


@pytest.mark.torch
def test_a_server_that_cannot_start_says_it_itself(tmp_path: Path) -> None:
    demo = start(tmp_path, JOB, server="import sys; sys.exit('vramscope: port in use')")
    output, errors = demo.communicate(timeout=20)
    assert demo.returncode == 1
    assert (output, errors) == ("", "vramscope: port in use\n")
