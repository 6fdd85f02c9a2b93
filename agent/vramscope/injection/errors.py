"""Why a process cannot be reached, in one sentence and one word."""

from __future__ import annotations


class NotInjectable(Exception):
    """No line of Python can be put into this process; nothing was stopped to find that out.

    Attributes:
        reason: one sentence without a full stop, starting in lower case.
        kind: ``gone``, ``permission``, ``not_python``, ``not_cpython``, ``version``,
            ``architecture``, ``symbols``, ``shadow_stack``, ``disabled`` or ``traced``.
    """

    def __init__(self, reason: str, kind: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind


class InjectionError(Exception):
    """It was tried and did not work; the process runs on as before.

    Attributes:
        reason: one sentence without a full stop, starting in lower case.
        kind: ``permission``, ``traced``, ``gone``, ``busy``, ``memory``, ``disabled`` or
            ``failed``.
    """

    def __init__(self, reason: str, kind: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind
