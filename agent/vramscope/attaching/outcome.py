"""What comes of an attach or detach: the answer of the process, or why there is none."""

from __future__ import annotations

from typing import Final

import msgspec

MAX_ANSWER_BYTES: Final = 64 << 10


class Answer(msgspec.Struct, frozen=True):
    """What the process wrote. It is of a stranger: every part is checked on reading."""

    ok: bool
    already: bool = False
    """Nothing had to be done: it was attached before, or was not attached at all."""
    run_id: str = ""
    run_name: str = ""
    rank: int = 0
    url: str = ""
    """Address of the page; empty while no server has taken the stream."""
    version: str = ""
    """vramscope as the process has it."""
    message: str = ""
    """Why it failed, or what was done."""
    final: bool = True
    """Whether no better answer follows."""


class Outcome(msgspec.Struct, frozen=True):
    """What one process answered, and how it was reached."""

    pid: int
    ok: bool
    already: bool
    run_id: str
    run_name: str
    rank: int
    url: str
    version: str
    message: str
    method: str
    """How the process was reached: "pending_call" or "remote_exec"."""
    stopped_us: float
    """Microseconds for which its main thread was stopped."""


class AttachError(Exception):
    """A process cannot be attached to, or did not answer.

    Args:
        message: one line: what is in the way, and what helps.
        kind: a word for programs: "gone", "permission", "blocked", "not_importable", ...
        detail: further lines for a person, such as the stack that blocks; may be empty.
    """

    def __init__(self, message: str, kind: str, detail: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.detail = detail


def decode_answer(data: bytes) -> Answer | None:
    """The answer in a file; ``None`` if it is not one."""
    try:
        return msgspec.json.decode(data, type=Answer)
    except msgspec.DecodeError:
        return None
