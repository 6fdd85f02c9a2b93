"""Findings of a file: a memory snapshot, or the report of an out-of-memory, whichever it is."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from vramscope.cli.diagnose_text import SEVERITIES
from vramscope.cli.problem import Problem
from vramscope.cli.progress_bar import ProgressBar

if TYPE_CHECKING:
    from vramscope_analysis.diagnosis.finding import Finding
    from vramscope_analysis.evidence.settings_trial import SettingsTrial
    from vramscope_analysis.moments.recorded_memory import RecordedMemory
    from vramscope_analysis.snapshot import Snapshot

_STDIN: Final = "-"
_PEEKED_BYTES: Final = 64


def findings_of_file(
    source: str, device: int | None, bar: ProgressBar
) -> tuple[str, list[dict[str, Any]]]:
    """What kind of file it is, and what is wrong in it, the most urgent first.

    Raises:
        Problem: there is no such file, or it is neither of the two.
    """
    name = "<stdin>" if source == _STDIN else source
    try:
        with _opened(source) as file:
            if file.peek(_PEEKED_BYTES)[:_PEEKED_BYTES].lstrip()[:1] == b"{":
                return "report of an out-of-memory", _sorted(_of_report(file, name))
            # By its path where it has one: it may be gigabytes, which are then not read whole.
            return "snapshot", _sorted(
                _of_snapshot(file if source == _STDIN else source, name, device, bar)
            )
    except OSError as error:
        raise Problem(f"{name}: expected a file, got: {error.strerror}") from None


def _opened(source: str) -> contextlib.AbstractContextManager[io.BufferedReader]:
    if source != _STDIN:
        if os.path.isdir(source):
            raise Problem(f"{source}: expected a file, got a directory")
        return open(source, "rb")
    if sys.stdin is None or sys.stdin.isatty():
        got = "nothing" if sys.stdin is None else "a terminal"
        raise Problem(f"expected a file on standard input, got {got}")
    return contextlib.nullcontext(cast("io.BufferedReader", sys.stdin.buffer))


def _of_report(file: BinaryIO, name: str) -> list[Finding]:
    from vramscope_analysis.diagnosis.oom import diagnose_oom
    from vramscope_analysis.evidence.oom_reading import (
        MAX_FILE_BYTES,
        OomReportError,
        looks_like_oom_report,
        oom_report_of,
        read_oom_report,
    )

    data = file.read(MAX_FILE_BYTES + 1)
    try:
        value = None if len(data) > MAX_FILE_BYTES else _json(data)
        # As the API gives it out: the report is one of several fields.
        within: Any = cast("dict[str, Any]", value).get("report") if type(value) is dict else None
        if looks_like_oom_report(within):
            return [diagnose_oom(oom_report_of(within))]
        return [diagnose_oom(read_oom_report(data))]
    except OomReportError as error:
        raise Problem(f"{name}: {error}") from None


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _of_snapshot(
    source: str | BinaryIO, name: str, device: int | None, bar: ProgressBar
) -> list[Finding]:
    from vramscope_analysis.moments.recorded_memory import RecordedMemory

    snapshot = _snapshot(source, bar)
    try:
        memory = RecordedMemory.of(snapshot, device)
    except ValueError as error:
        raise Problem(f"{name}: {error}") from None
    return _judged(memory, bar)


def _snapshot(source: str | BinaryIO, bar: ProgressBar) -> Snapshot:
    from vramscope_analysis.snapshot import SnapshotError, read_snapshot

    try:
        return read_snapshot(source, progress=bar.stage("reading"))
    except SnapshotError as error:
        raise Problem(str(error)) from None


def _judged(memory: RecordedMemory, bar: ProgressBar) -> list[Finding]:
    """The times out of memory that the recording shows, and all else; settings are tried once."""
    from vramscope_analysis.diagnosis.oom import oom
    from vramscope_analysis.diagnosis.oom_snapshot import oom_reports_of
    from vramscope_analysis.diagnosis.snapshot_verdict import diagnose_snapshot
    from vramscope_analysis.evidence.run_evidence import RankEvidence

    trials = _trials(memory, bar)
    reports = tuple(oom_reports_of(memory))
    return [
        *oom(RankEvidence(0, ooms=reports, trials=trials)),
        *diagnose_snapshot(memory, trials=trials),
    ]


def _trials(memory: RecordedMemory, bar: ProgressBar) -> tuple[SettingsTrial, ...]:
    """What a replay under other settings says; nothing where that cannot be, or takes minutes."""
    from vramscope_analysis.diagnosis.settings_advice import trials_of
    from vramscope_analysis.diagnosis.snapshot_verdict import MOST_REPLAYED
    from vramscope_analysis.replay import Recording, advise

    if not memory.has_history or memory.entries > MOST_REPLAYED:
        return ()
    try:
        recording = Recording.from_snapshot(memory.snapshot, memory.device)
        return trials_of(advise(recording, anew=True, progress=bar.stage("trying settings")))
    except ValueError:  # of no use to a replay
        return ()


def _sorted(findings: list[Finding]) -> list[dict[str, Any]]:
    """As JSON has them; what is severe first, and of that what is sure."""
    ordered = sorted(findings, key=lambda f: (-SEVERITIES.index(f.severity), -f.confidence))
    return [_plain(finding) for finding in ordered]


def _plain(finding: Finding) -> dict[str, Any]:
    text = json.dumps(asdict(finding), default=_number)
    # JSON has no NaN: what is not known is null.
    plain: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)
    return plain


def _number(value: object) -> object:
    """Numbers of numpy as Python's."""
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)
