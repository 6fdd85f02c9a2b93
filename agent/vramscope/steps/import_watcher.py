"""Tells when the job has imported a module, on the thread that imported it.

The agent may be attached before the job imports torch. Asking from the sampler every 100 ms would
miss the first steps of a quick script.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from vramscope.guard import guarded


def is_imported(name: str) -> bool:
    """Whether a module is there, whole."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)


class ImportWatcher(MetaPathFinder):
    """Calls back once, right after a module has been executed.

    Args:
        name: full name of the module.
        callback: what to call; at once if the module is there already.
    """

    def __init__(self, name: str, callback: Callable[[], None]) -> None:
        self._name = name
        self._callback: Callable[[], None] | None = callback

    def install(self) -> None:
        """Begin to watch."""
        if is_imported(self._name):
            self.imported()
        else:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Stop watching."""
        self._callback = None
        if self in sys.meta_path:
            # A new list: another thread that is looking for a module goes through the old one,
            # and would leave out a finder if that became shorter.
            sys.meta_path = [finder for finder in sys.meta_path if finder is not self]

    def imported(self) -> None:
        """The module is there."""
        callback = self._callback
        self.remove()
        if callback is not None:
            with guarded(f"after the import of {self._name}"):
                callback()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let the other finders find the module, and watch its loader."""
        if fullname != self._name or self._callback is None:
            return None
        for finder in list(sys.meta_path):
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec: ModuleSpec | None = find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _WatchedLoader(spec.loader, self)
                return spec
        return None


class _WatchedLoader(Loader):
    """Executes the module by its own loader, then tells the watcher."""

    def __init__(self, loader: Any, watcher: ImportWatcher) -> None:
        self._loader = loader
        self._watcher = watcher

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        # The module sees its own loader, as without us: resources and reloads go through it.
        module.__loader__ = self._loader
        if spec is not None:
            spec.loader = self._loader
        self._loader.exec_module(module)
        self._watcher.imported()
