"""``vramscope run``: run a script or module under the agent, in this very process."""

from __future__ import annotations

import argparse
import importlib.util
import os
from typing import Final

from vramscope import current
from vramscope.cli.agent_options import EPILOG, add_agent_options
from vramscope.cli.one_line_parser import OneLineParser
from vramscope.cli.problem import Problem
from vramscope.config import Config, ConfigError, load_config
from vramscope.identity.inheritance import Inheritance, bequeath
from vramscope.identity.secrets import seat_secret
from vramscope.launch import LaunchError, Program
from vramscope.lifecycle import ending_of
from vramscope.session import open_session_with
from vramscope.startup.arming import SWITCH
from vramscope.startup.startup_file import has_startup_file

_FLAGS: Final = frozenset(
    {
        *("--emulate", "--no-local-server", "--no-oom-reports", "--no-explain-growth"),
        *("--no-peaks", "-h", "--help"),
    }
)
"""Options without a value."""


def execute(arguments: list[str]) -> int:
    """Run the program; what it raises, ``SystemExit`` included, goes on to the interpreter."""
    options, program = split_arguments(arguments)
    config = _config(_parser().parse_args(options))
    if program is None:
        raise Problem("expected a script or -m MODULE to run: vramscope run [options] train.py ...")
    if config.emulate:
        _check_emulation()
    try:
        program.check()
    except LaunchError as error:
        raise Problem(str(error)) from None

    if program.is_launcher:
        return _run_launcher(program, config)

    session = current.session_or(lambda: open_session_with(config, program.display_name))
    session.bequeath()
    try:
        program.run(lambda error: session.ended(ending_of(error)))
    except LaunchError as error:
        session.detach()
        raise Problem(str(error), 1) from None
    return 0


def _run_launcher(program: Program, config: Config) -> int:
    """Run what starts the ranks, which is none of them; they attach by themselves."""
    if not has_startup_file():
        raise Problem(
            f"the processes that {program.display_name} starts would not be watched: vramscope is "
            "not installed here, only found; have it start vramscope run instead of python"
        )
    bequeath(Inheritance(config, seat_secret=seat_secret()))
    os.environ[SWITCH] = "1"
    try:
        program.run(lambda error: None)
    except LaunchError as error:
        raise Problem(str(error), 1) from None
    return 0


def _check_emulation() -> None:
    if importlib.util.find_spec("torch") is None:
        raise Problem("--emulate needs torch, which is not here; pip install torch")


def split_arguments(arguments: list[str]) -> tuple[list[str], Program | None]:
    """Tell our options from the program and its own arguments, which are not looked at."""
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word == "--":
            rest = arguments[at + 1 :]
            if rest[:1] == ["-m"]:
                return arguments[:at], _module(rest[1:])
            return arguments[:at], Program(rest[0], rest[1:]) if rest else None
        if word == "-m":
            return arguments[:at], _module(arguments[at + 1 :])
        if not word.startswith("-"):
            return arguments[:at], Program(word, arguments[at + 1 :])
        at += 1 if word in _FLAGS or "=" in word else 2
    return arguments, None


def _module(words: list[str]) -> Program:
    if not words:
        raise Problem("expected the name of a module behind -m")
    return Program(words[0], words[1:], is_module=True)


def _config(options: argparse.Namespace) -> Config:
    try:
        return load_config(**vars(options))
    except ConfigError as error:
        raise Problem(str(error)) from None


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="vramscope run",
        usage="vramscope run [options] [--] SCRIPT [arguments]  |  ... [--] -m MODULE [arguments]",
        description="Run a training script as python would, watched by the agent.",
        epilog=f"{EPILOG} Launchers too: vramscope run torchrun ... train.py",
        allow_abbrev=False,
    )
    add_agent_options(parser)
    return parser
