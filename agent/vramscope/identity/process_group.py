"""What ``torch.distributed`` knows of this process, and when it begins to know."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from vramscope.guard import guarded
from vramscope.steps.import_watcher import ImportWatcher

_MODULE: Final = "torch.distributed.distributed_c10d"
# Every way to set up the default group ends here, also that of a job which took the function
# ``init_process_group`` out of its module long ago. In torch from 2.0 on.
_FUNCTION: Final = "_update_default_pg"
_MAX_LAYERS: Final = 8


class ProcessGroup(Struct, frozen=True):
    """The default process group, as this rank sees it."""

    rank: int
    world_size: int
    store: str = ""
    """Where its ranks met: host and port, or path; empty if that cannot be told."""


def read_process_group() -> ProcessGroup | None:
    """The default group of this process, if it is up. Asks no other rank and no device."""
    c10d: Any = sys.modules.get(_MODULE)
    dist: Any = sys.modules.get("torch.distributed")
    if c10d is None or dist is None or not getattr(dist, "is_available", bool)():
        return None
    if not dist.is_initialized():
        return None
    return ProcessGroup(
        int(dist.get_rank()), int(dist.get_world_size()), _store_address(c10d, dist)
    )


class ProcessGroupWatcher:
    """Calls back whenever the default process group has come up or gone.

    On the thread of the job that sets it up, in forked children too, so the callback must be
    quick and must look at ``os.getpid()`` itself.

    Args:
        on_change: what to call, while the group is up or just gone.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change: Callable[[], None] | None = on_change
        self._watcher = ImportWatcher(_MODULE, self._patch)
        self._unpatch: Callable[[], None] | None = None

    def install(self) -> None:
        """Begin to watch, now or as soon as the job has imported torch."""
        self._watcher.install()

    def remove(self) -> None:
        """Leave PyTorch as it was."""
        self._on_change = None
        self._watcher.remove()
        if self._unpatch is not None:
            self._unpatch()
            self._unpatch = None

    def _patch(self) -> None:
        c10d: Any = sys.modules[_MODULE]
        original = getattr(c10d, _FUNCTION, None)
        if original is None:  # a build without it, or another torch: then nobody tells us
            return

        def update_default_group(*args: Any, **options: Any) -> Any:
            result = original(*args, **options)
            callback = self._on_change
            if callback is not None:
                with guarded("process group"):
                    callback()
            return result

        def unpatch() -> None:
            if getattr(c10d, _FUNCTION) is update_default_group:
                setattr(c10d, _FUNCTION, original)

        setattr(c10d, _FUNCTION, update_default_group)
        self._unpatch = unpatch


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
