"""Replays recorded windows with larger batches, in a thread of its own, and keeps the answers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Final

from vramscope_analysis.batch.batch_advice import BatchAdvice
from vramscope_analysis.batch.refined_advice import refined_advice
from vramscope_analysis.batch.scaled_window import ScaledWindow
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import SnapshotError, read_snapshot
from vramscope_protocol.errors import VramscopeError
from vramscope_server.findings.judge_thread import JudgeHangs, JudgeThread
from vramscope_server.moments.recordings import READER_LIMITS

_logger = logging.getLogger("vramscope.batch")

LIMIT_S: Final = 300.0
MOST_CALLS: Final = 400_000
"""A window with more is not replayed: it is gone through some twenty times."""
WITH_HISTORY: Final = frozenset({"alloc", "all"})

_MOST_KEPT: Final = 64
_ALIKE: Final = 200
"""Room and cost of a sample that differ by less than one in so many are the same question."""

Key = tuple[str, int, tuple[int, ...], int, int]


@dataclass(frozen=True)
class Window:
    """A recorded window.

    Args:
        snapshot: id.
        device: index of the device in it.
        batch: samples of a forward pass in it.
        first_end_us: when its first step ended.
    """

    snapshot: str
    device: int
    batch: int
    first_end_us: int | None = None


class WindowReplays:
    """Lives on the event loop but for the replays.

    Args:
        open_now: opens the stored file of a snapshot; blocking.
        limit_s: longest time for one question.
    """

    def __init__(self, open_now: Callable[[str], BinaryIO], limit_s: float = LIMIT_S) -> None:
        self._open_now = open_now
        self._thread = JudgeThread(limit_s)
        self._answers: OrderedDict[Key, BatchAdvice | None] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        self._read: tuple[str, ScaledWindow] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a window is being replayed."""
        return self._task is not None and not self._task.done()

    def refined(self, advice: BatchAdvice, window: Window) -> BatchAdvice:
        """The advice with what a replay has said; where none has, one begins."""
        key = _key(advice, window)
        if key not in self._answers:
            if not self.is_busy:
                self._task = asyncio.create_task(
                    self._replay(key, advice, window), name="vramscope-batch-replay"
                )
            return advice
        self._answers.move_to_end(key)
        found = self._answers[key]
        if found is None:
            return advice
        # Of now is all but what the replay was about.
        return replace(
            advice,
            batch=found.batch,
            low=found.low,
            high=None if advice.high is None else max(advice.high, found.batch),
            is_replayed=True,
            retries=found.retries,
        )

    async def stop(self) -> None:
        """End; what the thread is doing is not waited for."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        self._thread.stop()

    async def _replay(self, key: Key, advice: BatchAdvice, window: Window) -> None:
        found: BatchAdvice | None = None
        try:
            found = await self._thread.call(lambda: self._look_into(advice, window))
        except (VramscopeError, SnapshotError, ValueError, OSError, JudgeHangs) as error:
            _logger.info("snapshot %s was not replayed: %s", window.snapshot, error)
        except Exception:  # one window must not end all others
            _logger.exception("snapshot %s was not replayed", window.snapshot)
        self._answers[key] = found
        while len(self._answers) > _MOST_KEPT:
            self._answers.popitem(last=False)

    def _look_into(self, advice: BatchAdvice, window: Window) -> BatchAdvice:
        if self._read is None or self._read[0] != window.snapshot:
            with self._open_now(window.snapshot) as file:
                snapshot = read_snapshot(file, limits=READER_LIMITS)
            recording = Recording.from_snapshot(snapshot, window.device)
            scaled = ScaledWindow(recording, window.first_end_us)
            if len(scaled) > MOST_CALLS:
                raise ValueError(f"expected at most {MOST_CALLS} calls, got {len(scaled)}")
            self._read = window.snapshot, scaled
        begun_s = time.perf_counter()

        def rest() -> None:  # others want the interpreter too
            nonlocal begun_s
            time.sleep(time.perf_counter() - begun_s)
            begun_s = time.perf_counter()

        return refined_advice(advice, self._read[1], window.batch, rest)


def newest_window(
    snapshots: list[dict[str, Any]], rank: int, sizes: Mapping[int, int], since_ns: int
) -> Window | None:
    """The newest window of a rank that shows steps of one known size.

    Args:
        snapshots: of the run, the latest first.
        rank: which of its processes.
        sizes: samples of a forward pass by step.
        since_ns: when the present life of the rank began, as far as it is known.
    """
    for snapshot in snapshots:
        if (
            snapshot["rank"] == rank
            and snapshot["state"] == "complete"
            and snapshot["mode"] in WITH_HISTORY
            and snapshot["device"] is not None
            and snapshot["taken_ns"] >= since_ns
        ):
            batches = {sizes.get(step) for step, _ in snapshot["steps"]}
            batch = batches.pop() if len(batches) == 1 else None
            if batch is not None:
                first_end_us = int(snapshot["steps"][0][1])
                return Window(snapshot["id"], snapshot["device"], batch, first_end_us)
    return None


def _key(advice: BatchAdvice, window: Window) -> Key:
    model, room = advice.model, advice.room
    digits = -max(len(str(int(model.sample_bytes))) - 3, 0)
    return (
        window.snapshot,
        window.batch,
        model.sizes,
        int(round(model.sample_bytes, digits)),
        room.allowed_bytes // max(room.limit_bytes // _ALIKE, 1),
    )
