"""``vramscope replay``: let a recorded job's allocations happen again, as recorded or otherwise."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from vramscope.cli.one_line_parser import OneLineParser
from vramscope.cli.print_answer import print_answer
from vramscope.cli.problem import Problem
from vramscope.cli.progress_bar import ProgressBar
from vramscope.cli.replay_answer import replay_answer
from vramscope.cli.replay_settings import changed, changes_of, limit_of
from vramscope.cli.replay_text import replay_text
from vramscope.config import ConfigError, parse_size
from vramscope.local.local_server import INSTALL_HINT

if TYPE_CHECKING:
    from vramscope_analysis.replay import Recording
    from vramscope_analysis.snapshot import Snapshot

_STDIN: Final = "-"
_HOW_TO_RECORD: Final = (
    "call torch.cuda.memory._record_memory_history(max_entries=1_000_000, context=None) before the "
    "first allocation and torch.cuda.memory._dump_snapshot(FILE) at the end"
)


def execute(arguments: list[str]) -> int:
    """Replay and print. 0 also when the job runs out of memory there: that is an answer."""
    options = _parser().parse_args(arguments)
    if importlib.util.find_spec("numpy") is None:
        raise Problem(f"replay needs numpy, which is not here; {INSTALL_HINT}")
    try:
        with ProgressBar() as bar:
            answer = _answer(options, bar)
    except KeyboardInterrupt:
        raise Problem("interrupted", 130) from None
    print_answer(json.dumps(answer) if options.json else replay_text(answer), 1)
    return 0


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="vramscope replay",
        description="Replay the allocations of a recorded job through a model of PyTorch's caching "
        "allocator: as recorded, under other settings, or on a device of another size.",
        epilog=f"To record a snapshot, {_HOW_TO_RECORD}.",
    )
    add = parser.add_argument
    add(
        "snapshot",
        metavar="SNAPSHOT",
        help="a pickle of _dump_snapshot(), also gzipped; - is stdin",
    )
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting as in PYTORCH_CUDA_ALLOC_CONF, in place of the recorded one; repeatable",
    )
    add("--capacity", metavar="SIZE", help="memory that the device has for the job, such as 24GiB")
    add("--device", type=int, metavar="N", help="which device (the one with the most events)")
    add("--torch", metavar="X.Y", help="torch release whose rules to follow (guessed)")
    add("--advise", action="store_true", help="try a grid of settings and rank them")
    add("--json", action="store_true", help="print one JSON object")
    return parser


def _answer(options: argparse.Namespace, bar: ProgressBar) -> dict[str, Any]:
    """Everything that is known about the job, as the JSON object that ``--json`` prints."""
    from vramscope_analysis.replay import advise, predict, replay_recorded

    capacity_bytes = _capacity(options.capacity)
    version = _version(options.torch)
    changes = changes_of(options.set)
    source = "<stdin>" if options.snapshot == _STDIN else options.snapshot
    recording = _recording(_read(options.snapshot, bar), source, options.device)
    settings = changed(recording.settings, changes, version or recording.version)
    limit_bytes = limit_of(settings, changes, capacity_bytes)
    given: dict[str, Any] = {"capacity_bytes": capacity_bytes, "limit_bytes": limit_bytes}

    advice = None
    try:
        report = replay_recorded(recording, version=version, progress=bar.stage("replaying"))
        given["version"] = report.version
        prediction = predict(recording, settings, progress=bar.stage("predicting"), **given)
        if options.advise:
            advice = advise(recording, progress=bar.stage("trying settings"), **given)
    except ValueError as error:
        raise Problem(f"{source}: the recording contradicts itself: {error}") from None
    return {
        "source": options.snapshot,
        "changed_settings": changes,
        **replay_answer(recording, report, prediction, advice, told_version=version),
    }


# ------------------------------------------------------------------------------------ what is given


def _capacity(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        capacity_bytes = parse_size(text)
    except ConfigError as error:
        raise Problem(f"--capacity: {error}") from None
    if capacity_bytes <= 0:
        raise Problem(f"--capacity: expected a size above 0, got {text!r}")
    return capacity_bytes


def _version(text: str | None) -> tuple[int, int] | None:
    from vramscope_analysis.allocator import NEWEST_VERSION, OLDEST_VERSION

    if text is None:
        return None
    match = re.match(r"(\d+)\.(\d+)(?:[.+].*)?$", text)
    version = (int(match[1]), int(match[2])) if match else None
    if version is None or not OLDEST_VERSION <= version <= NEWEST_VERSION:
        oldest, newest = (".".join(map(str, each)) for each in (OLDEST_VERSION, NEWEST_VERSION))
        raise Problem(f"--torch: expected a release from {oldest} to {newest}, got {text!r}")
    return version


def _read(source: str, bar: ProgressBar) -> Snapshot:
    from vramscope_analysis.snapshot import SnapshotError, read_snapshot

    if source != _STDIN and os.path.isdir(source):
        raise Problem(f"{source}: expected a snapshot file, got a directory")
    if source == _STDIN and (sys.stdin is None or sys.stdin.isatty()):
        got = "nothing" if sys.stdin is None else "a terminal"
        raise Problem(f"expected a snapshot on standard input, got {got}")
    try:
        file = sys.stdin.buffer if source == _STDIN else source
        return read_snapshot(file, progress=bar.stage("reading"))
    except SnapshotError as error:
        raise Problem(str(error)) from None
    except OSError as error:
        raise Problem(f"{source}: expected a snapshot file, got: {error.strerror}") from None


def _recording(snapshot: Snapshot, source: str, device: int | None) -> Recording:
    from vramscope_analysis.replay import Recording

    recorded = [at for at, trace in enumerate(snapshot.traces) if len(trace.action)]
    if not recorded:
        got = f"a snapshot without any; {_HOW_TO_RECORD}"
        raise Problem(f"{source}: expected recorded events, got {got}")
    if device is not None and device not in recorded:
        known = ", ".join(map(str, recorded))
        raise Problem(f"--device: expected one with recorded events ({known}), got {device}")
    try:
        return Recording.from_snapshot(snapshot, device)
    except ValueError as error:
        raise Problem(f"{source}: {error}") from None
