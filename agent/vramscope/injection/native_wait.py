"""What the main thread of a process is doing in the kernel, from /proc."""

from __future__ import annotations

import os
from typing import Final

from vramscope.injection.process_status import read_process_status

_STATES: Final = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting for a device",
    "T": "stopped",
    "t": "stopped by a tracer",
    "Z": "ended",
    "X": "ended",
}
# Those in which programs wait, as "number name"; from the kernel's tables of system calls.
_WAITING_CALLS: Final = {
    "x86_64": (
        "0 read 1 write 7 poll 16 ioctl 23 select 34 pause 35 nanosleep 42 connect 43 accept "
        "45 recvfrom 47 recvmsg 61 wait4 73 flock 202 futex 219 restart_syscall "
        "230 clock_nanosleep 232 epoll_wait "
        "247 waitid 270 pselect6 271 ppoll 281 epoll_pwait 288 accept4"
    ),
    "aarch64": (
        "22 epoll_pwait 29 ioctl 32 flock 63 read 64 write 72 pselect6 73 ppoll 95 waitid "
        "98 futex 101 nanosleep 115 clock_nanosleep 128 restart_syscall 202 accept 203 connect "
        "207 recvfrom 212 recvmsg 242 accept4 260 wait4"
    ),
}
# A time limit makes the kernel go on with a wait by this call, whatever it was before.
_INTERRUPTED: Final = "restart_syscall"
# Nothing, or where every system call passes.
_NO_PLACES: Final = ("", "0", "do_syscall_64", "el0_svc", "do_el0_svc")


def native_wait(pid: int) -> str:
    """State, system call and place in the kernel of the main thread, in words.

    Such as "sleeping in futex (futex_wait_queue)"; parts that may not be read are left out, and
    the whole is empty for a process that is gone.
    """
    try:
        state = read_process_status(pid).state
    except OSError:
        return ""
    words = _STATES.get(state, state)
    if state not in "SD":
        return words
    call = _system_call(_read(pid, "syscall"))
    place = _read(pid, "wchan")
    words += f" in {call}" if call else ""
    return f"{words} ({place})" if place not in _NO_PLACES else words


def _system_call(text: str) -> str:
    number = text.partition(" ")[0]
    if not number.isdecimal():
        return ""
    words = _WAITING_CALLS.get(os.uname().machine, "").split()
    names = dict(zip(words[::2], words[1::2], strict=True))
    name = names.get(number, f"system call {number}")
    return f"{name}, a wait that was interrupted before" if name == _INTERRUPTED else name


def _read(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
