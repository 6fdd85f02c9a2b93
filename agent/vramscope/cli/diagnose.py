"""``vramscope diagnose``: what is wrong with a run, a snapshot, or a report of an out-of-memory."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import time
from typing import Any, Final

from vramscope.cli.api_client import ApiClient, add_server_options
from vramscope.cli.diagnose_text import SEVERITIES, diagnose_text
from vramscope.cli.one_line_parser import OneLineParser
from vramscope.cli.print_answer import print_answer
from vramscope.cli.problem import Problem
from vramscope.cli.progress_bar import ProgressBar
from vramscope.local.local_server import INSTALL_HINT

_STDIN: Final = "-"
_FILE: Final = re.compile(r"[/\\]|\.(?:pickle|pkl|json|gz)$")
_MOST_FINDINGS: Final = 1000
_LONGEST_WAIT_S: Final = 10.0
_PAUSE_S: Final = 0.25
_JUST_NOW_NS: Final = 60 * 10**9


def execute(arguments: list[str]) -> int:
    """Print what is wrong. 1 if a finding is as severe as ``--fail-on``, else 0."""
    options = _parser().parse_args(arguments)
    try:
        answer = _answer(options)
    except KeyboardInterrupt:
        raise Problem("interrupted", 130) from None
    print_answer(json.dumps(answer) if options.json else diagnose_text(answer), 2)
    least = SEVERITIES.index(options.fail_on)
    # A severity of a later release is taken for the worst: a gate must not let it through.
    fails = any(
        severity not in SEVERITIES or SEVERITIES.index(severity) >= least
        for severity in (finding["severity"] for finding in answer["findings"])
    )
    return 1 if fails else 0


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="vramscope diagnose",
        description="Say what is wrong: with a run that a server knows, with a memory snapshot, or "
        "with the report that a job wrote when it ran out of memory. Files are judged here, "
        "without a server and without a GPU.",
        epilog="Exit codes: 0 nothing is as severe as --fail-on, 1 something is, 2 bad usage or "
        "input.",
    )
    add = parser.add_argument
    add(
        "source",
        metavar="RUN|SNAPSHOT|OOM-DUMP",
        help="name or id of a run, or a file: a pickle of _dump_snapshot(), also gzipped, or an "
        "oom-*.json; - is a file on stdin",
    )
    add(
        "--fail-on",
        choices=SEVERITIES,
        default=SEVERITIES[-1],
        metavar="SEVERITY",
        help=f"exit with 1 from this severity on: {', '.join(SEVERITIES)} (critical)",
    )
    add("--device", type=int, metavar="N", help="of a snapshot: which device (the busiest)")
    add_server_options(parser)
    add("--json", action="store_true", help="print one JSON object")
    return parser


def _answer(options: argparse.Namespace) -> dict[str, Any]:
    source: str = options.source
    is_path = _FILE.search(source) is not None
    # A folder may well be called as a run is: results lie in it.
    if source == _STDIN or (os.path.exists(source) and (is_path or not os.path.isdir(source))):
        return _of_file(source, options.device)
    if is_path:
        raise Problem(f"{source}: expected a run or a file, got neither: there is no such file")
    return _of_run(ApiClient.from_options(options), source)


def _of_file(source: str, device: int | None) -> dict[str, Any]:
    if importlib.util.find_spec("numpy") is None:
        raise Problem(f"judging a file needs numpy, which is not here; {INSTALL_HINT}")
    from vramscope.cli.diagnose_file import findings_of_file

    with ProgressBar() as bar:
        kind, findings = findings_of_file(source, device, bar)
    return {"source": source, "of": kind, "findings": findings}


def _of_run(client: ApiClient, run: str) -> dict[str, Any]:
    """What holds now, or held when the run ended; what was muted is nobody's business here."""
    found = client.get("runs", run)
    deadline_s = time.monotonic() + _LONGEST_WAIT_S
    while True:
        answer = client.get("runs", run, "findings", state="verdict", limit=str(_MOST_FINDINGS))
        if not _is_awaited(found, answer) or time.monotonic() > deadline_s:
            break
        time.sleep(_PAUSE_S)
    findings = [finding for finding in answer["findings"] if not finding.get("muted")]
    findings.sort(key=_urgency)
    return {
        "source": run,
        "of": "run",
        "run": {key: found.get(key) for key in ("id", "name", "state", "step", "world_size")},
        "judged_ns": answer.get("judged_ns"),
        "findings": findings,
    }


def _is_awaited(run: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether the run has ended just now, and its end is not judged yet. Without waiting, a gate
    behind a short job would let everything through."""
    ended_ns = run.get("ended_ns")
    if ended_ns is None or time.time_ns() - ended_ns > _JUST_NOW_NS:
        return False
    return bool((answer.get("judged_ns") or 0) < ended_ns)


def _urgency(finding: dict[str, Any]) -> tuple[int, int]:
    severity = finding["severity"]
    rank = SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)
    return -rank, -int(finding.get("opened_ns") or 0)
