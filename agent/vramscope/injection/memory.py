"""Reading and writing the memory of another process through /proc/PID/mem."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Final

_LARGEST_READ: Final = 256 << 20
_ADDRESSES_END: Final = 1 << 63


class TargetMemory:
    """Memory of one life of a process: after an exec or its end, reads and writes fail.

    Opening it asks the kernel the same question as ptrace does, and stops nothing.

    Raises:
        OSError: no such process, or no permission (EACCES, EPERM).
    """

    def __init__(self, pid: int, *, writable: bool = False) -> None:
        mode = os.O_RDWR if writable else os.O_RDONLY
        self._descriptor = os.open(f"/proc/{pid}/mem", mode | os.O_CLOEXEC)

    def __enter__(self) -> TargetMemory:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it; twice is fine."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def read(self, address: int, size: int) -> bytes:
        """Exactly ``size`` bytes.

        Raises:
            OSError: not all of them are mapped, or the process has ended; or so many are asked
                for that only a wrong or hostile number in the process can have said so.
        """
        if size > _LARGEST_READ or address + size > _ADDRESSES_END:
            raise OSError(f"nothing of {size} bytes can be at {address:#x}")
        parts: list[bytes] = []
        while size > 0:
            part = os.pread(self._descriptor, size, address)
            if not part:
                raise OSError(f"nothing is mapped at {address:#x}")
            parts.append(part)
            address += len(part)
            size -= len(part)
        return b"".join(parts)

    def read_text(self, address: int, limit: int = 256) -> bytes:
        """Bytes up to a NUL, at most ``limit``; fewer where the mapping ends.

        Raises:
            OSError: nothing is mapped there.
        """
        if address >= _ADDRESSES_END:
            raise OSError(f"nothing can be mapped at {address:#x}")
        return os.pread(self._descriptor, limit, address).partition(b"\0")[0]

    def write(self, address: int, content: bytes) -> None:
        """Write all of ``content``.

        Raises:
            OSError: not all of it is mapped, or the process has ended.
        """
        if os.pwrite(self._descriptor, content, address) != len(content):
            raise OSError(f"could not write {len(content)} bytes at {address:#x}")
