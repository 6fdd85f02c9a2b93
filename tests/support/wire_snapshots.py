"""Snapshots as an agent sends them: a beginning, and the gzipped pickle."""

from __future__ import annotations

import gzip
import hashlib
import pickle
from typing import Any

from tests.support.history_rig import made_snapshot
from vramscope_protocol.messages import SnapshotBegin


def wire_snapshot(
    identity: str = "s1", entries: int = 400, **fields: Any
) -> tuple[SnapshotBegin, bytes, bytes]:
    """What announces a snapshot, what travels, and the pickle."""
    raw = pickle.dumps(made_snapshot(entries), protocol=4)
    packed = gzip.compress(raw, 1)
    begin = SnapshotBegin(
        identity,
        1_800_000_000_000_000_000,
        len(raw),
        len(packed),
        hashlib.sha256(raw).hexdigest(),
        **fields,
    )
    return begin, packed, raw
