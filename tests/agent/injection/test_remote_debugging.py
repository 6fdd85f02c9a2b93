"""Who does not want to be reached into (PEP 768) says so by an option or a variable."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from vramscope.injection.remote_debugging import why_switched_off

WAIT = "import sys\nprint('ready', flush=True)\nsys.stdin.read()"
VARIABLE = "PYTHON_DISABLE_REMOTE_DEBUG"


@pytest.mark.parametrize(
    ("options", "environment", "reason"),
    [
        ([], {}, None),
        ([], {VARIABLE: ""}, None),
        ([], {VARIABLE: "1"}, f"its environment has {VARIABLE} set"),
        (["-X", "disable-remote-debug"], {}, "it was started with -X disable-remote-debug"),
        (["-Xdisable_remote_debug"], {}, "it was started with -X disable-remote-debug"),
        (["-X", "dev"], {"X": f"{VARIABLE}=1"}, None),
    ],
)
def test_reason(options: Sequence[str], environment: dict[str, str], reason: str | None) -> None:
    with subprocess.Popen(
        [sys.executable, *options, "-c", WAIT],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert why_switched_off(process.pid) == reason
        process.communicate("")
