"""Run in an environment with the wheel and no extra: the agent imports, the extra is named."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

SWITCH = "VRAMSCOPE_ATTACH"


def main() -> None:
    """Check that ``import vramscope`` works alone and that commands say what is missing."""
    for absent in ("torch", "numpy", "fastapi"):
        assert importlib.util.find_spec(absent) is None, f"{absent} came with the agent"

    import vramscope

    package = Path(vramscope.__file__).parent
    assert package.is_relative_to(sys.prefix), f"imported from {package}, not from the wheel"

    command = Path(sys.executable).with_name("vramscope")
    for words in (["serve"], ["replay", "job.pickle"]):
        refused = subprocess.run(
            [command, *words], capture_output=True, text=True, timeout=60, check=False
        )
        said = refused.stderr
        assert refused.returncode == 2, f"expected exit code 2, got {refused.returncode}: {said}"
        assert "vramscope[server]" in said, f"does not say what to install: {said!r}"
        assert said.count("\n") == 1, f"expected one line, got {said!r}"
    _check_startup()
    print("wheel-smoke: the agent imports alone; serve and replay name the missing extra")


def _check_startup() -> None:
    """Check that a process is ready to attach when its environment asks for it, and only then."""
    show = "import sys; print('vramscope.startup' in sys.modules, 'vramscope' in sys.modules)"
    plain = {name: value for name, value in os.environ.items() if name != SWITCH}
    for environ, expected in ((plain, "False False"), ({**plain, SWITCH: "1"}, "True True")):
        done = subprocess.run(
            [sys.executable, "-c", show],
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        seen = (done.stdout.strip(), done.stderr)
        assert seen == (expected, ""), f"expected {expected} and nothing said, got {seen}"


if __name__ == "__main__":
    main()
