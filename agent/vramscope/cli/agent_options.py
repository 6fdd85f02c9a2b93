"""The agent's options on a command line, for every command that attaches it somewhere."""

from __future__ import annotations

import argparse
from typing import Final

EPILOG: Final = (
    "Every option can also be given as VRAMSCOPE_ and its name in capitals, such as VRAMSCOPE_URL."
)


def add_agent_options(parser: argparse.ArgumentParser, *, emulation: bool = True) -> None:
    """Add every option of the agent, each ``None`` unless it is given.

    Args:
        parser: takes them; the names in its result are those that ``load_config`` knows.
        emulation: whether to offer the emulated device, which has to be there from the start.
    """
    add = parser.add_argument
    add("--url", metavar="URL", help="the server; default: the local one, found or started")
    add("--token", metavar="TOKEN", help="its token")
    add("--run", metavar="NAME", help="name of the run; default: the script's name")
    if emulation:
        help_text = "watch CPU tensors on an emulated GPU"
        add("--emulate", action="store_true", default=None, help=help_text)
        add("--capacity", metavar="SIZE", help="memory of the emulated GPU, such as 8GiB")
    add("--rate-hz", metavar="HZ", help="samples a second (10)")
    add("--cost-budget", metavar="FRACTION", help="CPU time that sampling may take (0.005)")
    add(
        "--no-peaks",
        dest="peaks",
        action="store_const",
        const=False,
        help="do not take the exact peak of each step",
    )
    add(
        "--parts-budget",
        metavar="FRACTION",
        help="step time that splitting steps into their parts may add (0.0005); 0 splits none",
    )
    add("--fields", metavar="A,B", help="series to stream instead of the default set")
    add(
        "--allow",
        metavar="WHAT",
        help="observe, control, or names of commands (control; observe with a server elsewhere)",
    )
    add("--launch-id", metavar="ID", help="the same on all ranks, where no launcher says so")
    add("--outbox-bytes", metavar="SIZE", help="memory for what is not delivered yet (16MiB)")
    add("--spool-bytes", metavar="SIZE", help="disk for what does not fit there (256MiB)")
    add("--spool-dir", metavar="FOLDER", help="folder for that")
    add("--snapshot-bytes", metavar="SIZE", help="disk there for snapshots on their way (1GiB)")
    add("--history-rule", metavar="RULE", help='record by itself: "above 90%% for 20 steps" (off)')
    add(
        "--no-oom-reports",
        dest="oom_reports",
        action="store_const",
        const=False,
        help="do not write down what is known when memory runs out",
    )
    add(
        "--no-explain-growth",
        dest="explain_growth",
        action="store_const",
        const=False,
        help="never look at which lines hold more and more memory",
    )
    add("--exit-timeout-s", metavar="S", help="how long the end may wait for delivery (1)")
    add(
        "--no-local-server",
        dest="local_server",
        action="store_const",
        const=False,
        help="start no server when none is given and none is running",
    )
