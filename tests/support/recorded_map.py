"""Memory maps of recorded jobs: segments at the end of a trace, and the agent's frames of them."""

from __future__ import annotations

import gzip
import pickle
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vramscope.memory_map.look import Look, Looks
from vramscope.memory_map.map_feed import MapFeed
from vramscope.memory_map.owners import Owners, OwnersSource, no_owners
from vramscope.memory_map.pace import MapPace
from vramscope_protocol.codec import MAX_MESSAGE_BYTES
from vramscope_protocol.messages import MapFrame

TRACES = Path(__file__).parents[1] / "data" / "traces"
SMALL_PAGE_BYTES = 2 << 20
LARGE_PAGE_BYTES = 20 << 20


def recorded_segments(name: str) -> list[dict[str, Any]]:
    """Segments at the end of a trace of tests/data."""
    with gzip.open(TRACES / f"{name}.pickle.gz") as file:
        snapshot = pickle.load(file)
    return with_pages(snapshot["segments"])


def with_pages(segments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As a device gives them: expandable ones with their page size."""
    for segment in segments:
        if segment["is_expandable"]:
            small = segment["segment_type"] == "small"
            segment["page_bytes"] = SMALL_PAGE_BYTES if small else LARGE_PAGE_BYTES
    return segments


class GivenOwners:
    """Owners that the test names by address."""

    def __init__(self, by_address: Mapping[int, tuple[int, str]]) -> None:
        self.by_address = by_address

    @property
    def step(self) -> int:
        """Of no step in particular."""
        return 0

    def category_of(self, address: int) -> tuple[int, str]:
        """As given."""
        return self.by_address.get(address, (0, ""))


class MapOfLooks:
    """A source of frames whose looks the test takes."""

    def __init__(self, owners: Owners | None = None, limit_bytes: int | None = 3 << 30) -> None:
        self.pace = MapPace()
        self.owners: OwnersSource = no_owners if owners is None else lambda: owners
        self.latest: Look | None = None
        self.limit_bytes = limit_bytes
        self.device_free_bytes: int | None = None
        self.is_watched = True
        self.rate_hz = 2.0
        self.asked: list[float] = []
        self._looks = Looks()
        self.feed = MapFeed(self)

    def watch(self, seconds: float, *, ask: bool = False) -> None:
        """Note who watches."""
        del ask
        self.asked.append(seconds)

    def look(
        self, segments: list[dict[str, Any]], step: int = 1, time_ns: int | None = None
    ) -> Look:
        """Take one look."""
        self.latest = self._looks.take(
            segments,
            time_ns=time.time_ns() if time_ns is None else time_ns,
            step=step,
            is_step_end=True,
        )
        return self.latest

    def frame(self, segments: list[dict[str, Any]], step: int = 1) -> MapFrame:
        """The frame of one more look."""
        self.look(segments, step)
        frame = self.feed.next_frame(MAX_MESSAGE_BYTES)
        assert frame is not None
        return frame
