"""Run inside an environment with the wheel and no extra: the agent imports, the server is named."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Check that ``import vramscope`` works alone and that ``serve`` says what is missing."""
    for absent in ("torch", "numpy", "fastapi"):
        assert importlib.util.find_spec(absent) is None, f"{absent} came with the agent"

    import vramscope

    package = Path(vramscope.__file__).parent
    assert package.is_relative_to(sys.prefix), f"imported from {package}, not from the wheel"

    command = Path(sys.executable).with_name("vramscope")
    serve = subprocess.run(
        [command, "serve"], capture_output=True, text=True, timeout=60, check=False
    )
    assert serve.returncode == 2, f"expected exit code 2, got {serve.returncode}: {serve.stderr}"
    assert "vramscope[server]" in serve.stderr, f"does not say what to install: {serve.stderr!r}"
    assert serve.stderr.count("\n") == 1, f"expected one line, got {serve.stderr!r}"
    print("wheel-smoke: the agent imports alone; serve names the missing extra")


if __name__ == "__main__":
    main()
