"""From PyTorch's nested structure to tables."""

from __future__ import annotations

from typing import Any

from vramscope_analysis.snapshot.errors import SnapshotError, shown
from vramscope_analysis.snapshot.kinds import is_dict, is_list
from vramscope_analysis.snapshot.snapshot import Snapshot
from vramscope_analysis.snapshot.tables.building import Building
from vramscope_analysis.snapshot.tables.frame_table import frame_table
from vramscope_analysis.snapshot.tables.segment_tables import segment_tables
from vramscope_analysis.snapshot.tables.tables import Trace
from vramscope_analysis.snapshot.tables.trace_table import trace_table

# The keys at the top whose values become attributes of a Snapshot as they are.
KEPT_KEYS: dict[str, type] = {
    "allocator_settings": dict,
    "external_annotations": list,
    "host_segments": list,
}


def snapshot_of(plain: Any, building: Building) -> Snapshot:
    """The tables of a snapshot in PyTorch's structure; SnapshotError for what is none."""
    _check_root(plain)
    kept: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for key, value in plain.items():
        if key in ("segments", "device_traces", "host_traces"):
            continue
        building.values.check(value, key)
        if key in KEPT_KEYS and type(value) is not KEPT_KEYS[key]:
            raise SnapshotError(f"{key}: expected a {KEPT_KEYS[key].__name__}, got {shown(value)}")
        (kept if key in KEPT_KEYS else others)[key] = value
    segments, blocks = segment_tables(building, plain["segments"])
    traces = _traces(building, plain.get("device_traces", []))
    host_trace = None
    if "host_traces" in plain:
        host_trace = trace_table(building, plain["host_traces"], "host_traces")
    return Snapshot(
        segments=segments,
        blocks=blocks,
        traces=traces,
        stacks=building.stacks.stacks(),
        frames=frame_table(building),
        settings=kept.get("allocator_settings", {}),
        annotations=kept.get("external_annotations", []),
        host_segments=kept.get("host_segments", []),
        host_trace=host_trace,
        keys=tuple(plain),
        others=others,
    )


def _traces(building: Building, plain: Any) -> tuple[Trace, ...]:
    if not is_list(plain):
        raise SnapshotError(f"device_traces: expected a list, got {shown(plain)}")
    return tuple(
        trace_table(building, entries, f"device_traces[{device}]")
        for device, entries in enumerate(plain)
    )


def _check_root(plain: Any) -> None:
    expected = "expected the dict of torch.cuda.memory._snapshot()"
    if is_dict(plain):
        keys = list(plain)
        for key in keys:
            if type(key) is not str:
                raise SnapshotError(f"{expected}: its keys are texts, got {shown(key)}")
        if "segments" not in keys:
            got = ", ".join(map(shown, keys[:5])) or "no keys"
            raise SnapshotError(f"{expected} with the key 'segments', got a dict with {got}")
    elif _is_segment_list(plain):
        raise SnapshotError(
            f"{expected}, got a list of segments, as torch.cuda.memory_snapshot() returns: "
            "save _snapshot() instead, which has the trace and the settings too"
        )
    elif type(plain) is int:
        raise SnapshotError(f"{expected}, got a number, as old files of torch.save begin with")
    else:
        raise SnapshotError(f"{expected}, got {shown(plain)}")


def _is_segment_list(plain: Any) -> bool:
    return is_list(plain) and bool(plain) and is_dict(plain[0]) and "blocks" in plain[0]
