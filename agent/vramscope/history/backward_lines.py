"""Marks what a backward pass allocates with the line of the forward pass that it is for.

Autograd runs the backward pass on threads of its own, without a Python frame: there the history
has no stacks. So the forward pass is made to remember its lines (PyTorch's anomaly mode, without
its check of values), and before each node of the graph runs, the thread's memory metadata is set
to the line that has made the node. PyTorch 2.10 and newer has such metadata.

It is dear: the forward pass takes the stack of every operation, and each node of the graph gets
two hooks at the beginning of each backward pass. So it is for a few steps, and off by default.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterable
from typing import Any, Final, cast

from vramscope.guard import Attempt, guarded
from vramscope.patch import Patch

PREFIX: Final = "backward of "
"""What the metadata begin with; the file, ``:``, the line, a space and the function follow."""

_FRAME: Final = re.compile(r'  File "(.*)", line (\d+), in (.*)')
_KEY: Final = "traceback_"
_OWN_FOLDER: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MAX_NODES: Final = 200_000


def is_supported() -> bool:
    """Whether the job's PyTorch has memory metadata."""
    # Builds without CUDA have the function in Python, and nothing behind it.
    with Attempt() as attempt:
        _memory()._get_memory_metadata()
    return attempt.error is None


class BackwardLines:
    """Installed on the training thread, outside of any backward pass."""

    def __init__(self) -> None:
        self._patch: Patch | None = None
        # By thread; a list for each backward pass, which may run inside another one.
        self._handles: dict[int, list[list[Any]]] = {}
        self._before: tuple[bool, bool] | None = None
        self._torch_folder = ""
        self.is_installed = False
        """Whether backward passes are marked: not where PyTorch cannot."""

    def install(self) -> None:
        """Let forward passes remember their lines, and mark the backward passes that follow."""
        torch: Any = sys.modules.get("torch")
        autograd: Any = sys.modules.get("torch.autograd")
        if not is_supported() or not hasattr(autograd, "_engine_run_backward"):
            return
        self._torch_folder = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self._patch = Patch(
            autograd, "_engine_run_backward", self._begin, self._end, "backward lines"
        )
        self._patch.install()
        self._before = (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
        if not self._before[0]:
            torch.set_anomaly_enabled(True, False)
        self.is_installed = True

    def remove(self) -> None:
        """Leave PyTorch as it was. Any thread."""
        self.is_installed = False
        if self._patch is not None:
            self._patch.remove()
            self._patch = None
        self._restore_anomaly_mode()
        for thread in list(self._handles):
            while self._take_out(thread):
                continue

    def forget_after_fork(self) -> None:
        """In a forked child: do nothing any more, and let operations be as quick as they were."""
        self.is_installed = False
        if self._patch is not None:
            self._patch.forget_after_fork()
        self._restore_anomaly_mode()

    def _restore_anomaly_mode(self) -> None:
        before, self._before = self._before, None
        torch: Any = sys.modules.get("torch")
        # A job that has changed it meanwhile has the last word.
        if before is not None and not before[0] and torch.is_anomaly_enabled():
            torch.set_anomaly_enabled(*before)

    def _begin(self, roots: Any) -> None:
        """A backward pass begins; on its caller's thread."""
        handles: list[Any] = []
        self._handles.setdefault(threading.get_ident(), []).append(handles)
        for node in self._nodes(roots):
            line = self._line_of(node)
            if line:
                mark = _Mark(PREFIX + line)
                handles.append(node.register_prehook(mark.set))
                handles.append(node.register_hook(mark.unset))

    def _end(self, roots: Any, raised: BaseException | None) -> None:
        """It is over; a graph that is kept must not keep the hooks."""
        del roots, raised
        self._take_out(threading.get_ident())

    def _take_out(self, thread: int) -> bool:
        """Take the hooks of the innermost pass of a thread out; whether there was one."""
        passes = self._handles.get(thread)
        if not passes:
            self._handles.pop(thread, None)
            return False
        for handle in passes.pop():
            handle.remove()
        return True

    def _nodes(self, roots: Any) -> list[Any]:
        """Every node of the graph, up to a bound."""
        found: dict[Any, None] = {}
        for root in cast("Iterable[Any]", roots):
            node = getattr(root, "grad_fn", None)
            if node is not None:
                found[node] = None
        todo = list(found)
        while todo and len(found) < _MAX_NODES:
            for node, _ in todo.pop().next_functions:
                if node is not None and node not in found:
                    found[node] = None
                    todo.append(node)
        return list(found)

    def _line_of(self, node: Any) -> str:
        frames = node.metadata.get(_KEY)
        if not frames:
            return ""
        for text in reversed(frames):
            match = _FRAME.match(text)
            if match is None or self._is_inside(match[1]):
                continue
            return f"{match[1]}:{match[2]} {match[3]}"
        return ""

    def _is_inside(self, filename: str) -> bool:
        return filename.startswith((self._torch_folder, _OWN_FOLDER)) and not filename.startswith(
            os.path.join(_OWN_FOLDER, "demo", "")
        )


class _Mark:
    """Sets the metadata while one node runs, on the thread that runs it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._before = ""

    def set(self, *gradients: Any) -> None:
        """The node is about to run."""
        del gradients
        with guarded("backward lines"):
            memory = _memory()
            self._before = memory._get_memory_metadata()
            memory._set_memory_metadata(self._text)

    def unset(self, *gradients: Any) -> None:
        """It has run."""
        del gradients
        with guarded("backward lines"):
            before = "" if self._before.startswith(PREFIX) else self._before
            _memory()._set_memory_metadata(before)


def _memory() -> Any:
    return getattr(getattr(sys.modules.get("torch"), "cuda", None), "memory", None)
