"""Recognises checkpoints: what saves tensors is watched while the training thread is in it.

The functions watched are the inner ones that every way of saving ends in, so that a job which has
imported ``torch.save`` under its own name is seen too, and no public function is replaced. A save
on another thread, beside training, is no phase.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from vramscope.patch import Patch
from vramscope.phases.phases import Phases
from vramscope.phases.stretches import Stretch
from vramscope.steps.import_watcher import is_imported

WATCHED: Final = {
    "torch.serialization": ("_save", "_legacy_save"),
    "torch.distributed.checkpoint.state_dict_saver": ("_save_state_dict",),
    "safetensors.torch": ("_flatten", "_flatten_as_ptr", "serialize_file"),
}
"""Module -> functions in which saving takes its time; releases differ in which there are."""


class Saves:
    """Enters and leaves the phase "checkpoint".

    Args:
        phases: where it is entered and left.
        is_training_thread: whether the calling thread is the one that trains.
        on_save: called before a save begins, on the training thread.
    """

    def __init__(
        self,
        phases: Phases,
        is_training_thread: Callable[[], bool],
        on_save: Callable[[], None],
    ) -> None:
        self._phases = phases
        self._is_training_thread = is_training_thread
        self._on_save = on_save
        self._patches: dict[str, list[Patch]] = {}
        self._stretch: Stretch | None = None
        self._depth = 0

    def poll(self) -> None:
        """Watch what the job has imported meanwhile; on the sampler thread."""
        for module, names in WATCHED.items():
            if module not in self._patches and is_imported(module):
                owner = sys.modules[module]
                self._patches[module] = patches = [
                    Patch(owner, name, self._begin, self._end, "save hook")
                    for name in names
                    if hasattr(owner, name)
                ]
                for patch in patches:
                    patch.install()

    def remove(self) -> None:
        """Leave everything as it was."""
        for patches in self._patches.values():
            for patch in patches:
                patch.remove()

    def forget_after_fork(self) -> None:
        """In a forked child: watch nothing."""
        for patches in self._patches.values():
            for patch in patches:
                patch.forget_after_fork()

    def _begin(self, _: object) -> None:
        if not self._is_training_thread():
            return
        self._depth += 1
        if self._depth == 1 and not self._phases.is_told():
            self._on_save()
            self._stretch = self._phases.begin("checkpoint", "save")

    def _end(self, _: object, error: BaseException | None) -> None:
        if not self._is_training_thread() or self._depth == 0:
            return
        self._depth -= 1
        if self._depth == 0:
            stretch, self._stretch = self._stretch, None
            if stretch is not None:
                self._phases.end(stretch)
