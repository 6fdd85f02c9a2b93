"""A real kernel, driven as a notebook drives it: cells, interrupt, restart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.support.job_process import child_environment

TIMEOUT_S = 60.0


@dataclass
class Cell:
    """What one cell put below itself: that is what is saved in the notebook."""

    text: str = ""
    html: str = ""
    error: str = ""
    """Name of the exception that ended it."""
    outputs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


class Kernel:
    """A running kernel."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self._manager = manager
        self._client = client

    def run(self, code: str, until: Callable[[Cell], bool] | None = None) -> Cell:
        """Run a cell to its end, or until what it has written is enough; it then goes on."""
        return self.follow(self.start(code), until)

    def start(self, code: str) -> str:
        """Start a cell; its id."""
        return str(self._client.execute(code))

    def follow(self, cell_id: str, until: Callable[[Cell], bool] | None = None) -> Cell:
        """Take what a cell writes from now on, to its end or until it is enough."""
        cell = Cell()
        deadline_s = time.monotonic() + TIMEOUT_S
        while until is None or not until(cell):
            try:
                message = self._client.get_iopub_msg(timeout=deadline_s - time.monotonic())
            except Empty:
                raise AssertionError(f"the cell did not end; it wrote: {cell}") from None
            if message["parent_header"].get("msg_id") != cell_id:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            _take(cell, kind, content)
        return cell

    def interrupt(self) -> None:
        """Press the stop button."""
        self._manager.interrupt_kernel()

    def restart(self) -> None:
        """Press the restart button, and wait for the new kernel."""
        self._manager.restart_kernel()
        self._client.wait_for_ready(timeout=TIMEOUT_S)


def _take(cell: Cell, kind: str, content: dict[str, Any]) -> None:
    if kind == "stream":
        cell.text += content["text"]
    elif kind == "error":
        cell.error = content["ename"]
    elif kind in {"display_data", "execute_result"}:
        cell.html += content["data"].get("text/html", "")
    else:
        return
    cell.outputs.append(content)


@contextmanager
def kernel(**environment: str) -> Iterator[Kernel]:
    """A kernel with these variables, as a Jupyter server would start it."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env=child_environment(**environment))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=TIMEOUT_S)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
