"""A patch of a function that the job may import later."""

from __future__ import annotations

import sys
from typing import Any

from vramscope.patch import After, Before, Patch
from vramscope.steps.import_watcher import ImportWatcher


class LatePatch:
    """Follows the calls of a function from the import of its module on.

    Args:
        module: full name of the module whose import makes the function known.
        name: the function's name; of a method "Class.method".
        before, after: see :class:`vramscope.patch.Patch`.
        where: the place, in words for the log.
        owner: name of the module that has the function, if it is another one.
    """

    def __init__(
        self, module: str, name: str, before: Before, after: After, where: str, owner: str = ""
    ) -> None:
        self._owner = owner or module
        self._name = name
        self._before: Before = before
        self._after: After = after
        self._where = where
        self._patch: Patch | None = None
        self._watcher = ImportWatcher(module, self._imported)

    @property
    def is_installed(self) -> bool:
        """Whether calls are followed; never where there is no such function."""
        return self._patch is not None

    def install(self) -> None:
        """Follow the function now, or as soon as the job has imported it."""
        self._watcher.install()

    def remove(self) -> None:
        """Leave the module as it was."""
        self._watcher.remove()
        if self._patch is not None:
            self._patch.remove()
            self._patch = None

    def forget_after_fork(self) -> None:
        """In a forked child: only pass on."""
        if self._patch is not None:
            self._patch.forget_after_fork()

    def _imported(self) -> None:
        owner: Any = sys.modules[self._owner]
        *classes, name = self._name.split(".")
        for each in classes:
            owner = getattr(owner, each, None)
        if hasattr(owner, name):
            self._patch = Patch(owner, name, self._before, self._after, self._where)
            self._patch.install()
