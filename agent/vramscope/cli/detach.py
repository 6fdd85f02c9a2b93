"""``vramscope detach``: have processes watch themselves no longer."""

from __future__ import annotations

from vramscope.attaching.attach import detach_process
from vramscope.attaching.outcome import Outcome
from vramscope.cli.each_process import add_process_options, for_each_process
from vramscope.cli.one_line_parser import OneLineParser
from vramscope.cli.problem import Problem
from vramscope.notices import write_line


def execute(arguments: list[str]) -> int:
    """Detach each process, however it came to be attached, and say what is left."""
    options = _parser().parse_args(arguments)
    if not options.pids:
        raise Problem("expected the number of a process; vramscope ps lists them")
    return for_each_process(
        list(dict.fromkeys(options.pids)),
        lambda pid: detach_process(pid, wait_s=options.wait, say=write_line),
        _text,
        as_json=options.json,
    )


def _text(outcome: Outcome) -> str:
    if outcome.already:
        return f"PID {outcome.pid}: {outcome.message}"
    return (
        f"detached from PID {outcome.pid}: run {outcome.run_name}, rank {outcome.rank}; "
        f"{outcome.message}"
    )


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="vramscope detach",
        usage="vramscope detach [options] PID [PID ...]",
        description="Have processes watch themselves no longer: hooks and threads go, the job goes "
        "on.",
        allow_abbrev=False,
    )
    add_process_options(parser)
    return parser
