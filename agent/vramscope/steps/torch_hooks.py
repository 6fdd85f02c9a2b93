"""The two places in PyTorch that tell of progress: optimizer steps and fetches of batches."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from vramscope.guard import guarded
from vramscope.patch import Patch
from vramscope.steps.import_watcher import ImportWatcher, is_imported

OPTIMIZER_MODULE: Final = "torch.optim.optimizer"
LOADER_MODULE: Final = "torch.utils.data.dataloader"


class TorchHooks:
    """Installs and removes the hooks; torch may be imported before or after.

    In a forked child the hooks do nothing: the agent lives in the process it was attached to.

    Args:
        on_optimizer_step: called with the optimizer after each of its steps, on its thread.
        before_fetch: called with a ``DataLoader`` iterator before it fetches its next batch.
        after_fetch: called with it when it has, and whether it had none left.
    """

    def __init__(
        self,
        on_optimizer_step: Callable[[Any], None],
        before_fetch: Callable[[Any], None],
        after_fetch: Callable[[Any, bool], None],
    ) -> None:
        self._on_optimizer_step = on_optimizer_step
        self._before_fetch = before_fetch
        self._after_fetch = after_fetch
        self._pid = os.getpid()
        self._handle: Any = None
        self._loader: Patch | None = None
        self._watchers = (
            ImportWatcher(OPTIMIZER_MODULE, self._hook_optimizers),
            ImportWatcher(LOADER_MODULE, self._hook_loader),
        )

    @property
    def sees_batches(self) -> bool:
        """Whether fetches from a ``DataLoader`` are seen."""
        return self._loader is not None

    def install(self) -> None:
        """Hook optimizers and loaders now, or as soon as the job has imported them."""
        for watcher in self._watchers:
            watcher.install()

    def poll(self) -> None:
        """Catch up when the hook could not be installed at once (see ``_hook_optimizers``)."""
        if self._handle is None and self._pid != -1 and is_imported(OPTIMIZER_MODULE):
            self._hook_optimizers()

    def forget_after_fork(self) -> None:
        """In a forked child: stay installed and do nothing; another fork may have our pid."""
        self._pid = -1
        if self._loader is not None:
            self._loader.forget_after_fork()

    def remove(self) -> None:
        """Leave PyTorch as it was. The hooks are idle from now on in any case."""
        self._pid = -1
        for watcher in self._watchers:
            watcher.remove()
        if self._loader is not None:
            self._loader.remove()
            self._loader = None
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

    def _hook_loader(self) -> None:
        iterator: Any = sys.modules[LOADER_MODULE].__dict__["_BaseDataLoaderIter"]

        def after(each: Any, error: BaseException | None) -> None:
            self._after_fetch(each, isinstance(error, StopIteration))

        self._loader = Patch(iterator, "__next__", self._before_fetch, after, "batch hook")
        self._loader.install()


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
