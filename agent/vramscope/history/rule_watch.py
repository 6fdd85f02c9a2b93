"""Watches for what the rule is about, and begins a window when it comes."""

from __future__ import annotations

from collections.abc import Callable

from vramscope.devices.device import Device, DeviceMemory
from vramscope.guard import Attempt, summary
from vramscope.history.history import History
from vramscope.history.rule import INTERVAL_S, HistoryRule
from vramscope.history.window import Window
from vramscope.sampling.clock import Clock
from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.messages import Event
from vramscope_protocol.parameters import HistoryParams


class RuleWatch:
    """Looked at by the sampler, acts at the next boundary.

    Args:
        rule: what to watch for.
        history: records.
        device: its size and cap.
        clock: for how long the last time is ago.
        emit: takes an event; must not block.
    """

    def __init__(
        self,
        rule: HistoryRule,
        history: History,
        device: Device,
        clock: Clock,
        emit: Callable[[Event], None],
    ) -> None:
        self._rule = rule
        self._history = history
        self._device = device
        self._clock = clock
        self._emit = emit
        self._not_before_ns = clock.monotonic_ns()
        self._passed: str | None = None
        self._window: Window | None = None

    def look(self, reserved_bytes: int, memory: DeviceMemory) -> None:
        """Compare what was just sampled, and tell how a window has ended. Sampler thread."""
        self._tell_end()
        if self._passed is not None or self._clock.monotonic_ns() < self._not_before_ns:
            return
        self._passed = self._rule.passed(
            reserved_bytes, memory.used_bytes, memory.total_bytes, self._device.info.limit_bytes
        )

    def at_boundary(self, step: int) -> None:
        """Begin a window, if it is time. Training thread."""
        passed = self._passed
        if passed is None or self._device.busy_reason() is not None:
            return
        # Tried once, whatever comes of it: a job that records itself is left alone for as long.
        self._not_before_ns = self._clock.monotonic_ns() + round(INTERVAL_S * 1e9)
        self._passed = None
        steps = self._rule.steps
        text = f"{passed}: recording the history of {steps} steps"
        with Attempt() as attempt:
            params = HistoryParams(steps=steps)
            self._window = self._history.start(params, "rule", self._rule.text)
        if attempt.error is not None:
            error = attempt.error
            why = error.message if isinstance(error, VramscopeError) else summary(error)
            text = f"{passed}; not recorded: {why}"
        self._tell(text, step, started=attempt.error is None)

    def _tell_end(self) -> None:
        """Nobody waits for a receipt: how it ended is an event."""
        window = self._window
        if window is None:
            return
        if window.taking is not None:
            receipt = window.taking.poll_on_agent_thread()
            if receipt is None:
                return
            self._window = None
            snapshot = window.taking.identity if receipt.state == "done" else None
            self._tell(receipt.message, None, snapshot=snapshot)
        elif window.ended:
            self._window = None
            text = f"{window.ended}; recording stopped after {window.progress}"
            self._tell(text, None, snapshot=None)

    def _tell(self, text: str, step: int | None, **more: object) -> None:
        data = {"rule": self._rule.text, **more}
        self._emit(Event(0, self._clock.time_ns(), "history", step, text, data))
