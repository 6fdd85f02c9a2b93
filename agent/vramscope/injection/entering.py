"""Become the program of another process, in its namespaces, root, folder, user and rights.

A program of its own (``python -I -S entering.py PID FD ARGV0 ARGUMENT...``, the environment on
standard input), because a process with threads cannot enter a user namespace and should run no
Python between fork and exec. What cannot be entered is written to the descriptor FD as
"ERRNO WORDS"; the descriptor is closed when the program starts.

The program may be anybody's: that of a container, say, entered by the root of the machine. So it
gets no right that the process has not, and while this program is in there, it is closed to all.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Final, NamedTuple

_USER: Final = "user"
_NAMESPACES: Final = {
    "mnt": 0x00020000,
    "net": 0x40000000,
    "pid": 0x20000000,
    _USER: 0x10000000,
}
"""CLONE_NEW... by name."""

_WELCOME: Final = ("net",)
"""Not needed for more than comfort: a failure to enter is no failure."""

_SET_DUMPABLE, _CAPBSET_READ, _CAPBSET_DROP, _SET_NO_NEW_PRIVS = 4, 23, 24, 38
"""Requests of prctl(2)."""

_REFUSED: Final = 126


class Refused(Exception):
    """A step is not possible."""

    def __init__(self, step: str, error: OSError) -> None:
        super().__init__(f"{step}: {error.strerror}")
        self.number = error.errno or 0


class Identity(NamedTuple):
    """Who a process is and what it may do, in the numbers of the user namespace of who asks."""

    user: int
    group: int
    groups: list[int]
    capabilities: int


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
    process = _step("open its folder", lambda: os.open(folder, os.O_PATH | os.O_DIRECTORY))
    program = _step("open its program", lambda: os.open(f"{folder}/exe", os.O_RDONLY))
    root = _step("open its root", lambda: os.open(f"{folder}/root", os.O_PATH | os.O_DIRECTORY))
    here = _open_working_folder(folder, root)
    namespaces = _foreign_namespaces(folder)
    outside = _identity(process)
    # From here on nobody inside may look into this process, or reopen its program by /proc.
    _step("close itself", lambda: _prctl(_SET_DUMPABLE, 0))

    as_root = os.geteuid() == 0
    if as_root and _USER in namespaces:
        # While all rights are still there: inside, these numbers may have no name.
        _step("setgroups", lambda: os.setgroups(outside.groups))
    entered = _enter_all(namespaces, root, here, as_root)
    if "pid" in entered:
        _go_on_in_child()
    inside = _identity(process) if _USER in entered else outside
    _step("give up rights", lambda: _give_up_rights(inside.capabilities, bool(entered)))
    _become_user(inside, _USER in entered)
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


def _identity(process: int) -> Identity:
    """Effective user and group, further groups, and permitted capabilities."""

    def opener(path: str, flags: int) -> int:
        return os.open(path, flags, dir_fd=process)

    lines: dict[str, list[str]] = {}
    try:
        with open("status", encoding="utf-8", errors="replace", opener=opener) as file:
            for line in file:
                name, _, value = line.partition(":")
                lines[name] = value.split()
    except OSError as error:
        raise Refused("read who it is", error) from error
    groups = [int(group) for group in lines["Groups"]]
    capabilities = int(lines["CapPrm"][0], 16)
    return Identity(int(lines["Uid"][1]), int(lines["Gid"][1]), groups, capabilities)


# -- namespaces and root ---------------------------------------------------------------------


def _foreign_namespaces(folder: str) -> dict[str, int]:
    """Descriptor of each namespace that is another one than ours, by name."""
    found: dict[str, int] = {}
    for name in _NAMESPACES:
        path = f"{folder}/ns/{name}"
        try:
            if os.stat(path).st_ino != os.stat(f"/proc/self/ns/{name}").st_ino:
                found[name] = os.open(path, os.O_RDONLY)
        except OSError as error:
            if name not in _WELCOME:
                raise Refused(f"see its {name} namespace", error) from error
    return found


def _enter_all(namespaces: dict[str, int], root: int, here: int, as_root: bool) -> list[str]:
    """Enter namespaces and root; the names of those that were entered.

    The user namespace comes first where it gives the right to the others, and last for root, who
    loses all rights outside by it.
    """
    entered: list[str] = []
    if not as_root and _enter_if_any(_USER, namespaces):
        entered.append(_USER)
    entered += [name for name in _NAMESPACES if name != _USER and _enter_if_any(name, namespaces)]
    _step("enter its root", lambda: _enter_root(root, here, bool(entered)))
    if as_root and _enter_if_any(_USER, namespaces):
        entered.append(_USER)
    return entered


def _enter_if_any(name: str, namespaces: dict[str, int]) -> bool:
    descriptor = namespaces.get(name)
    if descriptor is None:
        return False
    try:
        _checked(_libc().setns(descriptor, _NAMESPACES[name]))
    except OSError as error:
        if name in _WELCOME:
            return False
        raise Refused(f"enter its {name} namespace", error) from error
    return True


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


# -- rights and user -------------------------------------------------------------------------


def _give_up_rights(capabilities: int, has_entered: bool) -> None:
    """Let no program that is run from now on have more than these capabilities.

    Raises:
        PermissionError: they cannot be given up, and the program is not of our own place.
    """
    _prctl(_SET_NO_NEW_PRIVS, 1)
    number = 0
    while (held := _ask_prctl(_CAPBSET_READ, number)) >= 0:
        if held and not capabilities >> number & 1:
            try:
                _prctl(_CAPBSET_DROP, number)
            except PermissionError:
                # Without namespaces of its own it is a program that we could as well run ourselves.
                if has_entered:
                    raise
                return
        number += 1


def _become_user(identity: Identity, in_user_namespace: bool) -> None:
    """Its user and groups, as far as they are not ours; afterwards nothing can be entered."""
    if set(os.getgroups()) != set(identity.groups):
        try:
            os.setgroups(identity.groups)
        except OSError as error:
            # A namespace made by a user without rights forbids it: the groups stay that user's.
            if not in_user_namespace:
                raise Refused("setgroups", error) from error
    group, user = identity.group, identity.user
    if os.getresgid() != (group, group, group):
        _step("setgid", lambda: os.setresgid(group, group, group))
    if os.getresuid() != (user, user, user):
        _step("setuid", lambda: os.setresuid(user, user, user))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(request: int, value: int) -> None:
    _checked(_ask_prctl(request, value))


def _ask_prctl(request: int, value: int) -> int:
    result: int = _libc().prctl(request, *map(ctypes.c_ulong, (value, 0, 0, 0)))
    return result


def _checked(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main(*sys.argv[1:])
