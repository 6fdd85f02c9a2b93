"""The ``vramscope`` command. One file per subcommand; exit codes 0 done, 1 refused, 2 bad input."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from vramscope._version import __version__
from vramscope.cli.problem import Problem
from vramscope.notices import write_line

_COMMANDS: Final = {
    "demo": "a server and a training job to look at",
    "serve": "the server",
    "run": "run a training script under the agent",
    "attach": "attach to a training process that runs already",
    "detach": "leave a process that is attached",
    "ps": "list the training processes of this machine",
    "runs": "list the runs that a server knows",
    "command": "send a command to a running job",
    "snapshots": "list the snapshots of a run, or download one",
    "diagnose": "say what is wrong with a run, a snapshot or a report of running out of memory",
    "replay": "replay a recorded job, as it was or under other allocator settings",
    "token": "make, list and revoke tokens of the server",
}
"""Name of each subcommand, which is also its module's, and what it is for."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit code. ``run`` ends as its script ends."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help"):
        print(_usage())
        return 0 if given else 2
    if given[0] in ("-V", "--version"):
        print(f"vramscope {__version__}")
        return 0
    name, *rest = given
    if name not in _COMMANDS:
        write_line(f"no command {name!r}; expected one of: {', '.join(_COMMANDS)}")
        return 2
    try:
        module = import_module(f"vramscope.cli.{name}")
        code: int = module.execute(rest)
    except Problem as problem:
        write_line(str(problem))
        return problem.exit_code
    return code


def _usage() -> str:
    width = max(map(len, _COMMANDS)) + 2
    lines = [f"  {name:<{width}}{summary}" for name, summary in _COMMANDS.items()]
    head = "usage: vramscope COMMAND ...\n\nA live dashboard for the GPU memory of PyTorch jobs.\n"
    return "\n".join([head, *lines, "\n  vramscope COMMAND --help says more."])
