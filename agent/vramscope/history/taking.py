"""A snapshot that was taken, until it is written: the answer to the command that asked for it."""

from __future__ import annotations

import time
from typing import Any

from vramscope.history.writing import Writing
from vramscope.size_text import size_text
from vramscope_protocol.commands import Receipt


class Taking:
    """Goes on until the writing thread is through. Implements ``Ongoing``.

    Args:
        identity: id of the snapshot.
        writing: writes it.
        result: what is known of it already, for the receipt.
    """

    def __init__(self, identity: str, writing: Writing, result: dict[str, Any]) -> None:
        self.identity = identity
        self._writing = writing
        self._result = result
        self._began_s = time.perf_counter()

    @property
    def progress(self) -> str:
        """It is short."""
        return "the snapshot is being written"

    @property
    def is_over(self) -> bool:
        """Whether the writing thread is through."""
        return self._writing.is_over

    def poll(self, step: int) -> Receipt | None:
        """The receipt, once it is written."""
        del step
        return self.poll_on_agent_thread()

    def poll_on_agent_thread(self) -> Receipt | None:
        """The receipt, once it is written."""
        if self._writing.error:
            return Receipt("failed", message=f"not written: {self._writing.error}")
        file = self._writing.file
        if file is None:
            return None
        result = {
            "snapshot": self.identity,
            **self._result,
            "raw_bytes": file.raw_bytes,
            "wire_bytes": file.wire_bytes,
        }
        entries = self._result["entries"]
        history = f", {entries} events of history" if entries else ""
        text = (
            f"Snapshot {self.identity}: {self._result['blocks']} blocks in "
            f"{self._result['segments']} segments{history}; {size_text(file.raw_bytes)}. "
            f"The job waited {self._result['gil_ms']:.1f} ms for it."
        )
        took_s = time.perf_counter() - self._began_s + self._result["gil_ms"] / 1e3
        return Receipt("done", took_s=took_s, message=text, result=result)

    def cancel(self, reason: str) -> Receipt:
        """Write no further."""
        receipt = self.poll_on_agent_thread()
        if receipt is not None:
            return receipt
        self._writing.cancel()
        return Receipt("failed", message=f"{reason}; the snapshot was not written")
