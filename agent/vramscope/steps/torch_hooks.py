"""The two places in PyTorch that tell of progress: optimizer steps and fetches of batches."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from vramscope.guard import guarded_call
from vramscope.history.no_collection import current_frames
from vramscope.patch import Patch
from vramscope.steps.import_watcher import ImportWatcher, is_imported

OPTIMIZER_MODULE: Final = "torch.optim.optimizer"
LOADER_MODULE: Final = "torch.utils.data.dataloader"
_POST_HOOKS: Final = "_global_optimizer_post_hooks"
_PRE_HOOKS: Final = "_global_optimizer_pre_hooks"
_STEPPING_WAIT_S: Final = 0.2


class TorchHooks:
    """Installs and removes the hooks; torch may be imported before or after.

    In a forked child the hooks do nothing: the agent lives in the process it was attached to.

    Args:
        on_optimizer_step: called with the optimizer after each of its steps, on its thread.
        before_fetch: called with a ``DataLoader`` iterator before it fetches its next batch.
        after_fetch: called with it when it has, and whether it had none left.
        before_optimizer_step: called with the optimizer before each of its steps; without it
            nothing is hooked there.
        fetched: called with each batch, before ``after_fetch``.
    """

    def __init__(
        self,
        on_optimizer_step: Callable[[Any], None],
        before_fetch: Callable[[Any], None],
        after_fetch: Callable[[Any, bool], None],
        before_optimizer_step: Callable[[Any], None] | None = None,
        fetched: Callable[[Any], None] | None = None,
    ) -> None:
        self._on_optimizer_step = on_optimizer_step
        self._before_fetch = before_fetch
        self._after_fetch = after_fetch
        self._before_optimizer_step = before_optimizer_step
        self._fetched = fetched
        self._pid = -1
        self._handles: list[tuple[Any, str]] = []
        # Taken without waiting: the sampler and the thread that imports torch may both be at it.
        self._hooking = threading.Lock()
        self._loader: Patch | None = None
        self._watchers = (
            ImportWatcher(OPTIMIZER_MODULE, self._hook_optimizers),
            ImportWatcher(LOADER_MODULE, self._hook_loader),
        )

    @property
    def is_installed(self) -> bool:
        """Whether there may be hooks: not before ``install``, nor after ``remove`` or a fork."""
        return self._pid != -1

    @property
    def sees_batches(self) -> bool:
        """Whether fetches from a ``DataLoader`` are seen."""
        return self._loader is not None

    def install(self) -> None:
        """Hook optimizers and loaders now, or as soon as the job has imported them."""
        self._pid = os.getpid()
        for watcher in self._watchers:
            watcher.install()

    def poll(self) -> None:
        """Catch up when the hook could not be installed at once (see ``_hook_optimizers``)."""
        if not self._handles and self.is_installed and is_imported(OPTIMIZER_MODULE):
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
        handles, self._handles = self._handles, []
        for handle, hooks in handles:
            _unhook_optimizers(handle, hooks)

    def _hook_optimizers(self) -> None:
        if not self._hooking.acquire(blocking=False):
            return
        try:
            optimizer: Any = sys.modules[OPTIMIZER_MODULE]
            # PyTorch may iterate over its hooks at this moment and would raise, in the job, if one
            # were added to others. poll() tries again.
            hooks = (_POST_HOOKS, *((_PRE_HOOKS,) if self._before_optimizer_step else ()))
            is_shared = any(getattr(optimizer, name, True) for name in hooks)
            if not self._handles and not (is_shared and _is_stepping()):
                self._handles = self._hooked(optimizer)
                if self._pid == -1:  # removed by another thread meanwhile
                    self.remove()
        finally:
            self._hooking.release()

    def _hooked(self, optimizer: Any) -> list[tuple[Any, str]]:
        after = self._hook(self._on_optimizer_step)
        handles = [(optimizer.register_optimizer_step_post_hook(after), _POST_HOOKS)]
        if self._before_optimizer_step is not None:
            before = self._hook(self._before_optimizer_step)
            handles.append((optimizer.register_optimizer_step_pre_hook(before), _PRE_HOOKS))
        return handles

    def _hook(self, call: Callable[[Any], None]) -> Callable[[Any, Any, Any], None]:
        def hook(stepped: Any, args: Any, options: Any) -> None:
            del args, options
            if os.getpid() == self._pid:
                guarded_call("step hook", call, None, stepped)

        # Read by Dynamo: a compiled step must call this, not trace into it.
        hook.__dict__["_torchdynamo_disable"] = True
        return hook

    def _hook_loader(self) -> None:
        iterator: Any = sys.modules[LOADER_MODULE].__dict__["_BaseDataLoaderIter"]

        def after(each: Any, error: BaseException | None) -> None:
            self._after_fetch(each, isinstance(error, StopIteration))

        self._loader = Patch(
            iterator, "__next__", self._before_fetch, after, "batch hook", self._fetched
        )
        self._loader.install()


def _unhook_optimizers(handle: Any, name: str) -> None:
    """Take our hook out, while another thread may be going through all of them."""
    optimizer: Any = sys.modules[OPTIMIZER_MODULE]
    hooks = getattr(optimizer, name, None)
    if hooks is not None and list(hooks) == [handle.id]:
        # A new dictionary: whoever goes through the old one does so in peace.
        setattr(optimizer, name, type(hooks)())
        return
    # The handles of others refer to this dictionary, so ours has to be taken out of it.
    deadline_s = time.monotonic() + _STEPPING_WAIT_S
    while _is_stepping():
        if time.monotonic() > deadline_s:
            return  # inside a hook ourselves, say: ours stays, and does nothing
        time.sleep(0.001)
    handle.remove()


def _is_stepping() -> bool:
    """Whether a thread is inside ``Optimizer.step`` at this moment."""
    path = getattr(sys.modules.get(OPTIMIZER_MODULE), "__file__", None)
    frames = current_frames()
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
