"""Whether a process could import vramscope, asked of its own interpreter beside it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from vramscope._version import __version__
from vramscope.attaching.outcome import AttachError
from vramscope.injection.own_interpreter import run_own_interpreter
from vramscope.processes.memory_map import read_memory_map
from vramscope.processes.process import NoSuchProcess, Process

_ASK_TIMEOUT_S: Final = 60.0
_INSTALL_TIMEOUT_S: Final = 900.0
_SITE_PACKAGES: Final = re.compile(r"(/.+)/lib(?:64)?/python3\.\d+t?/site-packages/")
_KEPT: Final = (
    "PATH",
    "PWD",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "PYTHONNOUSERSITE",
    "PYTHONSAFEPATH",
    "PYTHONPLATLIBDIR",
    "PYTHONUTF8",
)
_START_FOLDER: Final = "PWD"
_KEPT_FOR_PIP: Final = ("PIP_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT", "UV_")
_FLAGS_THAT_MATTER: Final = frozenset("IEsSP")
"""Of the interpreter: those that change where it finds modules."""


class Importable(msgspec.Struct, frozen=True):
    """What the interpreter of a process said."""

    executable: str
    python: tuple[int, int]
    has_pip: bool
    version: str = ""
    """Of the vramscope that it finds; empty when it cannot be imported."""
    folders: tuple[str, ...] = ()
    """Where vramscope and what it needs were found."""
    error: str = ""
    is_missing: bool = False
    """Whether there is no vramscope at all, rather than one that does not work."""


def ask_importable(process: Process) -> Importable:
    """Run the interpreter of ``process`` once, as the process would, and have it try the import.

    Raises:
        AttachError: it could not be asked.
    """
    arguments = [*_interpreter_flags(process.argv), "-B", "-W", "ignore", "-c", _question()]
    completed = _run(process, arguments, {}, _ASK_TIMEOUT_S)
    try:
        return msgspec.json.decode(completed.stdout.strip(), type=Importable)
    except msgspec.DecodeError:
        last = _last_line(completed.stderr)
        raise AttachError(
            f"the Python of process {process.pid} does not say whether it has vramscope: {last}",
            "interpreter",
        ) from None


def check_importable(process: Process, importable: Importable) -> None:
    """Accept nothing but the version of this command, which the process will be told to use.

    Raises:
        AttachError: it has none, or another one, or one that does not work; with the command
            that installs the right one.
    """
    if importable.version == __version__:
        return
    command = shown_install_command(process, importable)
    if importable.version:
        what = f"has vramscope {importable.version}, and this is {__version__}"
    elif importable.is_missing:
        what = "cannot import vramscope"
    else:
        what = f"cannot import vramscope ({importable.error})"
    raise AttachError(
        f"the Python of process {process.pid} {what}; install it there with: {command} "
        "(or let --install do that)",
        "not_importable",
    )


def install(process: Process, importable: Importable) -> None:
    """Install vramscope for the interpreter of ``process``, as the user of the process.

    Raises:
        AttachError: that failed; pip's own words are in it.
    """
    if not importable.has_pip:
        raise AttachError(
            f"the Python of process {process.pid} has no pip; install vramscope there with: "
            f"{shown_install_command(process, importable)}",
            "install",
        )
    arguments = install_arguments()
    own = {k: v for k, v in os.environ.items() if k.upper().startswith(_KEPT_FOR_PIP)}
    completed = _run(process, arguments, own, _INSTALL_TIMEOUT_S)
    if completed.returncode:
        command = shown_install_command(process, importable)
        text = completed.stdout + completed.stderr
        raise AttachError(
            f"this failed with exit code {completed.returncode}: {command}", "install", text.strip()
        )


def install_arguments() -> list[str]:
    """What the interpreter is given to install the vramscope of this command."""
    return ["-m", "pip", "install", f"vramscope=={__version__}"]


def shown_install_command(process: Process, importable: Importable) -> str:
    """The command line that a person could type, for exactly this environment."""
    if importable.has_pip:
        command = [importable.executable, *install_arguments()]
    else:
        python = f"--python={importable.executable}"
        command = ["uv", "pip", "install", python, f"vramscope=={__version__}"]
    if process.container:
        command = ["nsenter", "--all", f"--target={process.pid}", *command]
    elif process.uids.effective != os.geteuid():
        command = ["sudo", "-u", process.user, *command]
    return shlex.join(command)


def interpreter_name(process: Process, environment: Mapping[str, str]) -> str | None:
    """The ``argv[0]`` by which the interpreter finds its virtual environment; ``None``: its own.

    It may be relative to the folder in which the job was started, and a job may call itself
    something else (setproctitle). Then the environment that it has loaded libraries from has to
    do, or the one that was active when it was started.
    """
    first = process.argv[0] if process.argv else ""
    if "/" in first and not first.startswith("/"):
        if os.path.lexists(f"/proc/{process.pid}/cwd/{first}"):
            return None
        candidates = [os.path.join(environment.get(_START_FOLDER, ""), first)]
    elif os.path.basename(first).startswith("python") or _exists(process, first):
        return None
    else:
        candidates = []
    candidates += [f"{folder}/bin/python" for folder in _loaded_environments(process.pid)]
    active = (environment.get(name, "") for name in ("VIRTUAL_ENV", "CONDA_PREFIX"))
    candidates += [f"{folder}/bin/python" for folder in active if folder]
    return next((each for each in candidates if _exists(process, each)), process.exe)


def environment_of(process: Process) -> dict[str, str]:
    """The variables that say where the interpreter finds modules, as the process was given them.

    Raises:
        AttachError: they may not be read.
    """
    try:
        raw = Path(f"/proc/{process.pid}/environ").read_bytes()
    except OSError as error:
        raise AttachError(
            f"the environment of process {process.pid}: {error.strerror}", "permission"
        ) from None
    variables: dict[str, str] = {}
    for entry in raw.split(b"\0"):
        name, equals, value = os.fsdecode(entry).partition("=")
        if equals and (name in _KEPT or name.upper().startswith(_KEPT_FOR_PIP)):
            variables.setdefault(name, value)
    return variables


def _run(
    process: Process, arguments: Sequence[str], extra: Mapping[str, str], timeout_s: float
) -> subprocess.CompletedProcess[str]:
    environment = environment_of(process)
    name = interpreter_name(process, environment)
    try:
        return run_own_interpreter(
            process.pid,
            arguments,
            environment={**environment, **extra},
            argv0=name,
            timeout_s=timeout_s,
        )
    except subprocess.TimeoutExpired:
        reason = f"it did not end within {timeout_s:g} s"
    except OSError as error:
        reason = str(error)
    raise AttachError(f"the Python of process {process.pid} cannot be run: {reason}", "interpreter")


def _interpreter_flags(argv: Sequence[str]) -> list[str]:
    """The flags that matter, of a command line as the interpreter itself reads it."""
    flags: list[str] = []
    words = iter(argv[1:])
    for word in words:
        if word.startswith("--check-hash"):
            next(words, None)
            continue
        if not word.startswith("-") or word.startswith("--") or word == "-":
            break
        for at, letter in enumerate(word):
            if letter in "cm":
                return flags
            if letter in "WX":  # the rest of the word is its value, or the next word
                if at + 1 == len(word):
                    next(words, None)
                break
            if letter in _FLAGS_THAT_MATTER:
                flags.append(f"-{letter}")
    return flags


def _loaded_environments(pid: int) -> list[str]:
    """Virtual environments from which a process has loaded libraries."""
    try:
        mapped = read_memory_map(pid)
    except NoSuchProcess:
        return []
    paths = mapped.all_paths if mapped is not None else ()
    folders = {found[1] for path in paths if (found := _SITE_PACKAGES.match(path))}
    return sorted(folder for folder in folders if _is_environment(pid, folder))


def _is_environment(pid: int, folder: str) -> bool:
    return os.path.lexists(f"/proc/{pid}/root{folder}/pyvenv.cfg")


def _exists(process: Process, path: str) -> bool:
    return path.startswith("/") and os.path.lexists(process.root + path)


def _question() -> str:
    return Path(__file__).with_name("question.py").read_text(encoding="utf-8")


def _last_line(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1][:300] if lines else "it wrote nothing"
