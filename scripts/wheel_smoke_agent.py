"""Run in an environment with the wheel and no extra: the agent imports, the extra is named."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path


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
    print("wheel-smoke: the agent imports alone; serve and replay name the missing extra")


if __name__ == "__main__":
    main()
