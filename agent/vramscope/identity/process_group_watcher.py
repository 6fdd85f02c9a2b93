"""Tells when ``torch.distributed`` begins to know this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from vramscope.guard import guarded
from vramscope.steps.import_watcher import ImportWatcher

C10D_MODULE: Final = "torch.distributed.distributed_c10d"
# Every way to set up the default group ends here, also that of a job which took the function
# ``init_process_group`` out of its module long ago. In torch from 2.0 on.
_FUNCTION: Final = "_update_default_pg"


class ProcessGroupWatcher:
    """Calls back whenever the default process group has come up or gone.

    On the thread of the job that sets it up, in forked children too, so the callback must be
    quick and must look at ``os.getpid()`` itself.

    Args:
        on_change: what to call, while the group is up or just gone.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change: Callable[[], None] | None = on_change
        self._watcher = ImportWatcher(C10D_MODULE, self._patch)
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
        c10d: Any = sys.modules[C10D_MODULE]
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
