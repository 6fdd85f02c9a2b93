"""A key-value store like that of a process group, in memory, which can fail or hang."""

from __future__ import annotations

import threading


class FakeStore:
    """What ranks share. Every rank of a test is given the same one."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        self.error: Exception | None = None
        self.asked = 0
        self._lock = threading.Lock()
        self._answers = threading.Event()
        self._answers.set()

    def hang(self) -> None:
        """Answer nobody until :meth:`recover`."""
        self._answers.clear()

    def recover(self) -> None:
        """Answer again, those who wait as well."""
        self._answers.set()

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Write a word where there is none; the word that stands."""
        self._ask()
        with self._lock:
            if expected == self.words.get(key, ""):
                self.words[key] = desired
            return self.words.get(key, expected).encode()

    def check(self, keys: list[str]) -> bool:
        """Whether all keys are there."""
        self._ask()
        return all(key in self.words for key in keys)

    def get(self, key: str) -> bytes:
        """The word under a key."""
        return self.words[key].encode()

    def _ask(self) -> None:
        self.asked += 1
        self._answers.wait(20)
        if self.error is not None:
            raise self.error
