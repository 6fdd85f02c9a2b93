"""Snapshots in PyTorch's structure (``torch.cuda.memory._snapshot``), of the emulated device."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Final

from vramscope.emulation.history import Entry, Recorded
from vramscope.emulation.stacks import FrameLists, Stack

PICKLE_PROTOCOL: Final = 4
"""The newest that PyTorch's viewer reads; Python 3.14 would write 5."""


def plain_snapshot(
    segments: list[dict[str, Any]],
    recorded: Recorded,
    allocator_settings: Mapping[str, Any],
    version: tuple[int, int],
) -> dict[str, Any]:
    """What ``_snapshot`` of a torch release returns.

    Args:
        segments: as the model has them; their frames are filled in.
        recorded: the history.
        allocator_settings: the options in force, by PyTorch's names.
        version: torch release whose keys are written.
    """
    frames = FrameLists()
    fill_in_frames(segments, recorded, frames)
    snapshot: dict[str, Any] = {
        "segments": segments,
        "device_traces": [[_trace_entry(entry, frames, version) for entry in recorded.entries]],
        "allocator_settings": dict(allocator_settings),
    }
    if version >= (2, 5):
        snapshot["external_annotations"] = [
            {"stage": stage, "name": name, "device": 0, "time_us": time_us}
            for stage, name, time_us in recorded.annotations
        ]
    if version >= (2, 14):
        snapshot["host_segments"] = []
        snapshot["host_traces"] = []
    return snapshot


def fill_in_frames(
    segments: Sequence[dict[str, Any]], recorded: Recorded, frames: FrameLists
) -> None:
    """Give segments and live blocks the stacks that were taken at their allocation."""
    for segment in segments:
        segment["frames"] = _frames(recorded.segment_stacks, segment["address"], frames)
        for block in segment["blocks"]:
            block["frames"] = _frames(recorded.block_stacks, block["address"], frames)


def dump_snapshot(snapshot: Mapping[str, Any], file: BinaryIO) -> None:
    """Write a snapshot as PyTorch does."""
    pickle.dump(snapshot, file, protocol=PICKLE_PROTOCOL)


def _frames(stacks: Mapping[int, Stack], address: int, frames: FrameLists) -> list[dict[str, Any]]:
    stack = stacks.get(address)
    return [] if stack is None else frames.frames(stack)


def _trace_entry(entry: Entry, frames: FrameLists, version: tuple[int, int]) -> dict[str, Any]:
    action, address, size_bytes, stream, time_us, pool_id, stack, metadata = entry
    plain: dict[str, Any] = {
        "action": action,
        "device_free" if action == "oom" else "addr": address,
        "size": size_bytes,
        "stream": stream,
        "time_us": time_us,
    }
    if version >= (2, 8):
        plain["compile_context"] = "N/A"
    if version >= (2, 10):
        plain["user_metadata"] = metadata
    if version >= (2, 12):
        plain["pool_id"] = pool_id
    if stack is not None:
        plain["frames"] = frames.frames(stack)
    return plain
