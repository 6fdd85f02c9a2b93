"""The options that PyTorch's allocator goes by, told when they are known and when they change."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from vramscope.collectors.allocator_options import Options, followed
from vramscope.devices.allocator_control import GETTER, SETTERS, torch_release
from vramscope.devices.caching_allocator import initialised_cuda
from vramscope.patch import Patch
from vramscope.sampling.clock import Clock
from vramscope_protocol.messages import Event

VARIABLES: Final = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
"""Read by every release, the first that is set."""
NEWER_VARIABLE: Final = "PYTORCH_ALLOC_CONF"
"""Read after them from 2.10 on."""

_NEWER_SINCE: Final = (2, 10)
_LOOK_INTERVAL_NS: Final = 1_000_000_000
_MAX_TEXT: Final = 1000


class AllocatorSettings:
    """Follows the options as text, in PyTorch's own words. A collector without columns.

    PyTorch reads the environment when it first uses the device, and the job may set others later.
    Where it can be asked (2.12 and newer) it is.

    Args:
        clock: for how often it is looked.
        emit: takes an event when the options are known, and when they have changed.
        current_step: steps finished so far.
        emulated: whether the device is an emulated one.
        environ: the environment of the process.
    """

    names: tuple[str, ...] = ()

    def __init__(
        self,
        clock: Clock,
        emit: Callable[[Event], object],
        current_step: Callable[[], int],
        *,
        emulated: bool = False,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._clock = clock
        self._emit = emit
        self._current_step = current_step
        self._emulated = emulated
        self._environ = environ
        self._patches: list[Patch] = []
        self._set_text: str | None = None
        self._first_text: str | None = None
        self._followed: str | None = None
        self._known: Options = {}
        self._told: str | None = None
        self._due_ns = 0

    def read(self) -> list[int]:
        """Look once a second whether they are known, or have changed. Sampler thread."""
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + _LOOK_INTERVAL_NS
            self._tell(self.text())
        return []

    def text(self) -> str | None:
        """As in ``PYTORCH_CUDA_ALLOC_CONF``; empty is the defaults, ``None`` is not known yet."""
        c_module = self._c_module()
        if c_module is None:
            return None
        if self._first_text is None:
            self._first_text = text_of_environment(self._environ, torch_release())
        self._follow_changes(c_module)
        getter = getattr(c_module, GETTER, None)
        asked = getter() if getter is not None else ""
        text = str(asked or (self._first_text if self._set_text is None else self._set_text))
        if self._followed is None and text != self._first_text:
            self._follow(self._first_text)
        self._follow(text)
        return text[:_MAX_TEXT]

    def known(self) -> Options:
        """All that is known to be set now: each text changes some options and leaves others."""
        self.text()
        return {**self._known}

    def remove(self) -> None:
        """Leave PyTorch as it was."""
        for patch in reversed(self._patches):
            patch.remove()
        self._patches.clear()

    def forget_after_fork(self) -> None:
        """In a forked child: do nothing any more."""
        for patch in self._patches:
            patch.forget_after_fork()

    def _c_module(self) -> Any:
        if self._emulated:
            return getattr(sys.modules.get("torch"), "_C", None)
        return initialised_cuda()

    def _follow_changes(self, c_module: Any) -> None:
        """Older releases cannot be asked: what the job sets is noted as it sets it."""
        if self._patches or hasattr(c_module, GETTER):
            return
        for name in SETTERS:
            if hasattr(c_module, name):
                patch = Patch(c_module, name, self._saw_set, _nothing, "allocator settings")
                patch.install()
                self._patches.append(patch)

    def _saw_set(self, text: Any) -> None:
        # Whatever PyTorch thinks of it: a wrong part raises after those before it have come true.
        self._set_text = str(text)
        self._follow(self._set_text)

    def _follow(self, text: str) -> None:
        if text != self._followed:
            self._followed = text
            self._known = followed(self._known, text, torch_release())

    def _tell(self, text: str | None) -> None:
        if text is None or text == self._told:
            return
        self._told = text
        words = f"allocator settings: {text}" if text else "allocator settings: PyTorch's defaults"
        step = self._current_step()
        self._emit(Event(0, self._clock.time_ns(), "settings", step, words, {"text": text}))


def text_of_environment(environ: Mapping[str, str], release: tuple[int, int]) -> str:
    """What PyTorch of this release takes from the environment; empty is nothing."""
    names = (*VARIABLES, NEWER_VARIABLE) if release >= _NEWER_SINCE else VARIABLES
    return next((environ[name] for name in names if environ.get(name)), "")


def _nothing(first: Any, raised: BaseException | None) -> None:
    del first, raised
