"""A program that waits in the kernel with a time limit, and checks that it waited as long,
and that signals still have a stack of their own.

Usage: ``attach_waiting.py MODE UNTIL``, with MODE ``sleep``, ``select``, ``poll``, ``futex``,
``read`` or ``pause``. It says "ready", waits again and again until the file UNTIL exists, and
prints one line of JSON. ``pause`` waits for ever.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable

WAIT_S = 0.2
counted = 0


def alternate_stack() -> bytes:
    """Where signal handlers of this thread run: address, flags, size."""
    stack = ctypes.create_string_buffer(24)
    ctypes.CDLL(None).sigaltstack(None, stack)
    return stack.raw


def wait_by(mode: str) -> Callable[[], object]:
    """A function that waits for WAIT_S and returns whether it got what it waited for."""
    reading, writing = os.pipe()
    event = threading.Event()
    poll = select.poll()
    poll.register(reading, select.POLLIN)

    def read() -> bool:
        threading.Timer(WAIT_S, os.write, (writing, b"x")).start()
        return os.read(reading, 10) == b"x"

    def sleep() -> bool:
        time.sleep(WAIT_S)
        return True

    ways: dict[str, Callable[[], object]] = {
        "sleep": sleep,
        "select": lambda: select.select([reading], [], [], WAIT_S) == ([], [], []),
        "poll": lambda: poll.poll(int(WAIT_S * 1000)) == [],
        "futex": lambda: event.wait(WAIT_S) is False,
        "read": read,
        "pause": signal.pause,
    }
    return ways[mode]


def main(mode: str, until: str) -> None:
    """Wait until told to end."""
    wait = wait_by(mode)
    faulthandler.enable()
    stack = alternate_stack()
    done = wrong = 0
    print("ready", flush=True)
    ended = False
    while not ended:
        ended = os.path.exists(until)
        start_s = time.monotonic()
        as_expected = wait()
        waited_s = time.monotonic() - start_s
        done += 1
        as_expected = as_expected and alternate_stack() == stack
        wrong += not as_expected or waited_s < WAIT_S - 0.01
    print(json.dumps({"rounds": done, "wrong": wrong, "counted": counted}), flush=True)


main(*sys.argv[1:])
