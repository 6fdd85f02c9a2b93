"""How long large snapshots take to open, and how much memory that takes.

    python benchmarks/bench_snapshot.py [--size-mb 1000] [--kinds traces,stacks,blocks]

Pickles are written as PyTorch's are (C pickler, protocol 4: frames of 64 KiB, lists in batches of
1000, what was written before fetched from the memo): traces without stacks, traces with stacks of
20 to 60 frames, and blocks. Each is opened in a process of its own; memory is what that process
grew by at its peak, the mapped file included.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

BATCH: Final = 1000
FRAME_BYTES: Final = 1 << 16
SEGMENT_BLOCKS: Final = 1000
STACKS: Final = 5000
FRAMES: Final = 3000
WORDS: Final = (
    "segments", "device_traces", "frames", "blocks", "address", "total_size", "size", "state",
    "requested_size", "active_allocated", "inactive", "action", "addr", "stream", "time_us",
    "compile_context", "user_metadata", "", "alloc", "free_requested", "free_completed",
    "filename", "name", "line", "forward", "shared",
)  # fmt: skip
SIZES: Final = (8, 512, 4096, 70_000, 2_097_152, 33_554_432, 5_000_000_000)
OPEN: Final = """
import resource, sys, time
from vramscope_analysis.snapshot import read_snapshot
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
start = time.perf_counter()
snapshot = read_snapshot(sys.argv[1])
took, cpu = time.perf_counter() - start, time.process_time()
print(took, cpu, peak() - before, sum(map(len, snapshot.traces)) + len(snapshot.blocks))
"""


class PickleWriter:
    """Writes opcodes as the C pickler does: memoized, and cut into frames between objects."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._memo_size = 0
        self._texts: dict[str, bytes] = {}
        self.bytes_written = 0
        file.write(b"\x80\x04")

    def write(self, *objects: bytes) -> None:
        """Objects and closing opcodes: a frame can end before each."""
        joined = b"".join(objects)
        if self._pending_bytes + len(joined) < FRAME_BYTES:
            self._pending.append(joined)
            self._pending_bytes += len(joined)
            return
        for part in objects:
            if self._pending_bytes >= FRAME_BYTES:
                self.flush()
            self._pending.append(part)
            self._pending_bytes += len(part)

    def flush(self) -> None:
        """End the frame."""
        payload = b"".join(self._pending)
        self._file.write(b"\x95" + len(payload).to_bytes(8, "little") + payload)
        self.bytes_written += len(payload) + 9
        self._pending, self._pending_bytes = [], 0

    def memoize(self, objects: int = 1) -> int:
        """Count objects that were written with MEMOIZE; the memo index of the first."""
        self._memo_size += objects
        return self._memo_size - objects

    def write_text(self, text: str) -> None:
        """A text for the first time."""
        self._texts[text] = get(self.memoize())
        self.write(short_text(text))

    def text(self, text: str) -> bytes:
        """The opcodes of a text that was written before."""
        return self._texts[text]


def short_text(text: str) -> bytes:
    """The opcodes of a text that is memoized."""
    raw = text.encode()
    return b"\x8c" + bytes([len(raw)]) + raw + b"\x94"


def get(index: int) -> bytes:
    """The opcode that fetches a memo index."""
    return b"h" + bytes([index]) if index < 256 else b"j" + index.to_bytes(4, "little")


def integer(value: int) -> bytes:
    """The opcodes of an integer (``save_long``)."""
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if 0 <= value < 65536:
        return b"M" + value.to_bytes(2, "little")
    if value < 1 << 31:
        return b"J" + value.to_bytes(4, "little")
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little")
    return b"\x8a" + bytes([len(raw)]) + raw


def write_list(out: PickleWriter, items: Iterator[None]) -> None:
    """A list whose items are written by going through an iterator."""
    out.memoize()
    out.write(b"]\x94", b"(")
    for count, _ in enumerate(items, 1):
        if count % BATCH == 0:
            out.write(b"e", b"(")
    out.write(b"e")


def write_words(out: PickleWriter) -> None:
    """A first key that holds all texts, so that the rest fetches them."""
    out.write_text("words")
    out.memoize()
    out.write(b"]\x94", b"(")
    names = [f"site/module_{number}.py" for number in range(97)]
    for word in (*WORDS, *names):
        out.write_text(word)
    out.write(b"e")


