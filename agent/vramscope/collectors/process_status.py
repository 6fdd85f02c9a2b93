"""What ``/proc/PID/status`` says of a process: memory by kind, and threads."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from vramscope.collectors.proc_text import ProcText
from vramscope_protocol.columns import UNKNOWN


class ProcessStatus(Struct, frozen=True):
    """Memory of one process; what the kernel does not say is ``UNKNOWN``."""

    rss_bytes: int = UNKNOWN
    shared_bytes: int = UNKNOWN
    """Resident memory that other processes may map as well (shmem)."""
    swap_bytes: int = UNKNOWN
    locked_bytes: int = UNKNOWN
    """Kept in place at this process's wish (mlock)."""
    pinned_bytes: int = UNKNOWN
    """Kept in place by the kernel for a device. Not every driver has its memory counted here."""
    threads: int = UNKNOWN
    anonymous_bytes: int = UNKNOWN
    """Resident memory that is neither of files nor shared: what the process has written itself."""


_BYTES: Final = {
    b"VmRSS": "rss_bytes",
    b"RssShmem": "shared_bytes",
    b"VmSwap": "swap_bytes",
    b"VmLck": "locked_bytes",
    b"VmPin": "pinned_bytes",
    b"RssAnon": "anonymous_bytes",
}


def read_process_status(files: ProcText, path: str) -> ProcessStatus:
    """Read the status file at ``path``; one that is not there leaves everything unknown."""
    text = files.read(path)
    return ProcessStatus() if text is None else parse_process_status(text)


def parse_process_status(text: bytes) -> ProcessStatus:
    """Understand the text of a status file; a line that reads otherwise is left out."""
    values: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(b":")
        words = value.split()
        field = _BYTES.get(name)
        if field is not None and len(words) == 2 and words[0].isdigit() and words[1] == b"kB":
            values[field] = int(words[0]) * 1024
        elif name == b"Threads" and len(words) == 1 and words[0].isdigit():
            values["threads"] = int(words[0])
    return ProcessStatus(**values)
