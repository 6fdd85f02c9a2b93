"""The modules of the job, held weakly: seen when they register a parameter, a buffer or a child.

PyTorch calls its global registration hooks while modules are built, never while they run, and
TorchDynamo's guards do not look at them. Copied and unpickled modules register nothing; they are
seen by ``__setstate__``. Those from before the hooks are looked for once (module_scan.py).
"""

from __future__ import annotations

import os
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from vramscope.guard import guarded
from vramscope.patch import Patch
from vramscope.steps.import_watcher import ImportWatcher, is_imported

MODULE: Final = "torch.nn.modules.module"
_KINDS: Final = ("parameter", "buffer", "module")


class Modules:
    """Knows which modules are alive. No module lives longer because of it."""

    def __init__(self) -> None:
        self._refs: dict[int, weakref.ref[Any]] = {}
        self._handles: dict[str, Any] = {}
        self._pid = -1
        self._copies: Patch | None = None
        self._watcher = ImportWatcher(MODULE, self._hook)
        self.has_missed_some = is_imported(MODULE)
        """Whether modules may have been built before the hooks were there."""
        self.seen = 0
        """Modules seen so far; rises with each, so that a change can be noticed cheaply."""

    def install(self) -> None:
        """See modules from now on, or as soon as the job imports PyTorch."""
        self._pid = os.getpid()
        self._watcher.install()

    def hook_at_boundary(self) -> None:
        """Hook what could not be hooked at once. On the training thread, which builds no module."""
        if self._pid == os.getpid() and is_imported(MODULE):
            self._hook(waits=False)

    def remove(self) -> None:
        """Leave PyTorch as it was, and forget the modules."""
        self._pid = -1
        self._watcher.remove()
        if self._copies is not None:
            self._copies.remove()
            self._copies = None
        handles, self._handles = self._handles, {}
        for kind, handle in handles.items():
            _unhook(kind, handle)
        self._refs = {}

    def forget_after_fork(self) -> None:
        """In a forked child: see nothing more; another fork may have our pid."""
        self._pid = -1
        if self._copies is not None:
            self._copies.forget_after_fork()

    def add(self, module: Any) -> None:
        """Note a module that is alive."""
        key = id(module)
        known = self._refs.get(key)
        if known is None or known() is not module:
            # Called when the module dies, in C: dict.pop(id, the dead reference).
            self._refs[key] = weakref.ref(module, partial(self._refs.pop, key))
            self.seen += 1

    def alive(self) -> list[Any]:
        """The modules. The caller lets go of them before the job goes on."""
        found = (ref() for ref in self._refs.copy().values())
        return [module for module in found if module is not None]

    def _hook(self, *, waits: bool = True) -> None:
        module: Any = sys.modules[MODULE]
        for kind in _KINDS:
            # PyTorch goes through its hooks while another thread builds a module, and would raise
            # there if one were added to others. With none there yet there is nothing to go through.
            if kind not in self._handles and not (waits and _hooks(kind)):
                register = getattr(module, f"register_module_{_REGISTERS[kind]}_hook")
                self._handles[kind] = register(self._hook_for_torch())
        if self._copies is None:
            self._copies = Patch(module.Module, "__setstate__", self.add, _nothing, "module hook")
            self._copies.install()

    def _hook_for_torch(self) -> Callable[[Any, str, Any], None]:
        torch: Any = sys.modules["torch"]

        def registered(module: Any, name: str, value: Any) -> None:
            del name
            # A forward that assigns a buffer gets here, and TorchDynamo traces it: it knows this
            # answer, and would break the job's graph, or refuse the job, on what follows.
            compiler = getattr(torch, "compiler", None)  # not there while torch is imported
            if compiler is None or not compiler.is_compiling():
                self._registered(module, value)

        return registered

    def _registered(self, module: Any, value: Any) -> None:
        if value is not None and os.getpid() == self._pid:
            with guarded("module hook"):
                self.add(module)


_REGISTERS: Final = {
    "parameter": "parameter_registration",
    "buffer": "buffer_registration",
    "module": "module_registration",
}


def _hooks(kind: str) -> Any:
    return getattr(sys.modules[MODULE], f"_global_{kind}_registration_hooks")


def _unhook(kind: str, handle: Any) -> None:
    """Take our hook out, while another thread may be going through all of them."""
    if list(_hooks(kind)) == [handle.id]:
        # A new dictionary: whoever goes through the old one does so in peace. Where there are
        # others, their handles refer to the old one, so ours stays, and does nothing.
        setattr(sys.modules[MODULE], f"_global_{kind}_registration_hooks", OrderedDict())


def _nothing(module: Any, error: BaseException | None) -> None:
    """Nothing is to be done after a module was restored."""
