"""Reads recorded windows: what the job asks for, and how it had gone under other settings.

Advice on settings has no other proof.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, BinaryIO, Final

from vramscope_analysis.diagnosis.snapshot_verdict import MOST_REPLAYED
from vramscope_analysis.evidence.recorded_window import RecordedWindow
from vramscope_analysis.evidence.settings_trial import SettingsTrial
from vramscope_analysis.moments.recorded_memory import RecordedMemory
from vramscope_analysis.replay.advice import advise
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import Snapshot, SnapshotError, read_snapshot
from vramscope_protocol.errors import VramscopeError
from vramscope_server.findings.evidence import GatheredEvidence
from vramscope_server.findings.judge_thread import JudgeHangs, JudgeThread
from vramscope_server.moments.recordings import READER_LIMITS

_logger = logging.getLogger("vramscope.findings")

LIMIT_S: Final = 900.0

_REST: Final = 1.0
"""The thread rests so many times as long as one replay took: others want the interpreter too."""


class SettingsTrials:
    """Looks into one window at a time, in a thread of its own.

    Args:
        evidence: has the windows, and takes what was found.
        open_now: opens the stored file of a snapshot; blocking.
        limit_s: longest time for one window.
    """

    def __init__(
        self,
        evidence: GatheredEvidence,
        open_now: Callable[[str], BinaryIO],
        limit_s: float = LIMIT_S,
    ) -> None:
        self._evidence = evidence
        self._open_now = open_now
        self._thread = JudgeThread(limit_s)
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a window is being looked into."""
        return self._task is not None and not self._task.done()

    def begin_next(self) -> None:
        """Begin with a window that waits, if none is being looked into."""
        if self._evidence.windows and not self.is_busy:
            key = next(iter(self._evidence.windows))
            snapshot = self._evidence.windows.pop(key)
            self._task = asyncio.create_task(
                self._look_into(key, snapshot), name="vramscope-trials"
            )

    async def stop(self) -> None:
        """End; what the thread is doing is not waited for."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        self._thread.stop()

    async def _look_into(self, key: tuple[str, int], snapshot: dict[str, Any]) -> None:
        run_id, rank = key
        run = self._evidence.run(run_id)
        gathered = None if run is None else run.ranks.get(rank)
        devices = [] if gathered is None else gathered.info.devices
        limit_bytes = devices[0].limit_bytes if devices else None
        try:
            read = await self._thread.call(lambda: self._read(snapshot["id"]))
            memory = RecordedMemory.of(read, snapshot["device"])
            # What it asks for is known at once; the replays may take minutes.
            window = await self._thread.call(lambda: RecordedWindow.of(memory))
            self._evidence.take_window(run_id, rank, window)
            trials = await self._thread.call(lambda: _trials(read, memory.device, limit_bytes))
        except (VramscopeError, SnapshotError, ValueError, OSError, JudgeHangs) as error:
            _logger.info("snapshot %s was not replayed: %s", snapshot["id"], error)
        except Exception:  # one window must not end all others
            _logger.exception("snapshot %s was not replayed", snapshot["id"])
        else:
            self._evidence.take_trials(run_id, rank, trials)

    def _read(self, snapshot_id: str) -> Snapshot:
        with self._open_now(snapshot_id) as file:
            return read_snapshot(file, limits=READER_LIMITS)


def _trials(snapshot: Snapshot, device: int, limit_bytes: int | None) -> tuple[SettingsTrial, ...]:
    entries = max((len(trace.action) for trace in snapshot.traces), default=0)
    if entries > MOST_REPLAYED:
        raise ValueError(f"expected at most {MOST_REPLAYED} entries, got {entries}")
    recording = Recording.from_snapshot(snapshot, device)
    begun_s = time.perf_counter()

    def rest(_done: int, _of: int) -> None:
        nonlocal begun_s
        time.sleep(_REST * (time.perf_counter() - begun_s))
        begun_s = time.perf_counter()

    found = advise(recording, limit_bytes=limit_bytes, anew=True, progress=rest)
    return tuple(SettingsTrial.of(each) for each in found)
