"""``vramscope runs``: list the runs that a server knows."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

from vramscope.cli.api_client import ApiClient, add_server_options
from vramscope.cli.one_line_parser import OneLineParser
from vramscope.cli.text_table import text_table
from vramscope.size_text import size_text

_HEAD: Final = ("ID", "NAME", "STATE", "RANKS", "STEP", "STARTED", "PEAK RESERVED", "DEVICE")


def execute(arguments: list[str]) -> int:
    """Print the runs, newest first."""
    parser = OneLineParser(prog="vramscope runs", description="List the runs.")
    add_server_options(parser)
    parser.add_argument("--json", action="store_true", help="print what the server says")
    options = parser.parse_args(arguments)
    runs: list[dict[str, Any]] = ApiClient.from_options(options).get("runs")
    if options.json:
        print(json.dumps(runs))
        return 0
    print(text_table([_HEAD, *map(_row, runs)]))
    return 0


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    started = datetime.fromtimestamp(run["started_ns"] / 1e9)
    device = str(run.get("device_name") or "-")
    step = run.get("step")
    return (
        str(run["id"]),
        str(run["name"]),
        str(run["state"]),
        str(run["world_size"]),
        "-" if step is None else str(step),
        started.isoformat(" ", "seconds"),
        size_text(run.get("peak_reserved_bytes"), "-"),
        f"{device} (emulated)" if run.get("emulated") and "emulated" not in device else device,
    )