def write_frames(out: PickleWriter) -> list[bytes]:
    """A key that holds the frames; returns the lists of them that stacks are made of."""
    fetched: list[bytes] = []

    def frames() -> Iterator[None]:
        for line in range(FRAMES):
            fetched.append(get(out.memoize()))
            out.write(b"}\x94", b"(", out.text("filename"), out.text(f"site/module_{line % 97}.py"))
            out.write(out.text("name"), out.text("forward"))
            out.write(out.text("line"), integer(line), b"u")
            yield

    write_list(out, frames())
    chance = random.Random(1)
    return [
        b"(" + b"".join(chance.choices(fetched, k=chance.randint(20, 60))) + b"e"
        for _ in range(STACKS)
    ]


def write_entry(out: PickleWriter, action: str, address: int, size: int, time_us: int) -> None:
    """The begin of a trace entry, up to its stack."""
    out.memoize()
    out.write(
        b"}\x94", b"(", out.text("action"), out.text(action),
        out.text("addr"), integer(address), out.text("size"), integer(size),
        out.text("stream"), b"K\x00", out.text("time_us"), integer(time_us),
        out.text("compile_context"), short_text("N/A"),
        out.text("user_metadata"), out.text(""),
    )  # fmt: skip
    out.memoize()


def write_trace(out: PickleWriter, size_bytes: int, stacks: list[bytes]) -> None:
    """Trace entries up to so many bytes: allocations, each freed at once."""
    chance = random.Random(2)

    def entries() -> Iterator[None]:
        time_us, stack = 1_790_000_000_000_000, b""
        while out.bytes_written < size_bytes:
            address = 0x7F00_0000_0000 + 512 * chance.getrandbits(26)
            size, time_us = chance.choice(SIZES), time_us + chance.randrange(30)
            for action in ("alloc", "free_requested", "free_completed"):
                write_entry(out, action, address, size, time_us)
                if stacks and action != "free_completed":
                    stack = get(out.memoize())
                    out.write(out.text("frames"), b"]\x94", chance.choice(stacks))
                elif stacks:
                    out.write(out.text("frames"), stack)
                out.write(b"u")
                yield

    write_list(out, entries())


def write_blocks(out: PickleWriter, size_bytes: int) -> None:
    """Segments of a thousand blocks each up to so many bytes."""
    chance = random.Random(3)

    def blocks(address: int) -> Iterator[None]:
        for _ in range(SEGMENT_BLOCKS):
            size = 512 * chance.randint(1, 5000)
            state = chance.choice(("active_allocated", "inactive"))
            out.memoize()
            out.write(b"}\x94", b"(", out.text("address"), integer(address))
            out.write(out.text("size"), integer(size))
            out.write(out.text("requested_size"), integer(size - 100))
            out.write(out.text("state"), out.text(state), out.text("frames"), empty, b"u")
            address += size
            yield

    def segments() -> Iterator[None]:
        address = 0x7F00_0000_0000
        while out.bytes_written < size_bytes:
            address += 1 << 32
            out.memoize()
            out.write(b"}\x94", b"(", out.text("address"), integer(address))
            out.write(out.text("total_size"), integer(1 << 32), out.text("blocks"))
            write_list(out, blocks(address))
            out.write(b"u")
            yield

    out.write(out.text("shared"), b"]\x94")
    empty = get(out.memoize())
    out.write(out.text("segments"))
    write_list(out, segments())


def write_snapshot(kind: str, file: BinaryIO, size_bytes: int) -> None:
    """One snapshot of about so many bytes."""
    out = PickleWriter(file)
    out.memoize()
    out.write(b"}\x94", b"(")
    write_words(out)
    if kind == "blocks":
        write_blocks(out, size_bytes)
    else:
        out.write(out.text("segments"), b"]\x94", out.text("shared"))
        out.memoize()
        stacks = write_frames(out)
        out.write(out.text("device_traces"), b"]\x94")
        out.memoize()
        write_trace(out, size_bytes, stacks if kind == "stacks" else [])
        out.write(b"a")
    out.write(b"u", b".")
    out.flush()


def main() -> None:
    """Generate, open and report each kind."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size-mb", type=int, default=1000)
    parser.add_argument("--kinds", default="traces,stacks,blocks")
    parser.add_argument("--folder", type=Path, help="where the files are made, and kept")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        for kind in arguments.kinds.split(","):
            path = folder / f"{kind}-{arguments.size_mb}.pickle"
            if not path.exists():
                with path.open("wb") as file:
                    write_snapshot(kind, file, arguments.size_mb * 1_000_000)
            opened = subprocess.run(
                [sys.executable, "-c", OPEN, path], capture_output=True, check=True, text=True
            )
            took, cpu, grown, rows = opened.stdout.split()
            size = path.stat().st_size
            print(
                f"{kind}: {size / 1e6:.0f} MB, {int(rows):,} rows, {float(took):.2f} s "
                f"({float(cpu):.2f} s of CPU), memory {int(grown) / size:.2f} x the file"
            )


if __name__ == "__main__":
    main()
