"""The model under every call that a recorded job made, none of them guessed from the trace.

The trace has the allocations and frees; the recorder noted the rest (emptied caches, limits,
settings, pools). So each entry that the model writes must be the next one of the trace.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.support.allocator_traces import flatten
from tests.support.made_recordings import comparable
from tests.support.recorded_run import RecordedRun, Row, UnloggedCall, differences
from vramscope_analysis.allocator import (
    Block,
    CachingAllocator,
    OutOfMemoryError,
    changed_settings,
    parse_settings,
)
from vramscope_analysis.replay import Recording

OTHER_STREAM = -1
"""Stands for the streams that used a block: the trace shows that there were some, not which."""

Entry = tuple[str, int, int, int]
"""(action, address, size, stream) of one trace entry; no address for ``oom``."""


def with_pool_ids(recording: Recording, run: RecordedRun) -> Recording:
    """The recording with the pool of each entry, as torch writes it from 2.12 on.

    Raises:
        Mismatch: as :meth:`KnownCalls.replay`.
    """
    known = KnownCalls(run)
    known.replay()
    events = replace(recording.events, pool_ids=np.array(known.pool_ids, dtype=np.int64))
    return replace(recording, events=events)


class Mismatch(AssertionError):
    """The model did something else than the recorded allocator."""


class KnownCalls:
    """Makes the calls of one run to a model, in order.

    Raises:
        Mismatch: at the first entry, address or counter that differs.
    """

    def __init__(self, run: RecordedRun) -> None:
        self._run = run
        self._entries = [_entry(e) for e in run.snapshot.to_plain()["device_traces"][0]]
        self._written: list[Entry] = []
        self._position = 0
        self._blocks: dict[int, Block] = {}
        self._waiting: dict[int, Block] = {}
        self._scopes = 0
        self.rows_compared = 0
        self.pool_ids: list[tuple[int, int]] = []
        self.model = CachingAllocator(
            run.capacity_bytes,
            parse_settings(run.conf, version=run.version),
            version=run.version,
            addresses=self,
            on_event=self._note,
        )

    def replay(self) -> None:
        """Make all calls; compare every entry, every row, and what there is at the end."""
        notes: list[Row | UnloggedCall] = [*self._run.calls, *self._run.rows]
        for note in sorted(notes, key=lambda note: (note.event, note.time_us)):
            self._advance(note.event)
            if isinstance(note, Row):
                self._compare_counters(note.counters)
                self.rows_compared += 1
            else:
                self._make(note)
        self._advance(len(self._entries))
        self._compare_counters(self._run.final_stats)
        expected = comparable(self._run.snapshot.to_plain()["segments"])
        if comparable(self.model.segments()) != expected:
            raise Mismatch("other segments at the end")

    # ------------------------------------------------------------- what the trace has no entry of

    def _make(self, call: UnloggedCall) -> None:
        details = dict(call.details)
        pool = tuple(details.get("pool") or ())
        model = self.model
        if call.name == "empty_cache":
            self._complete_frees()
            model.empty_cache()
        elif call.name == "set_limit":
            model.set_limit(details["limit_bytes"])
        elif call.name == "set_settings":
            model.set_settings(
                changed_settings(details["conf"], model.settings, version=model.version)
            )
        elif call.name == "reset_peaks":
            model.reset_peaks()
        elif call.name == "create_pool":
            model.create_pool(pool, use_on_oom=details["use_on_oom"], no_split=details["no_split"])
        elif call.name == "begin_pool":
            model.begin_allocate_to_pool(pool, is_capture=details["is_capture"])
            self._scopes += 1
        elif call.name == "end_pool":
            model.end_allocate_to_pool(pool)
            self._scopes -= 1
        elif call.name == "release_pool":
            model.release_pool(pool)
            if details["reason"] == "pool":  # what the destructor of MemPool does besides
                model.empty_cache(pool)
        else:
            raise ValueError(f"expected a call that is known, got {call.name}")
        self._compare_entries()

    # ------------------------------------------------------------------ what it has entries of

    def _advance(self, until: int) -> None:
        """Make every call whose entries come before ``until``."""
        while self._position < until:
            action, address, _size, _stream = self._entries[self._position]
            if action == "free_requested":
                self._free(address, until)
            else:
                self._request()
            self._compare_entries()
        if self._position != until:
            raise Mismatch(f"entry {self._position}: a call belongs at entry {until}")

    def _free(self, address: int, until: int) -> None:
        following = self._entries[self._position + 1 : min(self._position + 2, until)]
        block = self._blocks.pop(address)
        if not following or following[0][:2] != ("free_completed", address):
            self.model.record_stream(block, OTHER_STREAM)
            if not self._scopes:  # else the model itself frees it after the capture
                self._waiting[address] = block
        self.model.free(block)

    def _request(self) -> None:
        """The next request, with the entries before it that it caused."""
        cause = self._position
        while self._entries[cause][0] not in ("alloc", "oom"):
            cause += 1
        action, address, size_bytes, stream = self._entries[cause]
        caused = [entry[0] for entry in self._entries[self._position : cause]]
        flushes = "segment_free" in caused or "segment_unmap" in caused
        # Completed before the request, unless a flush may have waited for them: that is only
        # possible without garbage collection, which waits for nothing.
        if not flushes or self.model.settings.garbage_collection_threshold:
            self._complete_frees()
        try:
            block = self.model.malloc(size_bytes, stream)
        except OutOfMemoryError:
            if action != "oom":
                raise Mismatch(f"entry {cause}: out of memory") from None
        else:
            if action == "oom" or block.address != address:
                raise Mismatch(f"entry {cause}: expected {action} {address:#x}, got {block}")
            self._blocks[address] = block

    def _complete_frees(self) -> None:
        """Free the blocks that the next entries say are free now."""
        for action, address, _size, _stream in self._entries[self._position :]:
            if action != "free_completed" or address not in self._waiting:
                return
            self.model.complete_free(self._waiting.pop(address))

    # ----------------------------------------------------------------------------- comparisons

    def _note(
        self, action: str, address: int, size: int, stream: int, pool_id: tuple[int, int]
    ) -> None:
        self.pool_ids.append(pool_id)
        self._written.append((action, 0 if action == "oom" else address, size, stream))
        if action == "free_completed":
            self._waiting.pop(address, None)

    def _compare_entries(self) -> None:
        """What the model wrote is what comes next in the trace.

        When a flush waits for several streams, the order among them is that of a hash table.
        """
        end = self._position + len(self._written)
        expected = self._entries[self._position : end]
        if expected != self._written and _unordered(expected) != _unordered(self._written):
            raise Mismatch(f"from entry {self._position}: expected {expected}, got {self._written}")
        self._position = end
        self._written.clear()

    def _compare_counters(self, expected: dict[str, int]) -> None:
        wrong = differences(expected, flatten(self.model.memory_stats()))
        if wrong:
            raise Mismatch(f"after {self._position} entries: {'; '.join(wrong)}")

    # -------------------------------------------------------------------- where segments are put

    def reserve(self, _size_bytes: int) -> int:
        """Where the driver put the next segment."""
        return self._next_address("segment_alloc")

    def release(self, address: int, size_bytes: int) -> None:
        """The trace knows where the next one goes."""

    def reserve_range(self, _size_bytes: int) -> int:
        """A new range begins where its first pages were mapped."""
        return self._next_address("segment_map")

    def release_range(self, address: int, size_bytes: int) -> None:
        """The trace knows where the next one goes."""

    def _next_address(self, action: str) -> int:
        position = self._position + len(self._written)
        for found, address, _size, _stream in self._entries[position:]:
            if found == action:
                return address
        raise Mismatch(f"entry {position}: a {action} that nobody recorded")


def _entry(plain: dict[str, Any]) -> Entry:
    return plain["action"], plain.get("addr", 0), plain["size"], plain["stream"]


def _unordered(entries: list[Entry]) -> list[Entry]:
    """Late frees first and in a fixed order, the rest as it is."""
    late = [entry for entry in entries if entry[0] == "free_completed"]
    return [*sorted(late), *(entry for entry in entries if entry[0] != "free_completed")]
