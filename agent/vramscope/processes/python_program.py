"""Which Python a process runs, and which torch, by the files that it has mapped."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from vramscope.processes.command_line import is_python_name
from vramscope.processes.memory_map import MemoryMap, read_memory_map
from vramscope.processes.proc_files import read_proc, read_program_file
from vramscope.processes.process import Process

_LIBRARY: Final = re.compile(r"/libpython(\d)\.(\d+)(t?)[^/]*\.so[^/]*$")
_INTERPRETER: Final = re.compile(r"python(\d)\.(\d+)(t?)$")
_FOLDER: Final = re.compile(r"/python(\d)\.(\d+)(t?)/(?:site-packages|dist-packages|lib-dynload)/")
_MODULE: Final = re.compile(r"\.cpython-(\d)(\d+)(t?)-[^/]*\.so$")
_TORCH: Final = re.compile(r"^(?P<folder>.*/torch)/lib/lib(?:torch|c10)[^/]*\.so")
_TORCH_LIBRARY: Final = re.compile(r"/lib(?:torch|torch_cpu|torch_python|c10)\.so[^/]*$")
_VERSION_LINE: Final = re.compile(
    rb"^__version__(?:\s*:[^=\n]+)?\s*=\s*['\"]([\w.+-]{1,60})['\"]", re.M
)

_WORDS: Final = (b"python", b"pypy", b"pt_main_thread", b"libtorch")


class PythonProgram(Struct, frozen=True):
    """A Python process, as far as one can see from outside.

    Args:
        version: such as ``(3, 12)``; ``None`` if nothing says it.
        torch: torch's version; "" if torch is loaded but its version is not known; ``None`` if
            it is not loaded, or this user may not know.
        torch_folder: where torch lies, as the process sees it.
        uses_nvidia: whether CUDA is up in it; ``None`` if this user may not know.
        layout: common to processes that are forks of each other; "" if not known.
        is_free_threaded: whether it is a build without the global interpreter lock.
    """

    version: tuple[int, int] | None
    torch: str | None
    torch_folder: str | None
    uses_nvidia: bool | None
    layout: str = ""
    is_free_threaded: bool = False


def may_run_python(pid: int) -> bool:
    """A first, quick look: ``False`` only if the process surely runs no Python.

    Raises:
        NoSuchProcess: it has ended.
    """
    raw = read_proc(pid, "maps")
    if raw is None:
        raw = (read_proc(pid, "cmdline") or b"") + (read_proc(pid, "comm") or b"")
    return any(word in raw for word in _WORDS)


def read_python_program(process: Process) -> PythonProgram | None:
    """What Python ``process`` runs; ``None`` if it runs none, as far as this user may know.

    Raises:
        NoSuchProcess: it has ended.
    """
    mapped = read_memory_map(process.pid)
    named = [process.exe or "", *process.argv[:1], process.name]
    if mapped is None:
        # Somebody else's: its command line and its name are all there is.
        if not any(map(is_python_name, named)):
            return None
        version, free_threaded = _version_in(named, _INTERPRETER)
        return PythonProgram(version, None, None, None, is_free_threaded=free_threaded)
    version, free_threaded = _version(process, mapped)
    if version is None and not is_python_name(process.exe or ""):
        return None
    folder = _torch_folder(mapped)
    return PythonProgram(
        version=version,
        torch=_torch_version(process, mapped, folder),
        torch_folder=folder,
        uses_nvidia=mapped.uses_nvidia,
        layout=mapped.layout,
        is_free_threaded=free_threaded,
    )


def _version(process: Process, mapped: MemoryMap) -> tuple[tuple[int, int] | None, bool]:
    paths = sorted(mapped.all_paths)
    evidence = [(paths, _LIBRARY), ([process.exe or ""], _INTERPRETER), (paths, _MODULE)]
    if is_python_name(process.exe or ""):
        # Programs of other kinds are installed into such folders too.
        evidence.append((paths, _FOLDER))
    for texts, pattern in evidence:
        version, free_threaded = _version_in(texts, pattern)
        if version is not None:
            return version, free_threaded
    return None, False


def _version_in(
    texts: Iterable[str], pattern: re.Pattern[str]
) -> tuple[tuple[int, int] | None, bool]:
    for text in texts:
        found = pattern.search(text)
        if found is not None:
            return (int(found[1]), int(found[2])), bool(found[3])
    return None, False


def _torch_folder(mapped: MemoryMap) -> str | None:
    folders = {found["folder"] for path in mapped.paths if (found := _TORCH.match(path))}
    return min(folders, default=None)


def _torch_version(process: Process, mapped: MemoryMap, folder: str | None) -> str | None:
    if folder is None:
        # A distribution's own package, or one that was replaced while the process runs.
        return "" if any(map(_TORCH_LIBRARY.search, mapped.all_paths)) else None
    path = os.path.join(folder, "version.py")
    source = read_program_file(process.pid, path, same_root=process.same_root is True)
    found = None if source is None else _VERSION_LINE.search(source)
    return "" if found is None else found[1].decode()
