"""The commands about snapshots and the recorded history."""

from __future__ import annotations

from typing import Any

from vramscope.commands.call import Answer, Call, Handler
from vramscope.history.history import History
from vramscope.history.window import Window
from vramscope.size_text import size_text
from vramscope_protocol.commands import Receipt


def history_handlers(history: History) -> dict[str, Handler]:
    """The commands that take snapshots and record, by name."""

    def snapshot(call: Call) -> Answer:
        return history.take(
            traces=call.params.traces, step=call.step, origin="command", issued_by=call.id
        )

    def start(call: Call) -> Answer:
        window = history.start(call.params, "command", call.id)
        if window.params.steps is None:
            return _started(history, window)
        return _Recording(history, window)

    def stop(call: Call) -> Answer:
        del call
        window = history.stop("history_stop came first")
        return Receipt(
            "done",
            message=f"Stopped after {window.steps_done} steps; what was recorded is gone.",
            result=_told(window),
        )

    def dump(call: Call) -> Answer:
        return history.take(traces=True, step=call.step, origin="command", issued_by=call.id)

    return {
        "snapshot": snapshot,
        "history_start": start,
        "history_stop": stop,
        "history_dump": dump,
    }


class _Recording:
    """A window of some steps, and then the snapshot of it. Implements ``Ongoing``."""

    def __init__(self, history: History, window: Window) -> None:
        self._history = history
        self._window = window

    @property
    def progress(self) -> str:
        return f"recording: {self._window.progress}"

    def poll(self, step: int) -> Receipt | None:
        del step
        return self.poll_on_agent_thread()

    def poll_on_agent_thread(self) -> Receipt | None:
        window = self._window
        if window.taking is not None:
            receipt = window.taking.poll_on_agent_thread()
            if receipt is not None and receipt.state == "done":
                receipt.result = {**receipt.result, **_told(window)}
            return receipt
        if window.ended:
            text = f"{window.ended}; recording stopped after {window.progress}"
            return Receipt("failed", message=text, result=_told(window))
        return None

    def cancel(self, reason: str) -> Receipt:
        window = self._window
        if window.taking is not None:
            return window.taking.cancel(reason)
        self._history.abort(window, reason)
        # One that was over already knows better why.
        text = f"{window.ended}; recording stopped after {window.progress}"
        return Receipt("failed", message=text, result=_told(window))


def _started(history: History, window: Window) -> Receipt:
    params = window.params
    text = f"Recording, within {size_text(params.max_mib << 20)} of host memory"
    if params.mode != "state":
        text += f": the latest {window.max_entries} events"
    if params.backward_lines and not history.marks_backward:
        text += "; this PyTorch cannot mark backward passes"
    return Receipt("done", message=f"{text}.", result=_told(window))


def _told(window: Window) -> dict[str, Any]:
    return {
        "mode": window.params.mode,
        "max_entries": window.max_entries,
        "steps_recorded": window.steps_done,
        "host_bytes": window.budget.grown_bytes(),
    }
