"""Recordings as columns, made entry by entry or by the model of the allocator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from vramscope_analysis.allocator import (
    AddressSpace,
    AllocatorSettings,
    CachingAllocator,
    FirstFitAddresses,
    Version,
)
from vramscope_analysis.replay.recording import Events, Recording
from vramscope_analysis.snapshot import Action

KIB = 1 << 10
MIB = 1 << 20
BASE = 0x7F00_0000_0000
DEVICE_BYTES = 1 << 37

Entry = tuple[str, int, int, int, tuple[int, int]]
"""(action, address, size, stream, pool id)."""

NUMBERS = {action.word: int(action) for action in Action}

SEGMENT_KEYS = (
    "address",
    "total_size",
    "allocated_size",
    "active_size",
    "requested_size",
    "stream",
    "segment_type",
    "is_expandable",
)


def entry(
    action: str, address: int, size_bytes: int, stream: int = 0, pool_id: tuple[int, int] = (0, 0)
) -> Entry:
    """One trace entry; the address counts from a base that no test cares about."""
    return action, BASE + address, size_bytes, stream, pool_id


def block(size_bytes: int, requested_bytes: int = 0, state: str = "") -> dict[str, Any]:
    """One block of a segment: allocated if it has a requested size and no other state."""
    default = "active_allocated" if requested_bytes else "inactive"
    return {"size": size_bytes, "requested_size": requested_bytes, "state": state or default}


def segment(
    address: int,
    blocks: Sequence[dict[str, Any]],
    *,
    stream: int = 0,
    pool_id: tuple[int, int] = (0, 0),
    is_small: bool = False,
    is_expandable: bool = False,
) -> dict[str, Any]:
    """One segment of the end of a recording."""
    total_bytes = sum(one["size"] for one in blocks)
    active = [one for one in blocks if one["state"] != "inactive"]
    return {
        "device": 0,
        "address": BASE + address,
        "total_size": total_bytes,
        "allocated_size": sum(o["size"] for o in active if o["state"] == "active_allocated"),
        "active_size": sum(one["size"] for one in active),
        "requested_size": sum(one["requested_size"] for one in active),
        "stream": stream,
        "segment_type": "small" if is_small else "large",
        "segment_pool_id": pool_id,
        "is_expandable": is_expandable,
        "blocks": list(blocks),
    }


def recording_of(
    entries: Sequence[Entry],
    segments: Iterable[dict[str, Any]] = (),
    settings: AllocatorSettings | None = None,
    *,
    version: Version = (2, 11),
    stacks: Sequence[int] | None = None,
) -> Recording:
    """A recording with these entries that ends with these segments."""
    names_pools = version >= (2, 12)
    return Recording(
        device=0,
        events=Events(
            actions=np.array([NUMBERS[one[0]] for one in entries], np.uint8),
            addresses=np.array([one[1] for one in entries], np.uint64),
            sizes=np.array([one[2] for one in entries], np.int64),
            streams=np.array([one[3] for one in entries], np.int64),
            times_us=np.arange(len(entries), dtype=np.int64),
            pool_ids=np.array([one[4] for one in entries], np.int64).reshape(len(entries), 2)
            if names_pools
            else None,
            stacks=np.array([-1] * len(entries) if stacks is None else stacks, np.int32),
        ),
        segments=list(segments),
        settings=settings if settings is not None else AllocatorSettings(),
        recorded_settings={},
        annotations=[],
        versions=(version, version),
    )


def cut(recording: Recording, first: int) -> Recording:
    """The same recording as a ring that wrapped shows it: without the entries before one."""
    events = recording.events
    return Recording(
        device=recording.device,
        events=Events(
            actions=events.actions[first:],
            addresses=events.addresses[first:],
            sizes=events.sizes[first:],
            streams=events.streams[first:],
            times_us=events.times_us[first:],
            pool_ids=None if events.pool_ids is None else events.pool_ids[first:],
            stacks=events.stacks[first:],
        ),
        segments=recording.segments,
        settings=recording.settings,
        recorded_settings=recording.recorded_settings,
        annotations=recording.annotations,
        versions=recording.versions,
    )


class RecordedModel:
    """A model of the allocator that writes down all that it does."""

    def __init__(
        self,
        settings: AllocatorSettings | None = None,
        *,
        version: Version = (2, 11),
        limit_bytes: int | None = None,
        addresses: AddressSpace | None = None,
    ) -> None:
        self.entries: list[Entry] = []
        self.model = CachingAllocator(
            DEVICE_BYTES,
            settings,
            limit_bytes=limit_bytes,
            version=version,
            addresses=FirstFitAddresses(BASE) if addresses is None else addresses,
            on_event=lambda *fields: self.entries.append(fields),
        )

    def recording(self) -> Recording:
        """Everything so far."""
        return recording_of(
            self.entries, self.model.segments(), self.model.settings, version=self.model.version
        )


def comparable(segments: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Segments by address, without stacks and without what free blocks were last asked for."""
    return [
        {
            **{key: one[key] for key in SEGMENT_KEYS},
            "segment_pool_id": tuple(one["segment_pool_id"]),
            "blocks": [
                (
                    part["address"],
                    part["size"],
                    part["state"],
                    0 if part["state"] == "inactive" else part["requested_size"],
                )
                for part in one["blocks"]
            ],
        }
        for one in sorted(segments, key=lambda one: int(one["address"]))
    ]
