"""A memory snapshot as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vramscope_analysis.snapshot.dicts import Dicts
from vramscope_analysis.snapshot.limits import Limits
from vramscope_analysis.snapshot.tables.building import Building
from vramscope_analysis.snapshot.tables.stacks import Frames, Stacks
from vramscope_analysis.snapshot.tables.tables import Blocks, Segments, Trace


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What ``torch.cuda.memory._snapshot()`` returns, as tables (PyTorch 2.4 to 2.14).

    ``traces`` has one table per device, ``blocks`` those of all ``segments``. ``settings`` is
    ``allocator_settings``, ``annotations`` ``external_annotations`` (2.5 and later),
    ``host_segments`` and ``host_trace`` are of pinned memory (2.14 and later); each is empty or
    None where the snapshot has none. ``keys`` are the keys at the top in their order and
    ``others`` the values of those that are not known.
    """

    segments: Segments
    blocks: Blocks
    traces: tuple[Trace, ...]
    stacks: Stacks
    frames: Frames
    settings: dict[str, Any]
    annotations: list[dict[str, Any]]
    host_segments: list[dict[str, Any]]
    host_trace: Trace | None
    keys: tuple[str, ...]
    others: Mapping[str, Any]

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], *, limits: Limits | None = None) -> Snapshot:
        """The tables of a snapshot in PyTorch's structure.

        SnapshotError for one that lacks what every version of PyTorch writes, or holds values of
        the wrong type.
        """
        # The other way round it is imported by that module at import time.
        from vramscope_analysis.snapshot.plain import snapshot_of

        return snapshot_of(plain, Building(Limits() if limits is None else limits))

    def to_plain(self) -> dict[str, Any]:
        """The snapshot in PyTorch's structure: equal to what was read, keys in the same order.

        Frames are shared between the lists that hold them, as PyTorch's own are.
        """
        return Dicts(self).snapshot()

    @property
    def devices(self) -> list[int]:
        """Devices that have segments or trace entries, ascending."""
        traced = {device for device, trace in enumerate(self.traces) if len(trace)}
        return sorted(traced | set(np.unique(self.segments.device).tolist()))

    def kept(self, key: str) -> Any:
        """The value of a key at the top that is no table: as it was read."""
        known: dict[str, Any] = {
            "allocator_settings": self.settings,
            "external_annotations": self.annotations,
            "host_segments": self.host_segments,
        }
        return known[key] if key in known else self.others[key]

    def segment(self, index: int, *, frames: bool = True) -> dict[str, Any]:
        """One segment with its blocks in PyTorch's structure, on request without any frames.

        For many at once: ``Dicts(snapshot, frames=...).segments(rows)``.
        """
        return Dicts(self, frames=frames).segments(np.array([index], np.intp))[0]

    def entry(self, device: int, index: int) -> dict[str, Any]:
        """One trace entry in PyTorch's structure."""
        return Dicts(self).entries(self.traces[device], np.array([index], np.intp))[0]
