"""Waits for what the writer thread reports."""

from __future__ import annotations

import threading
from collections.abc import Mapping

WAIT_S = 20.0


class Commits:
    """Collects acks and failures; tests wait for them instead of for time."""

    def __init__(self) -> None:
        self.acks: dict[str, int] = {}
        self.history: list[dict[str, int]] = []
        self.failed: dict[str, str] = {}
        self._changed = threading.Condition()

    def on_commit(self, acks: Mapping[str, int]) -> None:
        with self._changed:
            self.history.append(dict(acks))
            self.acks.update(acks)
            self._changed.notify_all()

    def on_stream_failed(self, uid: str, reason: str) -> None:
        with self._changed:
            self.failed[uid] = reason
            self._changed.notify_all()

    def wait_for_ack(self, uid: str, seq: int) -> None:
        with self._changed:
            done = self._changed.wait_for(lambda: self.acks.get(uid, 0) >= seq, WAIT_S)
        assert done, f"expected an ack of {seq} for {uid}, got {self.acks}"

    def wait_for_failure(self, uid: str) -> str:
        with self._changed:
            done = self._changed.wait_for(lambda: uid in self.failed, WAIT_S)
        assert done, f"expected {uid} to fail"
        return self.failed[uid]
