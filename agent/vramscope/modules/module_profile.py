"""Watches the modules of a job for a few steps, and takes every hook out again."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from vramscope.guard import guarded
from vramscope.modules.module_account import ModuleAccount, Reading
from vramscope.modules.module_tree import ModuleTree, modules_of, tensors_of

_MODULE: Final = "torch.nn.modules.module"
_MAX_ROWS: Final = 500

Read = Callable[[bool], "Reading | None"]
Roots = Callable[[], Iterable[Any]]


class ModuleProfile:
    """Memory by module over the steps that follow.

    Hooks are called for every module of the job (``register_module_forward_pre_hook`` and its
    kin). The backward is seen by hooks on the graph's own nodes: hooks on modules would put nodes
    of their own into it.

    Args:
        read: allocated bytes and the highest since the last reading, ``None`` while the device
            must not be asked; told whether it is called inside of a backward pass.
        steps: how many steps to watch.
        roots: the job's models, as far as they are known. Modules that are called and in none of
            them are models of their own.
    """

    def __init__(self, read: Read, steps: int, roots: Roots = tuple) -> None:
        self._read_memory = read
        self._roots = roots
        self._steps_left = steps
        self._steps = steps
        self._tree = ModuleTree()
        self._account = ModuleAccount(self._tree)
        self._torch: Any = sys.modules["torch"]
        self._pid = os.getpid()
        self._thread = threading.get_ident()
        self._depth = 0
        self._handles: list[Any] = []
        self._node_handles: list[Any] = []
        self._is_on = False
        self._hooks_ns = 0
        self._readings = 0

    def start(self) -> None:
        """Hook every module; on the training thread, at a step boundary.

        What TorchDynamo compiles meanwhile is not watched: it traces the hooks, knows the answer
        to their first question, and would break the graph, or refuse the job, on what follows.
        """
        module: Any = sys.modules[_MODULE]
        self._is_on = True
        # The largest first: its paths are those that named_parameters() gives.
        for root in sorted(self._roots(), key=_parameters_of, reverse=True):
            self._tree.add(root)
        self._handles = [
            module.register_module_forward_pre_hook(self._before_forward),
            module.register_module_forward_hook(self._after_forward, always_call=True),
        ]
        self._reading()

    def step_ended(self) -> bool:
        """An optimizer step is over; whether it was the last one to watch."""
        reading = self._reading()
        if reading is not None:
            self._account.step_ends(reading)
        self._depth = 0
        self._drop_node_hooks()
        self._steps_left -= 1
        if self._steps_left <= 0:
            self.stop()
        return self._steps_left <= 0

    def stop(self) -> None:
        """Take every hook out. A second call does nothing."""
        self._is_on = False
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._drop_node_hooks()

    def report(self) -> dict[str, Any]:
        """What was found: modules by path, and what finding it took."""
        rows = self._account.report()
        shown = _largest(rows)
        return {
            "steps": self._steps - self._steps_left,
            "modules": shown,
            "modules_left_out": len(rows) - len(shown),
            "readings": self._readings,
            "added_ms_per_step": self._hooks_ns / 1e6 / max(1, self._steps - self._steps_left),
        }

    def _before_forward(self, module: Any, args: Any) -> None:
        del args
        if self._torch.compiler.is_compiling() or not self._is_mine():
            return
        with guarded("module hook"):
            start_ns = time.perf_counter_ns()
            if self._tree.position_of(module) is None:
                self._tree.add(module)
            position = self._tree.position_of(module)
            reading = self._reading()
            if position is not None and reading is not None:
                if _in_backward():
                    self._account.backward_begins(position, reading, recomputed=True)
                else:
                    self._account.forward_begins(position, reading)
            self._hooks_ns += time.perf_counter_ns() - start_ns

    def _after_forward(self, module: Any, args: Any, output: Any) -> None:
        del args
        if self._torch.compiler.is_compiling() or not self._is_mine():
            return
        with guarded("module hook"):
            start_ns = time.perf_counter_ns()
            position = self._tree.position_of(module)
            reading = self._reading()
            if position is not None and reading is not None:
                if _in_backward():
                    self._account.backward_goes_on_above(position, reading)
                else:
                    self._account.forward_ends(position, reading)
                    self._hook_nodes(position, output)
            self._hooks_ns += time.perf_counter_ns() - start_ns

    def _hook_nodes(self, position: int, output: Any) -> None:
        """Have told when the gradient of an output is there."""

        def before_node(gradients: Any) -> None:
            del gradients
            if self._is_on and os.getpid() == self._pid:
                with guarded("module hook"):
                    start_ns = time.perf_counter_ns()
                    reading = self._reading()
                    if reading is not None:
                        self._account.backward_begins(position, reading)
                    self._hooks_ns += time.perf_counter_ns() - start_ns

        for node in _nodes_of(output):
            self._node_handles.append(node.register_prehook(before_node))

    def _drop_node_hooks(self) -> None:
        # A graph that outlives its step must not call us.
        for handle in self._node_handles:
            handle.remove()
        self._node_handles.clear()

    def _reading(self) -> Reading | None:
        self._readings += 1
        return self._read_memory(_in_backward())

    def _is_mine(self) -> bool:
        """Whether to look: other threads' modules would mix with the training thread's.

        A forked child, such as a worker that transforms data, has the hooks and is not watched.
        """
        if not self._is_on or os.getpid() != self._pid:
            return False
        return threading.get_ident() == self._thread or _in_backward()


def compiled_reason() -> str | None:
    """Why modules must not be hooked in this job, ``None`` if they may be."""
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    frames: Any = getattr(dynamo, "counters", {}).get("frames", {})
    if frames.get("total", 0):
        return "the job uses torch.compile, which would compile again with the hooks in place"
    return None


def _parameters_of(root: Any) -> int:
    return sum(len(tensors_of(module, "_parameters")) for _, module in modules_of(root))


def _in_backward() -> bool:
    torch: Any = sys.modules["torch"]
    return bool(torch._C._current_graph_task_id() != -1)


def _nodes_of(output: Any, depth: int = 0) -> list[Any]:
    """Graph nodes of the tensors of an output, each once; of nested ones the first levels."""
    found: list[Any] = []
    if depth > 3:
        return found
    torch: Any = sys.modules["torch"]
    # By its class: whatever else a module returns may do anything when asked for an attribute.
    if issubclass(type(output), torch.Tensor):
        with torch._C.DisableTorchFunction():
            node = output.grad_fn
        if node is not None:
            found.append(node)
    elif isinstance(output, dict):
        for value in list(output.values()):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - anything
            found += _nodes_of(value, depth + 1)
    elif isinstance(output, (tuple, list)):
        for value in output:  # pyright: ignore[reportUnknownVariableType] - anything
            found += _nodes_of(value, depth + 1)
    return list(dict.fromkeys(found))


def _largest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most 500 rows, in their order: those that hold or need the most, with all above them."""
    if len(rows) <= _MAX_ROWS:
        return rows

    def weight(position: int) -> int:
        row = rows[position]
        names = ("parameters_bytes", "kept_bytes", "forward_extra_bytes")
        return max(int(row[name] or 0) for name in names)

    # Whoever is above a module weighs no less, or nearly so, and is kept by its depth.
    order = sorted(range(len(rows)), key=lambda at: (-weight(at), rows[at]["depth"]))
    kept = sorted(order[:_MAX_ROWS])
    return [rows[at] for at in kept]
