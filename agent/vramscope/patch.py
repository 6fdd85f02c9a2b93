"""Something of ours before and after a function of somebody else, for as long as it is wanted."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from vramscope.guard import guarded

Before = Callable[[Any], None]
After = Callable[[Any, BaseException | None], None]
Returned = Callable[[Any], None]


class Patch:
    """Puts a wrapper in the place of ``owner.name``, and the function back.

    The function is called as before, and what it raises leaves it as before: from Python 3.11 on
    not even the traceback has a line of ours. In a forked child the wrapper only passes on.

    Args:
        owner: the module or class.
        name: the function's name there.
        before: called with the first argument, before each call.
        after: called with the first argument and what was raised, after each call that began
            with ``before``.
        where: the place, in words for the log.
        returned: called with what the function returned, before ``after``.
    """

    def __init__(
        self,
        owner: Any,
        name: str,
        before: Before,
        after: After,
        where: str,
        returned: Returned | None = None,
    ) -> None:
        self._owner = owner
        self._name = name
        self._before: Before = before
        self._after: After = after
        self._where = where
        self._returned = returned
        self._pid = -1
        self._original: Any = None
        self._wrapper: Any = None

    def install(self) -> None:
        """Wrap the function. A second call does nothing.

        Raises:
            AttributeError: there is no such function.
        """
        if self._wrapper is not None:
            return
        self._pid = os.getpid()
        self._original = original = getattr(self._owner, self._name)

        @functools.wraps(original)
        def wrapper(*args: Any, **options: Any) -> Any:
            is_followed = os.getpid() == self._pid
            first = args[0] if args else None
            if is_followed:
                with guarded(self._where):
                    self._before(first)
            raised: BaseException | None = None
            try:
                value = original(*args, **options)
                if is_followed and self._pid != -1 and self._returned is not None:
                    with guarded(self._where):
                        self._returned(value)
            except BaseException as error:
                # Takes our own line out: who reads the traceback looks for the job's mistake.
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raised = error
                raise
            finally:
                if is_followed and self._pid != -1:
                    with guarded(self._where):
                        self._after(first, raised)
                # Or the error would hold this frame, and this frame the error.
                del raised
            return value

        # Read by Dynamo: code that is compiled must call this, not trace into it.
        wrapper.__dict__["_torchdynamo_disable"] = True
        self._wrapper = wrapper
        setattr(self._owner, self._name, wrapper)

    def remove(self) -> None:
        """Put the function back. Under somebody else's wrapper ours stays, and only passes on."""
        self._pid = -1
        if self._wrapper is not None and getattr(self._owner, self._name) is self._wrapper:
            setattr(self._owner, self._name, self._original)
        self._wrapper = None

    def forget_after_fork(self) -> None:
        """In a forked child: only pass on; another fork may have our pid."""
        self._pid = -1
