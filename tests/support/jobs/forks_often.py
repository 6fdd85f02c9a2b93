"""Forks on and on while another thread attaches and detaches it, or the agent watches it.

Each child does what children do: it imports, writes, logs, saves, asks the driver, and ends. Prints
what went wrong, as JSON: children that hung, or that found something of the agent's alive.
"""

from __future__ import annotations

import argparse
import functools
import json
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import vramscope

CHILD_ENDS_WITHIN_S = 20
LATE_MODULES = ("ctypes.util", "pynvml", "encodings.ascii", "http.client", "xml.dom.minidom", "ssl")


def child() -> int:
    """What a child does; 0 if nothing of the agent's is alive in it."""
    with vramscope.phase("of the child"):
        vramscope.log(loss=1.0)
        vramscope.step()
    for name in LATE_MODULES:
        __import__(name)
    sys.modules["pynvml"].nvmlDeviceGetCount()
    logging.getLogger("vramscope").warning("%s", "of the child")
    print("", end="", file=sys.stderr, flush=True)
    vramscope.detach()
    alive = [t.name for t in threading.enumerate() if t.name.startswith("vramscope")]
    return len(alive)


def forked(on: str) -> int:
    """Exit code of a child, -14 for one that hung; forked on the main or on another thread."""
    codes: list[int] = []

    def fork() -> None:
        pid = os.fork()
        if pid == 0:
            signal.alarm(CHILD_ENDS_WITHIN_S)
            code = 99
            try:
                code = child()
            finally:
                os._exit(code)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    if on == "main":
        fork()
    else:
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
    return codes[0]


def attaching(rounds: int) -> Callable[[], bool]:
    """Attach and detach on a thread of its own, as from outside; whether that goes on."""
    from vramscope import arrival

    def go_on() -> None:
        for _ in range(rounds):
            answers: list[dict[str, Any]] = []
            for action in ("attach", "detach"):
                arrival.act({"action": action}, answers.append)
            assert answers[-1]["ok"], answers

    thread = threading.Thread(target=go_on)
    thread.start()
    return thread.is_alive


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--forks", type=int, default=60)
    parser.add_argument("--attaches", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads: Python 3.12
    logging.basicConfig(filename=os.devnull)
    if options.attaches:
        goes_on = attaching(options.attaches)
    else:
        vramscope.attach()
        left = iter([True] * options.forks)
        goes_on = functools.partial(next, left, False)
    codes: list[int] = []
    while goes_on() and -signal.SIGALRM not in codes:
        codes.append(forked("main" if len(codes) % 3 else "other"))
        vramscope.step()
    print(json.dumps({"children": len(codes), "wrong": sorted(set(codes) - {0})}))


if __name__ == "__main__":
    main()
