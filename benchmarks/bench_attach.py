"""How long a process stands still when a line is put into it, and that it survives.

Without ``--pid``, programs that check their own results are started, reached into, and held to
account at the end. With ``--pid``, running processes are used: a line that does nothing is put into
them, and they are left running. ``--attach`` measures the whole instead, attach and detach in turn,
through a server at ``--url``. ``--kill`` kills the one who reaches in, by SIGKILL, at each stage in
turn. Prints one line of JSON for each process.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.attach_targets import COUNT, AttachTarget, attach_target
from vramscope.attaching.attach import attach_process, detach_process
from vramscope.injection import Interpreter, find_interpreter, inject
from vramscope.injection.stages import STAGES, AtStage

MODES = ("python", "malloc", "torch")
# A queue takes some 30 lines; a process that computes in C takes them out later.
LINES_AHEAD = 20
PAUSE_S = 0.002


def rounds_of_lines(interpreter: Interpreter, line: bytes, rounds: int) -> list[float]:
    """Time of each stop, in us, of lines put in one after the other."""
    stops: list[float] = []
    for number in range(rounds):
        stops.append(inject(interpreter, line).stopped_us)
        time.sleep(PAUSE_S if number % LINES_AHEAD else 10 * PAUSE_S)
    return stops


def rounds_of_attaching(pid: int, options: argparse.Namespace) -> list[float]:
    """Time of each stop, in us, of attaching and detaching in turn."""
    given = {"url": options.url, "token": options.token, "run": "bench-attach"}
    stops: list[float] = []
    for _ in range(options.rounds):
        stops.append(attach_process(pid, given, say=print_error).stopped_us)
        stops.append(detach_process(pid, say=print_error).stopped_us)
    return stops


def rounds_of_killing(interpreter: Interpreter, line: bytes, rounds: int) -> int:
    """Put lines in from children that die in the middle; how many did."""
    killed = 0
    for number in range(rounds):
        deadly = STAGES[number % len(STAGES)]
        child = os.fork()
        if child == 0:
            inject(interpreter, line, at_stage=dying_at(deadly))
            os._exit(0)
        killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        time.sleep(PAUSE_S)
    return killed


def dying_at(deadly: str) -> AtStage:
    """What kills this process at a stage."""

    def at_stage(name: str) -> None:
        if name == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    return at_stage


def print_error(text: str) -> None:
    """Say something that is no result."""
    print(text, file=sys.stderr)


def measure(interpreter: Interpreter, options: argparse.Namespace, line: bytes) -> dict[str, Any]:
    """All rounds in one process."""
    start_s = time.perf_counter()
    version = ".".join(map(str, interpreter.version))
    result: dict[str, Any] = {"benchmark": "attach", "python": version, "rounds": options.rounds}
    if options.kill:
        return result | {"killed": rounds_of_killing(interpreter, line, options.rounds)}
    if options.attach:
        stops = sorted(rounds_of_attaching(interpreter.pid, options))
    else:
        stops = sorted(rounds_of_lines(interpreter, line, options.rounds))
    return result | {
        "stopped_median_us": round(stops[len(stops) // 2]),
        "stopped_p99_us": round(stops[len(stops) * 99 // 100]),
        "stopped_max_us": round(stops[-1]),
        "round_ms": round((time.perf_counter() - start_s) / options.rounds * 1e3, 2),
    }


@contextlib.contextmanager
def started(mode: str, python: str) -> Iterator[AttachTarget]:
    """A program that checks its own results."""
    with (
        tempfile.TemporaryDirectory() as folder,
        attach_target(Path(folder), "working", mode, python) as target,
    ):
        yield target


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--pid", type=int, action="append", default=[])
    parser.add_argument("--python", default=sys.executable, help="runs the programs")
    parser.add_argument("--mode", action="append", choices=MODES, help="what they do; all")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--attach", action="store_true")
    parser.add_argument("--url")
    parser.add_argument("--token")
    options = parser.parse_args()
    for pid in options.pid:
        print(json.dumps(measure(find_interpreter(pid), options, b"pass\n") | {"pid": pid}))
    modes = [mode for mode in MODES if mode != "torch" or importlib.util.find_spec("torch")]
    for mode in () if options.pid else options.mode or modes:
        with started(mode, options.python) as target:
            result = measure(target.interpreter, options, COUNT)
            print(json.dumps(result | {"mode": mode, "target": target.end()}), flush=True)


if __name__ == "__main__":
    main()
