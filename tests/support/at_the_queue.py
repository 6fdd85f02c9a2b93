"""A program that is always at its queue of pending calls, and a way to meet it there.

It holds the lock of the queue for nanoseconds: nobody sees that who looks from outside. So a test
takes the lock itself, and sees who comes to wait for it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator

from tests.support.attach_targets import wait_until
from vramscope.injection import native_wait
from vramscope.injection.process_status import read_process_status

AT_ITS_QUEUE = """
import ctypes, threading
nothing = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0)
add = ctypes.pythonapi.Py_AddPendingCall
is_enough = threading.Event()
def fill():
    while not is_enough.is_set():
        add(nothing, None)
filler = threading.Thread(target=fill)
print("ready", flush=True)
input()
filler.start()
print(filler.native_id, flush=True)
input()
add(nothing, None)
is_enough.set()
filler.join()
print("room again", flush=True)
while True:
    for _ in range(20):
        add(nothing, None)
"""
"""At the first line that it gets, a thread puts calls into the queue that nobody takes out; the
number of the thread is printed. At the second one, when that is over, the main thread does both."""


def fill_queue(job: subprocess.Popen[str]) -> int:
    """Have the program's thread come to the queue, and nobody else; the number of that thread."""
    assert job.stdin is not None
    assert job.stdout is not None
    print(file=job.stdin, flush=True)
    thread = int(job.stdout.readline())
    # On its way from print to input the main thread comes to the queue as well, to empty it. If it
    # meets a lock there that a test has taken, nobody is left who would give that back to it.
    wait_until(lambda: native_wait(job.pid).startswith("sleeping in read"))
    return thread


@contextlib.contextmanager
def stopped_while(pid: int, is_so: Callable[[], bool]) -> Iterator[None]:
    """A process that stands still, as by Ctrl-Z, at a moment at which something is so."""
    try:
        while True:
            os.kill(pid, signal.SIGSTOP)
            wait_until(lambda: _all_stand_still(pid))
            if is_so():
                break
            os.kill(pid, signal.SIGCONT)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _all_stand_still(pid: int) -> bool:
    # Each thread stops by itself, the main thread not as the last.
    threads = os.listdir(f"/proc/{pid}/task")
    return all(read_process_status(int(thread)).state == "T" for thread in threads)
