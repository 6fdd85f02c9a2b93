"""``vramscope attach``: have processes that run already watch themselves."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Final

from vramscope.attaching.attach import attach_process
from vramscope.attaching.outcome import Outcome
from vramscope.cli.agent_options import EPILOG, add_agent_options
from vramscope.cli.each_process import add_process_options, for_each_process
from vramscope.cli.one_line_parser import OneLineParser
from vramscope.cli.problem import Problem
from vramscope.config import OPTIONS, ConfigError, load_config
from vramscope.notices import write_line
from vramscope.processes.process import user_name
from vramscope.processes.training_processes import training_processes

_FROM_THE_START: Final = frozenset({"emulate", "capacity"})
"""Options that a process which runs already cannot be given."""


def execute(arguments: list[str]) -> int:
    """Attach to each process and say where its page is."""
    options = _parser().parse_args(arguments)
    agent_options = agent_options_of(options, os.environ)
    return for_each_process(
        _pids(options),
        lambda pid: attach_process(
            pid,
            agent_options,
            wait_s=options.wait,
            install_if_missing=options.install,
            say=write_line,
        ),
        _text,
        as_json=options.json,
    )


def agent_options_of(
    options: argparse.Namespace, environ: Mapping[str, str]
) -> dict[str, str | bool]:
    """What the agent is told: what was given here, as an argument or as a ``VRAMSCOPE_*`` variable.

    Raises:
        Problem: one of them cannot be used; better said here than by the process.
    """
    found: dict[str, str | bool] = {}
    for name in OPTIONS:
        if name in _FROM_THE_START:
            continue
        value = getattr(options, name)
        if value is None:
            value = environ.get(f"VRAMSCOPE_{name.upper()}") or None
        if value is not None:
            found[name] = value
    try:
        load_config({}, **found)
    except ConfigError as error:
        raise Problem(str(error)) from None
    return found


def _pids(options: argparse.Namespace) -> list[int]:
    pids: list[int] = list(dict.fromkeys(options.pids))
    if bool(pids) == options.all:
        raise Problem("expected either numbers of processes or --all; vramscope ps lists them")
    if not options.all:
        return pids
    own = user_name(os.geteuid())
    found = [
        each.pid
        for each in training_processes()
        if each.attachable and not each.attached and (each.user == own or os.geteuid() == 0)
    ]
    if not found:
        raise Problem("no training process here can be attached to; vramscope ps says why", 1)
    return found


def _text(outcome: Outcome) -> str:
    what = "already attached" if outcome.already else f"attached to PID {outcome.pid}"
    where = f"dashboard: {outcome.url}" if outcome.url else outcome.message
    if outcome.already:
        what += f": PID {outcome.pid}, run {outcome.run_name}, rank {outcome.rank}"
    else:
        what += f": run {outcome.run_name}, rank {outcome.rank}"
    return f"{what}; {where}"


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="vramscope attach",
        usage="vramscope attach [options] PID [PID ...]  |  vramscope attach [options] --all",
        description="Have training processes that run already watch themselves. They need not "
        "have been prepared; their Python has to be able to import vramscope.",
        epilog=f"{EPILOG} vramscope ps lists the training processes of this machine.",
        allow_abbrev=False,
    )
    add_process_options(parser)
    parser.add_argument(
        "--all", action="store_true", help="every training process here that can be attached to"
    )
    parser.add_argument(
        "--install", action="store_true", help="install vramscope for its Python if it is missing"
    )
    add_agent_options(parser, emulation=False)
    return parser
