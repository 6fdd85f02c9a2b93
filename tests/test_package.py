"""What is installed: the agent imports alone and quickly, and the version is one."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]

# Blocks what a training environment may lack, then reports what the import brought along.
IMPORT_ALONE = """
import importlib.abc, json, sys

ABSENT = {"torch", "numpy", "fastapi", "uvicorn", "sqlalchemy", "plotly", "zstandard", "pydantic",
          "vramscope_server", "vramscope_analysis", "vramscope_frontend"}

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"{name} is absent here", name=name)

sys.meta_path.insert(0, Absent())
before = set(sys.modules)
import vramscope
import threading
print(json.dumps({
    "version": vramscope.__version__,
    "public": sorted(vramscope.__all__),
    "modules": sorted(set(sys.modules) - before),
    "threads": [thread.name for thread in threading.enumerate()],
}))
"""


@pytest.fixture(scope="module")
def imported() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_ALONE],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return dict(json.loads(done.stdout))


def test_imports_without_torch_and_without_the_server(imported: dict[str, Any]) -> None:
    assert imported["version"] == metadata.version("vramscope")


def test_import_has_no_side_effect(imported: dict[str, Any]) -> None:
    assert imported["threads"] == ["MainThread"]


def test_public_names(imported: dict[str, Any]) -> None:
    assert {"attach", "detach", "step", "log", "__version__"} <= set(imported["public"])


def test_import_leaves_networking_for_attach(imported: dict[str, Any]) -> None:
    # `import vramscope` stays quick: what only a connection needs comes with the connection.
    heavy = {"asyncio", "ssl", "websockets.sync.client", "subprocess"}
    assert not heavy & set(imported["modules"])


def test_base_dependencies_are_the_agents_alone() -> None:
    required = metadata.requires("vramscope") or []
    base = [requirement for requirement in required if "extra ==" not in requirement]
    names = {requirement.partition(">=")[0].strip() for requirement in base}
    assert names == {"msgspec", "websockets", "nvidia-ml-py"}


def test_no_requirement_names_torch() -> None:
    assert not [name for name in metadata.requires("vramscope") or [] if name.startswith("torch")]


@pytest.mark.parametrize(
    "package",
    [
        "protocol/vramscope_protocol",
        "agent/vramscope",
        "analysis/vramscope_analysis",
        "server/vramscope_server",
        "frontend/vramscope_frontend",
    ],
)
def test_each_root_ships_its_types(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()
    assert (ROOT / package / "__init__.py").is_file()
