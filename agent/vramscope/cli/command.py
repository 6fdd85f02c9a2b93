"""``vramscope command``: send a command to a running job and print its receipts."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any, Final

from vramscope.cli.api_client import ApiClient, add_server_options
from vramscope.cli.one_line_parser import OneLineParser
from vramscope.cli.printable import printable
from vramscope.cli.problem import Problem
from vramscope.size_text import size_text
from vramscope_protocol.command_table import COMMANDS
from vramscope_protocol.commands import FINAL_STATES
from vramscope_protocol.user_commands import PREFIX

_POLL_S: Final = 0.2
_DEADLINE_S: Final = 30.0
_GRACE_S: Final = 5.0
"""Beyond the command's own deadline, for the last receipt to arrive."""


def execute(arguments: list[str]) -> int:
    """Send, wait and print. 0 when every rank did it, 1 when one refused, failed or expired."""
    options = _parser().parse_args(arguments)
    client = ApiClient.from_options(options)
    ranks = _ranks(options.ranks)
    given = dict(map(_split, options.param))
    is_to_confirm = not options.dry_run and not options.yes
    declared = _declared(client, options) if given or is_to_confirm else []
    if is_to_confirm:
        _confirm(options.name, options.run, declared)
    texts = _text_params(declared)
    body = {
        "name": options.name,
        "ranks": ranks,
        "params": {key: text if key in texts else _value(text) for key, text in given.items()},
        "dry_run": options.dry_run,
        "deadline_s": options.wait if options.wait else _DEADLINE_S,
    }
    posted = client.post("runs", options.run, "commands", body=body)
    wait_s = _DEADLINE_S if options.wait is None else options.wait
    command = _wait(client, options.run, str(posted["id"]), wait_s) if wait_s else posted
    print(json.dumps(command) if options.json else printable(_text(command), keep="\n\t"))
    return 0 if command["state"] == "done" or not wait_s else 1


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="vramscope command",
        description="Send a command to a running job.",
        epilog=f"Commands: {', '.join(sorted(COMMANDS))}, and {PREFIX}NAME for those of the job.",
    )
    parser.add_argument("run", metavar="RUN", help="name or id of the run")
    parser.add_argument("name", metavar="NAME", help="name of the command")
    add_server_options(parser)
    parser.add_argument("--ranks", default="all", metavar="0,1|all", help="which ranks (all)")
    parser.add_argument("--dry-run", action="store_true", help="say what it would do, do nothing")
    parser.add_argument(
        "--yes", action="store_true", help="do not ask whether training is to be changed"
    )
    parser.add_argument(
        "--param", action="append", default=[], metavar="KEY=VALUE", help="a parameter, repeatable"
    )
    parser.add_argument(
        "--wait",
        type=float,
        nargs="?",
        const=_DEADLINE_S,
        metavar="SECONDS",
        help=f"how long to wait for the receipts ({_DEADLINE_S:g}); 0 does not wait",
    )
    parser.add_argument("--json", action="store_true", help="print what the server says")
    return parser


def _ranks(text: str) -> list[int] | str:
    if text == "all":
        return text
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise Problem(f"--ranks: expected all or numbers separated by commas, got {text!r}")
    return [int(part) for part in parts]


def _split(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise Problem(f"--param: expected KEY=VALUE, got {text!r}")
    return key, value


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text  # not JSON: meant as text


def _declared(client: ApiClient, options: argparse.Namespace) -> list[dict[str, Any]]:
    """What the ranks of the job have declared of a command of its own."""
    if not options.name.startswith(PREFIX):
        return []
    found: Any = client.get("runs", options.run)
    return [
        command
        for rank in found.get("ranks") or ()
        for command in rank.get("user_commands") or ()
        if command["name"] == options.name
    ]


def _text_params(declared: list[dict[str, Any]]) -> frozenset[str]:
    """Parameters of a command of the job that are texts, whatever they look like."""
    params: list[Any] = [each for command in declared for each in command.get("params") or ()]
    return frozenset(each["name"] for each in params if each["kind"] in ("str", "choice"))


def _confirm(name: str, run: str, declared: list[dict[str, Any]]) -> None:
    """Ask before training is changed, where somebody can answer.

    Raises:
        Problem: nobody can, or the answer is no.
    """
    spec = COMMANDS.get(name)
    if spec is not None:
        changes, summary = spec.changes_training, spec.summary
    else:
        changes = any(command.get("changes_training") for command in declared)
        summary = declared[0].get("summary") or "declared by the job" if declared else ""
    if not changes:
        return
    if sys.stdin is None or not sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison]  # closed
        raise Problem(f"{name} changes what {run} trains, or when: say --yes to confirm it")
    print(printable(f"{name}: {summary}"), file=sys.stderr)
    print(f"This changes what {run} trains, or when. Go on? [y/N] ", end="", file=sys.stderr)
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Problem(f"{name} was not sent", 1)


def _wait(client: ApiClient, run: str, command_id: str, wait_s: float) -> dict[str, Any]:
    deadline_s = time.monotonic() + wait_s + _GRACE_S
    while True:
        command: dict[str, Any] = client.get("runs", run, "commands", command_id)
        if command["state"] in FINAL_STATES or time.monotonic() > deadline_s:
            return command
        time.sleep(_POLL_S)


def _text(command: dict[str, Any]) -> str:
    receipts: dict[str, dict[str, Any]] = command.get("receipts") or {}
    head = f"{command.get('name', 'command')} {command['id']}: {command['state']}"
    if command.get("note"):
        head += f"\n  {command['note']}"
    lines = [_receipt_text(rank, receipts[rank]) for rank in sorted(receipts, key=int)]
    return "\n".join([head, *lines])


def _receipt_text(rank: str, receipt: dict[str, Any]) -> str:
    parts = [f"rank {rank}: {receipt['state']}"]
    if receipt.get("step") is not None:
        parts.append(f"at step {receipt['step']}")
    if receipt.get("returned_bytes") is not None:
        parts.append(f"{size_text(receipt['returned_bytes'])} returned")
    if receipt.get("took_s") is not None:
        parts.append(f"took {receipt['took_s'] * 1e3:.1f} ms")
    text = "  " + ", ".join(parts)
    if receipt.get("message"):
        text += f"\n    {receipt['message']}"
    result = receipt.get("result")
    if result is not None:
        shown = result if isinstance(result, str) else json.dumps(result, indent=2)
        text += "\n" + shown
    return text
