"""Snapshots that are open: read once, then asked often, few at a time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO, Final, TypeVar

from vramscope_analysis.moments import RecordedMemory
from vramscope_analysis.snapshot import Limits, Snapshot, SnapshotError, read_snapshot
from vramscope_protocol.errors import BAD_REQUEST, NOT_FOUND, RATE_LIMITED, VramscopeError

T = TypeVar("T")

MOST_OPEN: Final = 2
"""One that is looked at, and one that it is compared with."""
MOST_WAITING: Final = 32
"""Questions that wait for the one thread; more are refused."""
READER_LIMITS: Final = Limits(file_bytes=4 << 30)


@dataclass(frozen=True)
class Wanted:
    """One device of one stored snapshot.

    Args:
        snapshot: id.
        device: index; None is the one with the most to tell.
        steps: (step, time_us) of the ends of steps, as the agent noted them.
    """

    snapshot: str
    device: int | None
    steps: Sequence[Sequence[int]] = ()


class Recordings:
    """Answers questions about stored snapshots in a thread of its own.

    There is one thread: two large snapshots are never being read at the same time, and what is
    open needs no lock.

    Args:
        open_now: opens the stored file of a snapshot; blocking.
        most_open: how many stay open; the one that was not asked for longest goes first.
        limits: what reading one may cost.
    """

    def __init__(
        self,
        open_now: Callable[[str], BinaryIO],
        *,
        most_open: int = MOST_OPEN,
        limits: Limits = READER_LIMITS,
    ) -> None:
        self._open_now = open_now
        self._most_open = most_open
        self._limits = limits
        self._open: OrderedDict[str, Snapshot] = OrderedDict()
        self._memories: dict[tuple[str, int | None], RecordedMemory] = {}
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, "vramscope-snapshots")

    @property
    def open_snapshots(self) -> list[str]:
        """Ids of those that are open, the next to go first."""
        return list(self._open)

    async def ask(self, question: Callable[..., T], *wanted: Wanted) -> T:
        """Call ``question`` with the memory of each that is wanted, off the event loop.

        Raises:
            VramscopeError: ``bad_request`` with what is wrong with the file, ``not_found`` for a
                device that is not in it, ``rate_limited`` if too many wait already, and whatever
                opening it raises.
        """
        if self._waiting >= MOST_WAITING:
            raise VramscopeError(
                RATE_LIMITED, f"{MOST_WAITING} questions about snapshots wait already; ask again"
            )
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, self._answer, question, wanted
            )
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Let go of everything; a question under way is not waited for."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._open.clear()
        self._memories.clear()

    def _answer(self, question: Callable[..., T], wanted: Sequence[Wanted]) -> T:
        memories = [self._memory(one) for one in wanted]
        return question(*memories)

    def _memory(self, wanted: Wanted) -> RecordedMemory:
        snapshot = self._snapshot(wanted.snapshot)
        key = (wanted.snapshot, wanted.device)
        if key not in self._memories:
            try:
                made = RecordedMemory.of(snapshot, wanted.device, wanted.steps)
            except ValueError as error:
                raise VramscopeError(NOT_FOUND, f"device: {error}") from None
            # Asked for by its number or not, it is the same one.
            made = self._memories.setdefault((wanted.snapshot, made.device), made)
            self._memories[key] = made
        return self._memories[key]

    def _snapshot(self, name: str) -> Snapshot:
        if name in self._open:
            self._open.move_to_end(name)
            return self._open[name]
        # Room first: the new one must not come on top of all that are open.
        while len(self._open) >= self._most_open:
            gone, _ = self._open.popitem(last=False)
            for key in [key for key in self._memories if key[0] == gone]:
                del self._memories[key]
        with self._open_now(name) as file:
            try:
                snapshot = read_snapshot(file, limits=self._limits)
            except SnapshotError as error:
                said = str(error).partition(": ")[2] or str(error)
                raise VramscopeError(BAD_REQUEST, f"this snapshot cannot be read: {said}") from None
        self._open[name] = snapshot
        return snapshot
