"""Doing something to each of several processes, and saying what came of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from vramscope.attaching.outcome import AttachError, Outcome
from vramscope.attaching.waiting import DEFAULT_WAIT_S
from vramscope.cli.printable import printable
from vramscope.notices import write_line

_BAD_INPUT: Final = frozenset({"gone", "self", "kernel"})
"""What is wrong with the number, rather than with the process."""
_INTERRUPTED: Final = 130
_MAX_WAIT_S: Final = 24 * 3600.0


def for_each_process(
    pids: Sequence[int],
    do: Callable[[int], Outcome],
    text_of: Callable[[Outcome], str],
    *,
    as_json: bool,
) -> int:
    """Do it to each process, whatever became of the others.

    Args:
        pids: the processes. One is printed as a JSON object, several as a list.
        do: does it; raises :class:`AttachError`.
        text_of: the line for a person.
        as_json: print what came of it as JSON, on standard output.

    Returns:
        Exit code: 0 when it was done to all, 1 when one refused or failed, 2 when one is none,
        130 when the user has interrupted it: what was not begun is left out.
    """
    results: list[dict[str, Any]] = []
    code = 0
    for pid in pids:
        try:
            outcome = do(pid)
        except AttachError as error:
            code = max(code, 2 if error.kind in _BAD_INPUT else 1)
            results.append({"pid": pid, "ok": False, "kind": error.kind, "message": str(error)})
            write_line(str(error))
            for line in error.detail.splitlines():
                print("    " + printable(line, keep=""), file=sys.stderr)
            continue
        except KeyboardInterrupt:
            code = _INTERRUPTED
            message = f"given up: process {pid} is not waited for any more"
            results.append({"pid": pid, "ok": False, "kind": "interrupted", "message": message})
            write_line(message)
            break
        results.append(msgspec.to_builtins(outcome))
        if not as_json:
            print(printable(text_of(outcome), keep=""), flush=True)
    if as_json:
        shown: object = results[0] if len(pids) == 1 else results
        print(msgspec.json.encode(shown).decode())
    return code


def add_process_options(parser: argparse.ArgumentParser) -> None:
    """Add what attach and detach have in common."""
    parser.add_argument(
        "pids", nargs="*", type=_process_number, metavar="PID", help="number of a process"
    )
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=DEFAULT_WAIT_S,
        metavar="SECONDS",
        help=f"how long a process may take to come back to Python ({DEFAULT_WAIT_S:g})",
    )
    parser.add_argument("--json", action="store_true", help="print what came of it as JSON")


def _process_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 31):
        raise argparse.ArgumentTypeError(f"expected the number of a process, got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _MAX_WAIT_S:
        raise argparse.ArgumentTypeError(f"expected seconds from 0 to a day, got {text!r}")
    return seconds
