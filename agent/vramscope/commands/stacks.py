"""The Python stack of every thread as text, as Python itself prints one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vramscope.commands.call import Call, Handler
from vramscope.oom.thread_stacks import thread_stacks
from vramscope_protocol.commands import Receipt


def stack_handlers() -> Mapping[str, Handler]:
    """What runs the command."""
    return {"stacks": _stacks}


def _stacks(call: Call) -> Receipt:
    del call
    rows = thread_stacks(None)
    # Those of the job first: they are what is asked for.
    rows.sort(key=lambda row: (row["is_own"], row["name"] != "MainThread"))
    return Receipt("done", result="\n".join(_text(row) for row in rows))


def _text(row: dict[str, Any]) -> str:
    kind = "daemon thread" if row["daemon"] else "thread"
    owner = ", of vramscope" if row["is_own"] else ""
    lines = [f"{kind} {row['name']}{owner} (most recent call last):"]
    lines += [
        f'  File "{frame["file"]}", line {frame["line"]}, in {frame["function"]}'
        for frame in reversed(row["frames"])
    ]
    return "\n".join(lines) + "\n"
