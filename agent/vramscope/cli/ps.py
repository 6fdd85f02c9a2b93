"""``vramscope ps``: the training processes of this machine, and which can be attached to."""

from __future__ import annotations

import sys
from typing import Final

import msgspec

from vramscope.cli.one_line_parser import OneLineParser
from vramscope.cli.text_table import text_table
from vramscope.notices import write_line
from vramscope.processes.training_processes import TrainingProcess, training_processes
from vramscope.size_text import size_text

_HEAD: Final = ("PID", "USER", "GPU", "MEMORY", "PYTHON", "TORCH", "ATTACHABLE", "COMMAND")
_RIGHT: Final = (0, 3)


def execute(arguments: list[str]) -> int:
    """Print the processes, oldest first."""
    parser = OneLineParser(
        prog="vramscope ps",
        description="List the training processes of this machine: Python processes in which torch "
        "is loaded, that hold memory of a GPU, or that are watched already. Nothing is stopped or "
        "asked for it.",
    )
    add = parser.add_argument
    add("--all", action="store_true", help="launchers, workers and other Python processes too")
    add("--json", action="store_true", help="print a list of objects, with everything known")
    options = parser.parse_args(arguments)
    # One reading even for the short list: what this user may not look into is told, not hidden.
    found = training_processes(everything=True)
    listed = found if options.all else [each for each in found if each.role == "training"]
    if options.json:
        sys.stdout.write(msgspec.json.encode(listed).decode() + "\n")
        return 0
    if listed:
        print(text_table([_HEAD, *map(_row, listed)], right=_RIGHT))
        _say_what_helps(listed)
    else:
        write_line("no training process here; vramscope run train.py starts one, watched")
    _say_what_is_hidden([each for each in found if each not in listed])
    return 0


def _row(each: TrainingProcess) -> tuple[str, ...]:
    return (
        str(each.pid),
        each.user,
        ",".join(str(use.index) for use in each.gpus) or ("-" if each.gpu_bytes == 0 else "?"),
        size_text(each.gpu_bytes, "?") if each.gpu_bytes != 0 else "-",
        each.python or "?",
        each.torch or ("?" if each.torch == "" or not each.readable else "-"),
        _attachable(each),
        _command(each),
    )


def _attachable(each: TrainingProcess) -> str:
    if each.attached:
        return "attached"
    return "yes" if each.attachable else f"no: {each.obstacle}"


def _command(each: TrainingProcess) -> str:
    notes: list[str] = []
    if each.workers:
        notes.append(f"{each.workers} worker{'s' * (each.workers > 1)}")
    if each.container:
        notes.append("container")
    if each.role != "training":
        notes.append(f"{each.role} of {each.parent}" if each.parent else each.role)
    return f"{each.command}  [{', '.join(notes)}]" if notes else each.command


def _say_what_helps(listed: list[TrainingProcess]) -> None:
    """Why each process cannot be attached to, where somebody can do something about it."""
    for each in listed:
        if each.role == "training" and not each.attachable and not each.attached:
            fix = f"; {each.fix}" if each.fix else ""
            write_line(f"PID {each.pid} cannot be attached to: {each.why_not}{fix}")


def _say_what_is_hidden(others: list[TrainingProcess]) -> None:
    hidden = [each for each in others if not each.readable and each.role == "other"]
    if hidden:
        pids = ", ".join(str(each.pid) for each in hidden[:8]) + ", ..." * (len(hidden) > 8)
        write_line(f"Python processes of other users may train too, root can tell: {pids}")
