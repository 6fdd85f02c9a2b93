"""Prints what a command has found out, to a person, a pipe or nobody."""

from __future__ import annotations

import os
import sys

from vramscope.cli.problem import Problem


def print_answer(text: str, exit_code: int) -> None:
    """Print, unless nobody reads: ``vramscope replay ... | head -3`` is no error.

    Args:
        text: any characters; what the terminal's encoding lacks is escaped.
        exit_code: the command's own, for an answer that cannot be written.

    Raises:
        Problem: it cannot be written.
    """
    if sys.stdout is None:  # closed by whoever started the command
        return
    encoding = sys.stdout.encoding or "utf-8"
    try:
        # A path may hold what the terminal's encoding does not have.
        print(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except OSError as error:
        # The interpreter flushes once more when it ends, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            why = f"the answer could not be written: {error.strerror}"
            raise Problem(why, exit_code) from None
