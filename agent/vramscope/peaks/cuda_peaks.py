"""The peaks of a CUDA device: exact where the counters may be reset, passive elsewhere."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from vramscope.devices.caching_allocator import initialised_cuda
from vramscope.devices.cuda import CudaDevice
from vramscope.notices import Notices
from vramscope.peaks.passive_peaks import PassivePeaks
from vramscope.peaks.peak_counters import Interval
from vramscope.peaks.peak_layout import UNKNOWN_PEAKS
from vramscope.peaks.torch_functions import TorchFunctions, torch_functions

_NOTE: Final = "peaks"
WRAPPED_INTERVAL_NS: Final = 100_000_000
"""So long it is taken for granted that PyTorch's functions are still wrapped: somebody may have put
an original back. Of steps that are longer each one looks."""


class CudaPeaks:
    """Implements ``PeakCounters``.

    Args:
        device: the device that the training thread uses.
        notices: told when peaks are passive, and why.
        without_cuda: reads the counters while CUDA is not up; another backend may be.
        clock_ns: says when it is time to look at the functions again.
    """

    def __init__(
        self,
        device: CudaDevice,
        notices: Notices,
        without_cuda: Callable[[], Mapping[str, Any] | None] | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._without_cuda = without_cuda or device.memory_stats
        self._device = device
        self._notices = notices
        self._passive = PassivePeaks(device.memory_stats, lambda: device.index)
        self._clock_ns = clock_ns
        self._functions: TorchFunctions | None = None
        self._usable: TorchFunctions | None = None
        """What was found when they were looked at last."""
        self._c_module: Any = None
        self._look_ns = 0
        self._refusal: str | None = None
        self._thread: int | None = None
        self._index: int | None = None
        self._noted: str | None = None
        self._is_removed = False

    def take(self, *, at_step_end: bool = True, in_backward: bool = False) -> Interval | None:
        """End an interval and begin the next; on the training thread."""
        now_ns = self._clock_ns()
        is_looking = now_ns >= self._look_ns or self._usable is None
        # Once it is up it stays so; only whether it is the same is asked anew, now and then.
        c_module = initialised_cuda() if is_looking else self._c_module
        if c_module is None or self._is_removed:
            return Interval(self._without_cuda()) if at_step_end else None
        reason = self._refusal or self._device.reason_not_to_reset(c_module, in_backward)
        if reason is None and not in_backward:
            reason = self._thread_reason()
        if is_looking:
            self._look_ns = now_ns + WRAPPED_INTERVAL_NS
            self._c_module = c_module
            self._usable = self._wrapped(c_module)
        functions = self._usable
        index, before = self._device.index, self._index
        is_other = before not in (None, index)
        if not at_step_end and (functions is None or reason is not None or is_other):
            return None
        self._index = index
        self._note(self._refusal or reason)
        if functions is None:
            self._passive.watch(c_module)
            if is_other:
                self._passive.begin_anew()
            return replace(self._passive.take(), begins_anew=is_other)
        interval = self._take(functions, index, reset=reason is None, at_step_end=at_step_end)
        if interval is not None and is_other:
            interval = replace(interval, peaks=UNKNOWN_PEAKS, begins_anew=True)
        return interval

    def _take(
        self, functions: TorchFunctions, index: int, *, reset: bool, at_step_end: bool
    ) -> Interval | None:
        if self._device.has_counters:
            # No such device, or no counters: the device knows what that means, and notes it.
            with contextlib.suppress(RuntimeError):
                return functions.device(index).take(reset=reset, at_step_end=at_step_end)
        return Interval(self._device.memory_stats()) if at_step_end else None

    def remove(self) -> None:
        """Leave PyTorch as it was, as soon as the job's peaks are the real ones."""
        self._is_removed = True
        self._passive.remove()
        self._usable = None
        if self._functions is not None:
            self._functions.leave()

    def forget_after_fork(self) -> None:
        """In a forked child: be idle from now on."""
        self._passive.forget_after_fork()
        if self._functions is not None:
            self._functions.forget_after_fork()

    def _wrapped(self, c_module: Any) -> TorchFunctions | None:
        """PyTorch's functions with the job's view in them, ``None`` if that cannot be."""
        if self._refusal is not None:
            return None
        functions = torch_functions(c_module)
        self._refusal = functions.refusal() or self._device.reason_never_to_reset()
        if self._refusal is not None:
            functions.leave()
            return None
        functions.install()
        self._functions = functions
        return functions

    def _thread_reason(self) -> str | None:
        thread = threading.get_ident()
        before, self._thread = self._thread, thread
        return None if before in (None, thread) else "several threads end steps"

    def _note(self, reason: str | None) -> None:
        if reason == self._noted:
            return
        self._noted = reason
        if reason is None:
            self._notices.clear(_NOTE)
        else:
            known = "known only where they rise above all before"
            self._notices.note(_NOTE, f"peaks of steps are passive, {known}: {reason}")
