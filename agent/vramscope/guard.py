"""The border between vramscope and the job: what goes wrong on our side stays on our side.

``guarded`` is the only place that swallows exceptions broadly. It lets ``KeyboardInterrupt``,
``SystemExit`` and every other ``BaseException`` through: those are for the user's program.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any, Final, TypeVar

LOG_INTERVAL_S: Final = 300.0
"""A place that keeps failing is logged once in this time; the count goes on."""

T = TypeVar("T")
U = TypeVar("U")
ErrorHook = Callable[[str, Exception], None]

_log = logging.getLogger("vramscope")
_next_log_s: dict[str, float] = {}
_counts: dict[str, int] = {}
_hook: ErrorHook | None = None


class guarded(ContextDecorator):
    """Swallow, count and log an exception of ours; as a context manager or a decorator.

    Args:
        where: the place, in words for the log: "sampler", "step hook", ...
    """

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        report(self._where, error)
        return True


def guarded_call(where: str, call: Callable[..., T], failed: U, *args: Any) -> T | U:
    """Answer what ``call`` does, or ``failed`` where it fails: ``guarded`` at a third of its cost.

    Args:
        where: the place, in words for the log.
        call: what may fail.
        failed: the answer then.
        args: what it is called with.
    """
    try:
        return call(*args)
    except Exception as error:  # noqa: BLE001 - this is the border
        report(where, error)
        return failed


def guarded_row(
    where: str, calls: Iterable[tuple[Callable[[], Sequence[int]], list[int]]]
) -> list[int]:
    """Join what several calls answer; one that fails costs its own numbers and no others.

    Args:
        where: the place, in words for the log.
        calls: each with what stands there if it fails.
    """
    row: list[int] = []
    for call, failed in calls:
        try:
            found = call()
        except Exception as error:  # noqa: BLE001 - this is the border
            report(where, error)
            found = failed
        row += found if len(found) == len(failed) else failed
    return row


class Attempt:
    """Run something whose failure is an answer, not a bug: a command of the user.

    The exception is kept in :attr:`error` for the caller to report, and is not counted.
    """

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> Attempt:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        # The traceback would keep the frames of the job, and their tensors, alive.
        self.error = error.with_traceback(None)
        return True


def report(where: str, error: Exception) -> None:
    """Count an exception and log it in one line, at most once per place and interval."""
    count = _counts.get(where, 0) + 1
    _counts[where] = count
    if _hook is not None:
        _hook(where, error)
    now_s = time.monotonic()
    if now_s < _next_log_s.get(where, 0.0):
        return
    _next_log_s[where] = now_s + LOG_INTERVAL_S
    try:
        _log.warning("vramscope: %s (%s, no. %d); the job goes on", where, summary(error), count)
        _log.debug("vramscope: %s", where, exc_info=error)
    except Exception:  # noqa: BLE001 - this is the border
        # A log handler of the user that raises must not turn our error into the job's.
        _counts["log"] = _counts.get("log", 0) + 1


def summary(error: BaseException) -> str:
    """Type and first line of an exception, short enough for one line of log or receipt."""
    lines = text_of(error).strip().splitlines()
    text = lines[0][:300] if lines else ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def text_of(error: BaseException) -> str:
    """What an exception says; empty where that is code of the job which fails itself."""
    with Attempt():
        return str(error)
    return ""


def error_count() -> int:
    """How many exceptions were swallowed since the start."""
    return sum(list(_counts.values()))


def errors_by_place() -> dict[str, int]:
    """The same, by place."""
    return dict(_counts)


def set_error_hook(hook: ErrorHook | None) -> None:
    """Let ``hook`` see every swallowed exception (tests re-raise them), or nobody."""
    global _hook
    _hook = hook
