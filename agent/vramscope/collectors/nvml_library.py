"""NVML as the agent uses it: loaded late, every call guarded, "not supported" asked only once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from vramscope.collectors.self_cost import ReleasedTime
from vramscope.fork_gate import no_fork
from vramscope.notices import Notices

Handle = Any
"""A device handle: an opaque ctypes pointer."""

_DRIVER_REPLACED: Final = (
    "the driver was updated while the old one is still loaded: device totals are unknown until "
    "the machine is started again; training goes on"
)


class NvmlLibrary:
    """Calls into ``pynvml`` that answer ``None`` instead of raising.

    No child is forked in the middle of a call: NVML would stay locked in it for ever.

    Args:
        notices: told once when NVML is missing or stops working.
        load: how to get the module ``pynvml``.
        released: where the time of the calls is counted: they give the GIL away.
    """

    def __init__(
        self,
        notices: Notices,
        load: Callable[[], ModuleType] = lambda: import_module("pynvml"),
        released: ReleasedTime | None = None,
    ) -> None:
        self._notices = notices
        self._released = released or ReleasedTime()
        self._load = load
        self._module: Any = None
        self._tried = False
        self._unsupported: set[tuple[str, ...]] = set()

    def open(self) -> bool:
        """Load and initialise NVML at the first call; whether it can be used."""
        if not self._tried:
            self._tried = True
            with no_fork():
                self._module = self._initialised()
        return self._module is not None

    def forget_refusals(self) -> None:
        """Ask everything anew: another device is asked."""
        self._unsupported.clear()

    def close(self) -> None:
        """Give NVML back; nothing is asked afterwards."""
        self._call("nvmlShutdown", None)
        self._module = None

    def find(self, function: str, *args: Any) -> Any:
        """Call ``function`` to look something up; ``None`` if there is no such thing."""
        return self._call(function, None, *args)

    def ask(self, function: str, *args: Any, **options: Any) -> Any:
        """Call ``function`` for a reading; ``None`` if it fails.

        What is not supported with these options is not asked again.
        """
        key = (function, *options)
        if key in self._unsupported:
            return None
        return self._call(function, key, *args, **options)

    def constant(self, name: str) -> Any:
        """A constant of the module, ``None`` if this version has none of that name."""
        return getattr(self._module, name, None)

    def _call(self, function: str, key: tuple[str, ...] | None, *args: Any, **options: Any) -> Any:
        module = self._module
        call = getattr(module, function, None)
        if call is None:
            return None
        start_ns = time.perf_counter_ns()
        try:
            with no_fork():
                return call(*args, **options)
        except (module.NVMLError, module.NVMLLibraryMismatchError) as error:
            if key is not None and _is_permanent(module, error):
                self._unsupported.add(key)
            else:
                self._note(module, error)
            return None
        finally:
            self._released.add(start_ns)

    def _note(self, module: Any, error: Exception) -> None:
        if isinstance(error, module.NVMLError_GpuIsLost):
            self._notices.note("nvml", "the driver reports that the device is lost")
        elif isinstance(error, module.NVMLError_LibRmVersionMismatch):
            self._notices.note("nvml", _DRIVER_REPLACED)

    def _initialised(self) -> Any:
        if sys.platform not in ("linux", "win32"):
            self._notices.note("nvml", "no NVML on this system: device totals are unknown")
            return None
        try:
            module: Any = self._load()
        except ImportError:
            self._notices.note("nvml", "nvidia-ml-py is not installed: device totals are unknown")
            return None
        try:
            module.nvmlInit()
        except module.NVMLError_LibRmVersionMismatch:
            self._notices.note("nvml", _DRIVER_REPLACED)
            return None
        except module.NVMLError as error:
            self._notices.note("nvml", f"NVML not found ({error}): device totals are unknown")
            return None
        return module


def _is_permanent(module: Any, error: Exception) -> bool:
    return isinstance(
        error,
        (
            module.NVMLError_NotSupported,
            module.NVMLError_FunctionNotFound,
            # Of a driver that is too old as well, for functions that have several versions.
            module.NVMLLibraryMismatchError,
            module.NVMLError_NoPermission,
        ),
    )
