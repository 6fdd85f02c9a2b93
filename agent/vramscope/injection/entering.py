"""Become the program of another process, in its namespaces, root, folder and user.

A program of its own (``python -I -S entering.py PID FD ARGV0 ARGUMENT...``, the environment on
standard input), because a process with threads cannot enter a user namespace and should run no
Python between fork and exec. What cannot be entered is written to the descriptor FD as
"ERRNO WORDS"; the descriptor is closed when the program starts.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Final

_NAMESPACES: Final = {
    "user": 0x10000000,
    "mnt": 0x00020000,
    "net": 0x40000000,
    "pid": 0x20000000,
}
"""CLONE_NEW... by name, in the order of entering: the first may give the right to the others."""

_WELCOME: Final = ("net",)
"""Not needed for more than comfort: a failure to enter is no failure."""

_REFUSED: Final = 126


class Refused(Exception):
    """A step is not possible."""

    def __init__(self, step: str, error: OSError) -> None:
        super().__init__(f"{step}: {error.strerror}")
        self.number = error.errno or 0


def main(pid: str, report: str, *arguments: str) -> None:
    """Enter and become the program; the exit code is its own, or 126."""
    os.set_inheritable(int(report), False)
    environment = _read_environment()
    try:
        _become(f"/proc/{pid}", list(arguments), environment)
    except Refused as error:
        os.write(int(report), f"{error.number} {error}".encode("utf-8", "surrogateescape"))
        os._exit(_REFUSED)


def _read_environment() -> dict[bytes, bytes]:
    pairs = (text.partition(b"=") for text in sys.stdin.buffer.read().split(b"\0") if text)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return {name: value for name, _, value in pairs}


def _become(folder: str, arguments: list[str], environment: dict[bytes, bytes]) -> None:
    """Open everything first: once inside, /proc is another one."""
    program = _step("open its program", lambda: os.open(f"{folder}/exe", os.O_RDONLY))
    root = _step("open its root", lambda: os.open(f"{folder}/root", os.O_PATH | os.O_DIRECTORY))
    here = _open_working_folder(folder, root)
    user, group, groups = _identity(folder)
    as_root = os.geteuid() == 0
    entered = [name for name, there in _foreign_namespaces(folder, as_root) if _enter(name, there)]
    _step("enter its root", lambda: _enter_root(root, here, bool(entered)))
    if "pid" in entered:
        _go_on_in_child()
    if as_root:
        _step("setgroups", lambda: os.setgroups(groups))
        _step("setgid", lambda: os.setresgid(group, group, group))
        _step("setuid", lambda: os.setresuid(user, user, user))
    _step("run its program", lambda: os.execve(program, arguments, environment))


def _step(name: str, work: Callable[[], int | None]) -> int:
    try:
        return work() or 0
    except OSError as error:
        raise Refused(name, error) from error


def _open_working_folder(folder: str, root: int) -> int:
    try:
        return os.open(f"{folder}/cwd", os.O_PATH | os.O_DIRECTORY)
    except OSError:
        return root


def _identity(folder: str) -> tuple[int, int, list[int]]:
    """Effective user and group, and further groups, as seen from here."""
    lines: dict[str, list[str]] = {}
    with open(f"{folder}/status", encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            lines[name] = value.split()
    groups = [int(group) for group in lines["Groups"]]
    return int(lines["Uid"][1]), int(lines["Gid"][1]), groups


def _foreign_namespaces(folder: str, as_root: bool) -> list[tuple[str, int]]:
    """Name and descriptor of each namespace that is another one than ours."""
    found: list[tuple[str, int]] = []
    for name in _NAMESPACES:
        # Root of the machine has all rights inside already, and would lose those outside.
        if name == "user" and as_root:
            continue
        path = f"{folder}/ns/{name}"
        try:
            if os.stat(path).st_ino != os.stat(f"/proc/self/ns/{name}").st_ino:
                found.append((name, os.open(path, os.O_RDONLY)))
        except OSError as error:
            if name not in _WELCOME:
                raise Refused(f"see its {name} namespace", error) from error
    return found


def _enter(name: str, descriptor: int) -> bool:
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, _NAMESPACES[name]) == 0:
        return True
    if name in _WELCOME:
        return False
    number = ctypes.get_errno()
    raise Refused(f"enter its {name} namespace", OSError(number, os.strerror(number)))


def _enter_root(root: int, here: int, has_entered: bool) -> None:
    """Its root, unless that is ours: only root may change it."""
    if has_entered or not os.path.samestat(os.stat(root), os.stat("/")):
        os.fchdir(root)
        os.chroot(".")
    os.fchdir(here)


def _go_on_in_child() -> None:
    """Only a child lives in the pid namespace; this process waits for it and ends like it."""
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(*sys.argv[1:])
