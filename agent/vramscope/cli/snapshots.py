"""``vramscope snapshots``: list the snapshots of a run, or download one."""

from __future__ import annotations

import contextlib
import json
import os
from datetime import datetime
from typing import Any, Final

from vramscope.cli.api_client import ApiClient, add_server_options
from vramscope.cli.one_line_parser import OneLineParser
from vramscope.cli.problem import Problem
from vramscope.cli.text_table import text_table
from vramscope.size_text import size_text

_HEAD: Final = ("ID", "RANK", "STEP", "TAKEN", "RECORDED", "SIZE", "STATE")


def execute(arguments: list[str]) -> int:
    """Print the snapshots, the latest first; or write one to a file."""
    options = _parser().parse_args(arguments)
    client = ApiClient.from_options(options)
    if options.download is not None:
        path = options.output or f"{options.download}.pickle"
        _download(client, options.download, path)
        return 0
    answer = client.get("runs", options.run, "snapshots")
    if options.json:
        print(json.dumps(answer))
        return 0
    snapshots: list[dict[str, Any]] = answer["snapshots"]
    print(text_table([_HEAD, *map(_row, snapshots)]))
    return 0


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="vramscope snapshots",
        description="List the snapshots of a run, or download one as a pickle for memory_viz.",
    )
    parser.add_argument("run", metavar="RUN", help="name or id of the run")
    add_server_options(parser)
    parser.add_argument("--json", action="store_true", help="print what the server says")
    parser.add_argument("--download", metavar="ID", help="write this one to a file")
    parser.add_argument("-o", "--output", metavar="FILE", help="which file (ID.pickle)")
    return parser


def _download(client: ApiClient, identity: str, path: str) -> None:
    """Write the pickle under another name first: a broken download leaves nothing."""
    part = f"{path}.part"
    try:
        with open(part, "wb") as file:
            size_bytes = client.download("snapshots", identity, "pickle", to=file)
        os.replace(part, path)
    except OSError as error:
        raise Problem(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)
    print(f"{path}: {size_text(size_bytes)}")


def _row(snapshot: dict[str, Any]) -> tuple[str, ...]:
    taken = datetime.fromtimestamp(snapshot["taken_ns"] / 1e9)
    state = str(snapshot["state"])
    if state in ("receiving", "incomplete"):
        state += (
            f" ({size_text(snapshot['received_bytes'])} of {size_text(snapshot['wire_bytes'])})"
        )
    return (
        str(snapshot["id"]),
        _known(snapshot["rank"]),
        _known(snapshot["step"]),
        taken.isoformat(" ", "seconds"),
        str(snapshot["name"] or snapshot["mode"]),
        size_text(snapshot["raw_bytes"]),
        state,
    )


def _known(value: int | None) -> str:
    return "-" if value is None else str(value)
