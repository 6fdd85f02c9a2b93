"""Brings findings to the store as they change; what it does not take now is tried again later."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from copy import copy
from typing import Final

from vramscope_protocol.errors import VramscopeError
from vramscope_server.findings.record import FindingRecord
from vramscope_server.store import findings
from vramscope_server.store.store import Store

_logger = logging.getLogger("vramscope.findings")

_RETRY_S: Final = 5.0
_STOP_S: Final = 2.0


class FindingWriter:
    """Keeps the present state of whatever has changed until it is stored."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._dirty: dict[str, FindingRecord] = {}
        self._writing = asyncio.Lock()
        self._changed = asyncio.Event()

    def note(self, record: FindingRecord) -> None:
        """A finding has changed: write it soon."""
        self._dirty[record.id] = copy(record)
        self._changed.set()

    async def write(self) -> None:
        """Store what has changed."""
        async with self._writing:
            records, self._dirty = self._dirty, {}
            if not records:
                return
            is_stored = False
            try:
                await self._store.write(lambda c: findings.put(c, list(records.values())))
                is_stored = True
            except VramscopeError as error:
                _logger.error("findings could not be stored: %s", error.message)
            finally:
                if not is_stored:  # or whoever waited was cancelled; what has changed is newer
                    self._dirty = records | self._dirty

    async def run(self) -> None:
        """Write whatever changes, until cancelled."""
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), _RETRY_S)
            self._changed.clear()
            await self.write()

    async def stop(self) -> None:
        """Store what has changed, against a deadline."""
        try:
            await asyncio.wait_for(self.write(), _STOP_S)
        except asyncio.TimeoutError:  # not the builtin one before Python 3.11
            _logger.error("%d findings could not be stored before the end", len(self._dirty))
