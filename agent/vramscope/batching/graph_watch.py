"""Whether the job has captured CUDA graphs by hand: what they replay has the sizes of then."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final

from vramscope.batching.running_frames import frames
from vramscope.steps.late_patch import LatePatch

GRAPHS_MODULE: Final = "torch.cuda.graphs"
_BEGIN: Final = "CUDAGraph.capture_begin"
_COMPILER: Final = "cudagraph_trees.py"
"""torch.compile captures anew for each size."""
_MAX: Final = 256


class GraphWatch(LatePatch):
    """Sees each capture begin, whether by ``torch.cuda.graph`` or by hand; not those before attach.

    ``torch.cuda.graph`` is wrapped by ``devices/torch_scopes.py``. Two wrappers of ours on one
    function would have to go in the order in which they came, or the lower one would stay.
    """

    def __init__(self) -> None:
        super().__init__(GRAPHS_MODULE, _BEGIN, _nothing, self._begun, "graph capture")
        self._captured: list[Callable[[], object]] = []

    def has_graphs(self) -> bool:
        """Whether the job still has one that it captured."""
        self._captured = [each for each in self._captured if each() is not None]
        return bool(self._captured)

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
