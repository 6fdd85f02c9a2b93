"""Every CPython of this machine that vramscope supports, each able to import it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.job_process import REPOSITORY

VERSIONS = ((3, 10), (3, 11), (3, 12), (3, 13), (3, 14))
# Made by scripts/install-interpreters.
FOLDER = REPOSITORY / ".venv" / "interpreters"

_ASK = """
import json, sys, sysconfig
implementation = sys.implementation.name
if getattr(sys, "_is_gil_enabled", lambda: True)() is False:
    implementation += " without a GIL"
shared = sysconfig.get_config_var("Py_ENABLE_SHARED")
# Debian's program says yes and is static all the same: what is mapped decides.
shared = "libpython" in open("/proc/self/maps").read()
print(json.dumps([implementation, sys.version_info[:2], shared]))
"""


@dataclass(frozen=True)
class OfferedInterpreter:
    """One Python program of this machine.

    ``shared`` says where its symbols are: in a libpython3.x.so, or in the program itself.
    """

    executable: Path
    version: tuple[int, int]
    shared: bool

    def __str__(self) -> str:
        """As a test's name shows it, such as ``3.12-shared``."""
        build = "shared" if self.shared else "static"
        return f"{self.version[0]}.{self.version[1]}-{build}"

    @property
    def site(self) -> Path:
        """Folder with the packages that vramscope needs, made for this version."""
        return FOLDER / f"site-{self.version[0]}.{self.version[1]}"


@functools.cache
def offered_interpreters() -> tuple[OfferedInterpreter, ...]:
    """One Python of each version and build that this machine offers, oldest first."""
    found: dict[str, OfferedInterpreter] = {}
    for program in _programs():
        interpreter = _ask(program)
        if interpreter is not None:
            found.setdefault(str(interpreter), interpreter)
    return tuple(sorted(found.values(), key=lambda one: (one.version, one.shared)))


def missing_versions() -> list[tuple[int, int]]:
    """Supported versions that this machine does not offer."""
    offered = {interpreter.version for interpreter in offered_interpreters()}
    return [version for version in VERSIONS if version not in offered]


def environment_for(interpreter: OfferedInterpreter, **extra: str) -> dict[str, str]:
    """An environment in which this Python, and no other, imports the checkout's vramscope."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("VRAMSCOPE_", "PYTHON", "PYENV_"))
    }
    roots = [interpreter.site, REPOSITORY / "agent", REPOSITORY / "protocol"]
    environment["PYTHONPATH"] = os.pathsep.join(map(str, roots))
    # Several Pythons share the checkout: none leaves anything in it.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment["PYTHONUNBUFFERED"] = "1"
    return environment | extra


def _programs() -> Iterator[Path]:
    """Paths that may be such a Python; not in order, some twice."""
    yield from sorted(FOLDER.glob("python3.*/usr/bin/python3.*"))
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    for major, minor in VERSIONS:
        name = f"python{major}.{minor}"
        yield from sorted(versions.glob(f"{major}.{minor}.*/bin/{name}"))
        for folder in [*folders, Path("/usr/local/bin"), Path("/usr/bin")]:
            yield folder / name


@functools.cache
def _ask(program: Path) -> OfferedInterpreter | None:
    """What a program is; None if it does not run, or is no CPython that can import vramscope."""
    # A version manager's shim is a script: the process that it starts would not be this file.
    if not program.is_file() or program.read_bytes()[:4] != b"\x7fELF":
        return None
    asked = subprocess.run(
        [str(program), "-I", "-S", "-c", _ASK], capture_output=True, text=True, check=False
    )
    if asked.returncode != 0:
        return None
    implementation, version, shared = json.loads(asked.stdout)
    interpreter = OfferedInterpreter(program, (version[0], version[1]), shared)
    usable = implementation == "cpython" and interpreter.version in VERSIONS
    return interpreter if usable and interpreter.site.is_dir() else None
