"""Reads from the store what the advice on the batch size of a rank rests on."""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec
import numpy as np

from vramscope_analysis.batch.batch_sizes import PASSES, SEEN, TOLD
from vramscope_analysis.batch.batch_steps import MOST_ROWS
from vramscope_analysis.evidence.columns import NO_ROWS, Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence, Stretch
from vramscope_protocol.account import MemoryPart, ProcessMemory
from vramscope_protocol.messages import RankInfo
from vramscope_server.store.events import EventFilter, list_events
from vramscope_server.store.store import Store

FIELDS: Final = (
    *(SEEN, PASSES, TOLD),
    *("step.peak_allocated_bytes", "step.peak_active_bytes", "step.peak_part"),
    *("allocated_bytes.all.current", "segment.all.current"),
    *(
        f"category.{name}_bytes"
        for name in ("parameters", "gradients", "optimizer_state", "buffers", "gradients_kept")
    ),
)
"""Columns that are read of each step."""

_OF_DEVICE: Final = ("device.used_bytes", "device.free_bytes", "device.other_bytes")
_SAMPLES_NS: Final = 60 * 10**9
_STEPS_BACK: Final = 20_000
"""More than a second has, which is what a stored step is behind."""
_MOST_PHASES: Final = 2000
_NOT_STRETCHES: Final = frozenset({"forward", "backward", "optimizer"})


class RankInfos(Protocol):
    """What is read of the registry."""

    def rank_info(self, run_id: str, rank: int) -> RankInfo | None:
        """What a rank said of itself when it registered last."""
        ...


class RankSteps:
    """Evidence of the newest life of a rank; blocking.

    Args:
        store: has everything.
        registry: knows the device of a rank.
    """

    def __init__(self, store: Store, registry: RankInfos) -> None:
        self._store = store
        self._registry = registry

    def read(self, run_id: str, rank: int, newest: int | None) -> RankEvidence:
        """What is known of a rank.

        Args:
            run_id: the run.
            rank: which of its processes.
            newest: the newest step that was heard of; None is none.
        """
        info = self._registry.rank_info(run_id, rank)
        device = info.devices[0] if info and info.devices else None
        steps = NO_ROWS if newest is None else self._steps(run_id, rank, newest)
        since_ns = int(steps.time_ns[0]) if len(steps) else 0
        outside = self._told(run_id, rank, "outside", "parts", list[MemoryPart])
        processes = self._told(run_id, rank, "processes", "processes", list[ProcessMemory])
        pid = info.pid if info else None
        return RankEvidence(
            rank,
            steps=steps,
            samples=self._samples(run_id, rank, int(steps.time_ns[-1]) if len(steps) else None),
            stretches=self._stretches(run_id, rank, since_ns),
            total_bytes=device.total_bytes if device else None,
            limit_bytes=device.limit_bytes if device else None,
            processes=tuple(
                {"pid": each.pid, "bytes": each.bytes, "own": each.pid == pid} for each in processes
            ),
            outside=tuple({"name": each.name, "bytes": each.bytes} for each in outside),
        )

    def _steps(self, run_id: str, rank: int, newest: int) -> Rows:
        found = self._store.steps(run_id, rank, FIELDS, max(0, newest - _STEPS_BACK))
        if not len(found.step):
            return NO_ROWS
        own = np.flatnonzero(found.life == found.life[-1])[-MOST_ROWS:]
        columns = {name: column[own] for name, column in found.columns.items()}
        return Rows(found.time_ns[own], columns, found.step[own])

    def _samples(self, run_id: str, rank: int, time_ns: int | None) -> Rows:
        """The newest reading of the driver."""
        if time_ns is None:
            return NO_ROWS
        found = self._store.series(run_id, rank, _OF_DEVICE, time_ns - _SAMPLES_NS)
        columns = {name: found.columns[name].maximum for name in _OF_DEVICE}
        return Rows(found.time_ns, columns)

    def _stretches(self, run_id: str, rank: int, since_ns: int) -> tuple[Stretch, ...]:
        chosen = EventFilter(start_ns=since_ns, kind="phase", rank=rank)
        found = self._store.read_now(lambda c: list_events(c, run_id, chosen, _MOST_PHASES))
        return tuple(
            Stretch(event["data"]["phase"], event["time_ns"], None, event["step"])
            for event in found
            if isinstance(event["data"].get("phase"), str)
            and event["data"]["phase"] not in _NOT_STRETCHES
        )

    def _told(self, run_id: str, rank: int, kind: str, field: str, of: Any) -> Any:
        """What an agent told last of one kind; nothing where it is of another version."""
        chosen = EventFilter(kind=kind, rank=rank)
        found = self._store.read_now(lambda c: list_events(c, run_id, chosen, 1))
        try:
            return msgspec.convert(found[0]["data"][field] if found else [], of)
        except (KeyError, msgspec.ValidationError):
            return []
