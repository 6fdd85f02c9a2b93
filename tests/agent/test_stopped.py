from __future__ import annotations

import subprocess
import sys

import vramscope


def test_what_handles_ctrl_c_handles_it_and_what_swallows_errors_does_not() -> None:
    assert issubclass(vramscope.Stopped, KeyboardInterrupt)
    assert not issubclass(vramscope.Stopped, Exception)


def test_a_process_that_ends_of_it_says_what_it_was_and_has_failed() -> None:
    code = "import vramscope; raise vramscope.Stopped('a person has stopped training')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "vramscope.Stopped: a person has stopped training"
