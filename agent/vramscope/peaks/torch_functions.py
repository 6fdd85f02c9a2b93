"""PyTorch's functions that read and reset the counters, with the job's own view in their answers.

The lowest ones are wrapped: every function of ``torch.cuda`` and ``torch.accelerator`` looks them
up when it is called, in every release. Not seen is who has taken the function itself from
``torch._C`` before, and what C++ reads.

One object for the process: what the job's peaks need outlives the agent, and one that is attached
later takes it over.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any, Final

from vramscope.guard import guarded
from vramscope.peaks.user_peaks import UserPeaks

READ: Final = "_cuda_memoryStats"
RESET: Final = "_cuda_resetPeakMemoryStats"
RESET_TOTALS: Final = "_cuda_resetAccumulatedMemoryStats"
READ_ANY: Final = "_accelerator_getDeviceStats"
RESET_ANY: Final = "_accelerator_resetPeakStats"
RESET_TOTALS_ANY: Final = "_accelerator_resetAccumulatedStats"

_NEEDED: Final = (READ, RESET)
NATIVE_TYPES: tuple[type, ...] = (BuiltinFunctionType,)
"""What PyTorch's own functions are. Anything else is somebody's wrapper."""


class TorchFunctions:
    """Wraps the functions of one ``torch._C``.

    Args:
        c_module: ``torch._C`` of a process that uses CUDA.
    """

    def __init__(self, c_module: Any) -> None:
        self._c_module = c_module
        self._pid = -1
        self._originals: dict[str, Callable[..., Any]] = {}
        self._wrappers: dict[str, Callable[..., Any]] = {}
        self._devices: dict[int, UserPeaks] = {}
        self._is_leaving = False

    def is_of(self, c_module: Any) -> bool:
        """Whether these are the functions of that module."""
        return self._c_module is c_module

    def refusal(self) -> str | None:
        """Why the functions cannot be wrapped, ``None`` if they can."""
        for name in (*_NEEDED, READ_ANY, RESET_ANY):
            function = getattr(self._c_module, name, None)
            if function is None:
                if name in _NEEDED:
                    return f"this PyTorch has no torch._C.{name}"
            elif name not in self._wrappers and not isinstance(function, NATIVE_TYPES):
                return f"somebody else has replaced torch._C.{name}"
        return None

    def install(self) -> None:
        """Wrap what is not wrapped, also after somebody has put an original back."""
        self._pid = os.getpid()
        self._is_leaving = False
        for name, make in (
            (READ, self._reading),
            (RESET, self._resetting),
            (RESET_TOTALS, self._resetting_totals),
            (READ_ANY, self._reading_any),
            (RESET_ANY, self._resetting),
            (RESET_TOTALS_ANY, self._resetting_totals),
        ):
            function: Any = getattr(self._c_module, name, None)
            is_native = isinstance(function, NATIVE_TYPES)
            if is_native:
                if name not in self._wrappers:
                    self._originals[name] = function
                    self._wrappers[name] = self._wrapped(make, function)
                setattr(self._c_module, name, self._wrappers[name])

    def device(self, index: int) -> UserPeaks:
        """The job's view of one device."""
        peaks = self._devices.get(index)
        if peaks is None:
            read, reset = self._originals[READ], self._originals[RESET]
            totals = self._originals.get(RESET_TOTALS)
            peaks = UserPeaks(
                functools.partial(read, index),
                functools.partial(reset, index),
                None if totals is None else functools.partial(totals, index),
            )
            self._devices[index] = peaks
        return peaks

    def leave(self) -> None:
        """Put the originals back as soon as the job's peaks are the real ones.

        That is now, or else when the job resets its peaks, or has gone above them. Until then its
        questions are answered as before.
        """
        self._is_leaving = True
        self._leave_if_idle()

    def forget_after_fork(self) -> None:
        """In a forked child: only pass on, and take no lock; another fork may have our pid."""
        self._pid = -1

    @property
    def is_installed(self) -> bool:
        """Whether anything is wrapped."""
        return bool(self._wrappers)

    # ------------------------------------------------------------------------ the wrappers

    def _wrapped(
        self, make: Callable[[Callable[..., Any]], Any], original: Any
    ) -> Callable[..., Any]:
        wrapper: Callable[..., Any] = functools.wraps(original)(make(original))
        # Read by Dynamo: code that is compiled must call this, not trace into it.
        wrapper.__dict__["_torchdynamo_disable"] = True
        return wrapper

    def _reading(self, original: Callable[..., Any], *, by_name: bool = False) -> Any:
        def memory_stats(*args: Any) -> Any:
            peaks = self._asked(args)
            if peaks is None:
                return original(*args)
            resets = peaks.resets
            stats = original(*args)
            with guarded("peaks"):
                stats = peaks.completed(stats, resets, lambda: original(*args), by_name=by_name)
                self._leave_if_idle()
            return stats

        return memory_stats

    def _reading_any(self, original: Callable[..., Any]) -> Any:
        return self._reading(original, by_name=True)

    def _resetting(self, original: Callable[..., Any]) -> Any:
        def reset(*args: Any) -> Any:
            peaks = self._asked(args)
            if peaks is None:
                return original(*args)
            with guarded("peaks"):
                peaks.reset()
                self._leave_if_idle()
                return None
            return original(*args)  # pyright: ignore[reportUnreachable]  # the guard swallows

        return reset

    def _resetting_totals(self, original: Callable[..., Any]) -> Any:
        def reset_totals(*args: Any) -> Any:
            peaks = self._asked(args)
            if peaks is None:
                return original(*args)
            with guarded("peaks"):
                peaks.reset_accumulated()
                return None
            return original(*args)  # pyright: ignore[reportUnreachable]  # the guard swallows

        return reset_totals

    def _asked(self, args: tuple[Any, ...]) -> UserPeaks | None:
        """Whose counters a call is about, if they are looked after."""
        if len(args) != 1 or os.getpid() != self._pid:
            return None
        index = args[0]
        return self._devices.get(index) if isinstance(index, int) else None

    def _leave_if_idle(self) -> None:
        if not self._is_leaving or any(peaks.is_higher() for peaks in self._devices.values()):
            return
        for name, wrapper in self._wrappers.items():
            # Under somebody else's wrapper ours stays, and only passes on.
            if getattr(self._c_module, name, None) is wrapper:
                setattr(self._c_module, name, self._originals[name])
        self._pid = -1
        self._wrappers.clear()
        self._devices.clear()


_of_process: TorchFunctions | None = None


def torch_functions(c_module: Any) -> TorchFunctions:
    """Those of this process."""
    global _of_process
    if _of_process is None or not _of_process.is_of(c_module):
        _of_process = TorchFunctions(c_module)
    return _of_process
