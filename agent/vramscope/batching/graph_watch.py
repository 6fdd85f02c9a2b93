"""Whether the job has captured CUDA graphs by hand: what they replay has the sizes of then."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any, Final

from vramscope.batching.running_frames import frames
from vramscope.patch import Patch
from vramscope.steps.import_watcher import ImportWatcher

GRAPHS_MODULE: Final = "torch.cuda.graphs"
_BEGIN: Final = "capture_begin"
_COMPILER: Final = "cudagraph_trees.py"
"""torch.compile captures anew for each size."""
_MAX: Final = 256


class GraphWatch:
    """Sees each capture begin, whether by ``torch.cuda.graph`` or by hand; not those before attach.

    ``torch.cuda.graph`` is wrapped by ``devices/torch_scopes.py``. Two wrappers of ours on one
    function would have to go in the order in which they came, or the lower one would stay.
    """

    def __init__(self) -> None:
        self._patch: Patch | None = None
        self._watcher = ImportWatcher(GRAPHS_MODULE, self._hook)
        self._captured: list[Callable[[], object]] = []

    def has_graphs(self) -> bool:
        """Whether the job still has one that it captured."""
        self._captured = [each for each in self._captured if each() is not None]
        return bool(self._captured)

    def install(self) -> None:
        """Follow captures, now or as soon as the job has imported torch."""
        self._watcher.install()

    def remove(self) -> None:
        """Leave PyTorch as it was."""
        self._watcher.remove()
        if self._patch is not None:
            self._patch.remove()
            self._patch = None

    def forget_after_fork(self) -> None:
        """In a forked child: only pass on."""
        if self._patch is not None:
            self._patch.forget_after_fork()

    def _hook(self) -> None:
        graphs: Any = getattr(sys.modules[GRAPHS_MODULE], "CUDAGraph", None)
        if hasattr(graphs, _BEGIN):
            self._patch = Patch(graphs, _BEGIN, _nothing, self._begun, "graph capture")
            self._patch.install()

    def _begun(self, graph: Any, raised: BaseException | None) -> None:
        if raised is not None or len(self._captured) >= _MAX:
            return
        if any(frame.f_code.co_filename.endswith(_COMPILER) for frame in frames()):
            return
        try:
            self._captured.append(weakref.ref(graph))
        except TypeError:  # nobody can tell when it is gone
            self._captured.append(lambda: self)


def _nothing(graph: Any) -> None:
    del graph
