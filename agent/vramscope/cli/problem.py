"""What ends a command early: one line for a person, and the exit code."""

from __future__ import annotations


class Problem(Exception):
    """A command cannot go on.

    Args:
        message: one line: expected, got, what to do.
        exit_code: 1 for refused, failed or expired; 2 for bad usage or input.
    """

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code
