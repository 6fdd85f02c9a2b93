"""What ``torch.distributed`` knows of this process."""

from __future__ import annotations

import sys
from typing import Any, Final

from msgspec import Struct

from vramscope.identity.process_group_watcher import C10D_MODULE

_MAX_LAYERS: Final = 8


class ProcessGroup(Struct, frozen=True):
    """The default process group, as this rank sees it."""

    rank: int
    world_size: int
    store: str = ""
    """Where its ranks met: host and port, or path; empty if that cannot be told."""


def read_process_group() -> ProcessGroup | None:
    """The default group of this process, if it is up. Asks no other rank and no device."""
    c10d: Any = sys.modules.get(C10D_MODULE)
    dist: Any = sys.modules.get("torch.distributed")
    if c10d is None or dist is None or not getattr(dist, "is_available", bool)():
        return None
    if not dist.is_initialized():
        return None
    return ProcessGroup(
        int(dist.get_rank()), int(dist.get_world_size()), _store_address(c10d, dist)
    )


def _store_address(c10d: Any, dist: Any) -> str:
    """Host and port, or path, of the store under the default group, read from the object."""
    get_store = getattr(c10d, "_get_default_store", None)
    store: Any = get_store() if get_store is not None else None
    for _ in range(_MAX_LAYERS):
        if not isinstance(store, dist.PrefixStore):
            break
        store = store.underlying_store
    if hasattr(store, "host") and hasattr(store, "port"):
        return f"{store.host}:{store.port}"
    return str(getattr(store, "path", ""))
