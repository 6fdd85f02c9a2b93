"""The two places in PyTorch that tell of progress: optimizer steps and batches fetched."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from vramscope.guard import guarded
from vramscope.steps.import_watcher import ImportWatcher, is_imported

OPTIMIZER_MODULE: Final = "torch.optim.optimizer"
LOADER_MODULE: Final = "torch.utils.data.dataloader"


class TorchHooks:
    """Installs and removes the hooks; torch may be imported before or after.

    In a forked child the hooks do nothing: the agent lives in the process it was attached to.

    Args:
        on_optimizer_step: called with the optimizer after each of its steps, on its thread.
        on_batch: called before a ``DataLoader`` iterator fetches its next batch.
    """

    def __init__(
        self, on_optimizer_step: Callable[[Any], None], on_batch: Callable[[], None]
    ) -> None:
        self._on_optimizer_step = on_optimizer_step
        self._on_batch = on_batch
        self._pid = os.getpid()
        self._handle: Any = None
        self._unpatch_loader: Callable[[], None] | None = None
        self._watcher = ImportWatcher(OPTIMIZER_MODULE, self._hook_optimizers)

    def install(self) -> None:
        """Hook the optimizers now, or as soon as the job has imported them."""
        self._watcher.install()

    def poll(self) -> None:
        """Catch up when the hook could not be installed at once (see ``_hook_optimizers``)."""
        if self._handle is None and self._pid != -1 and is_imported(OPTIMIZER_MODULE):
            self._hook_optimizers()

    def watch_batches(self) -> bool:
        """Hook the ``DataLoader`` too; whether it is hooked now.

        Only done when optimizer steps do not tell enough: the wrapper shows as a line in the
        traceback of a data set that raises.
        """
        if self._unpatch_loader is None and self._pid != -1 and is_imported(LOADER_MODULE):
            self._unpatch_loader = self._wrap_loader()
        return self._unpatch_loader is not None

    def ignore_batches(self) -> None:
        """Undo :meth:`watch_batches`."""
        if self._unpatch_loader is not None:
            self._unpatch_loader()
            self._unpatch_loader = None

    def forget_after_fork(self) -> None:
        """In a forked child: stay installed and do nothing; another fork may have our pid."""
        self._pid = -1

    def remove(self) -> None:
        """Leave PyTorch as it was. The hooks are idle from now on in any case."""
        self._pid = -1
        self._watcher.remove()
        self.ignore_batches()
        if self._handle is not None and not _is_stepping():
            self._handle.remove()
        self._handle = None

    def _hook_optimizers(self) -> None:
        if _is_stepping():
            # PyTorch iterates over its hooks at this moment and would raise, in the job, if one
            # were added. poll() tries again.
            return
        optimizer: Any = sys.modules[OPTIMIZER_MODULE]

        def after_step(stepped: Any, args: Any, options: Any) -> None:
            del args, options
            if os.getpid() == self._pid:
                with guarded("step hook"):
                    self._on_optimizer_step(stepped)

        # Read by Dynamo: a compiled step must call this, not trace into it.
        after_step.__dict__["_torchdynamo_disable"] = True
        self._handle = optimizer.register_optimizer_step_post_hook(after_step)

    def _wrap_loader(self) -> Callable[[], None]:
        iterator: Any = sys.modules[LOADER_MODULE].__dict__["_BaseDataLoaderIter"]
        original = iterator.__next__

        @functools.wraps(original)
        def next_batch(each: Any) -> Any:
            if os.getpid() == self._pid:
                with guarded("batch hook"):
                    self._on_batch()
            return original(each)

        def unwrap() -> None:
            if iterator.__next__ is next_batch:
                iterator.__next__ = original

        iterator.__next__ = next_batch
        return unwrap


def _is_stepping() -> bool:
    """Whether a thread is inside ``Optimizer.step`` at this moment."""
    path = getattr(sys.modules.get(OPTIMIZER_MODULE), "__file__", None)
    # The only way to see other threads' frames, and documented in spite of its name.
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    try:
        return any(_is_inside_step(top, path) for top in frames.values())
    finally:
        # It holds this very frame: a cycle, in which the job's frames and tensors would stay.
        frames.clear()


def _is_inside_step(top: FrameType, path: str | None) -> bool:
    frame: FrameType | None = top
    while frame is not None:
        if frame.f_code.co_filename == path and frame.f_code.co_name == "wrapper":
            return True
        frame = frame.f_back
    return False
