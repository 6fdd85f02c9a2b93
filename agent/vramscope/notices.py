"""What the agent tells a person: single lines on stderr, and notes on what is degraded."""

from __future__ import annotations

import sys
import threading

from vramscope.fork_gate import no_fork

PREFIX = "vramscope: "
_MAX_NOTES = 32
_MAX_TEXT = 1000


class Notices:
    """Says each thing once and remembers what is degraded now. Never raises, any thread."""

    def __init__(self) -> None:
        # Re-entrant: a garbage collection inside may run our code on the same thread.
        self._lock = threading.RLock()
        self._said: set[str] = set()
        self._notes: dict[str, str] = {}
        self.last = ""
        """What was printed last."""

    def say(self, key: str, text: str) -> None:
        """Print one line on stderr, the first time that ``key`` is used."""
        with self._lock:
            if key in self._said:
                return
            self._said.add(key)
            self.last = text
        write_line(text)

    def note(self, key: str, text: str) -> None:
        """Remember that something is degraded; a later note of the same key replaces it."""
        with self._lock:
            if key in self._notes or len(self._notes) < _MAX_NOTES:
                self._notes[key] = text

    def clear(self, key: str) -> None:
        """Forget a note: what it said is over."""
        with self._lock:
            self._notes.pop(key, None)

    def texts(self) -> list[str]:
        """What is degraded now, oldest first."""
        with self._lock:
            return list(self._notes.values())


def is_stderr_saved() -> bool:
    """Whether what is written to stderr is kept in a document: in a notebook, that of a cell is.

    Told by IPython's shell and not by the stream, which ``%%capture`` replaces.
    """
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get_shell() if get_shell is not None else None
    kinds = {kind.__name__ for kind in type(shell).__mro__}
    return shell is not None and "TerminalInteractiveShell" not in kinds


def write_line(text: str) -> None:
    """Write one prefixed line to stderr, if the process still has one."""
    # A part of it may come from a server: nothing in it may act on the terminal.
    words = " ".join(text.split())[:_MAX_TEXT]
    line = PREFIX + "".join(c if c.isprintable() else "?" for c in words) + "\n"
    stream = sys.stderr
    if stream is None:  # pyright: ignore[reportUnnecessaryComparison]  # pythonw, closed fd 2
        return
    try:
        # The stream has a lock: a child forked now could never write to it.
        with no_fork():
            # One call: lines of several ranks that share a terminal must not be mixed.
            stream.write(line)
            stream.flush()
    except (OSError, ValueError, AttributeError, TypeError):
        # The job closed its stderr, the pipe has no reader, or the job put something else in
        # its place: nobody is left to be told.
        return
