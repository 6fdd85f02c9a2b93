"""One time out of memory: what is known at once, before anything is looked at."""

from __future__ import annotations

import threading
import uuid
from typing import Any, Literal

from msgspec import Struct, field

Source = Literal["observer", "exception", "counter", "host", "asked"]


class Moment(Struct):
    """When, where and of what memory ran out. Sizes are ``None`` where nobody told them."""

    time_ns: int
    source: Source
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    device: int = 0
    segment_bytes: int | None = None
    """What the allocator asked of the driver."""
    allowed_bytes: int | None = None
    device_free_bytes: int | None = None
    thread_number: int | None = field(default_factory=threading.get_ident)
    """The thread that ran out; ``None`` is not known."""
    lines: list[dict[str, Any]] | None = None
    """What an exception came through, the innermost first: its thread is not there any more."""
    message: str = ""
    linked_to: str = ""
    """The report of another rank, which ran out."""
    skipped: int = 0
    """Times before it of which nothing was written."""
