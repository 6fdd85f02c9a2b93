"""Live blocks by the stack that allocated them, over several looks at the segments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from vramscope.holders.holder import SourceLine
from vramscope.memory_map.look import FREE_STATE

MAX_FRAMES: Final = 40

Stack: TypeAlias = "tuple[SourceLine, ...]"
"""The innermost line first."""


def stack_of(frames: Sequence[Mapping[str, Any]]) -> Stack:
    """The lines of a block, as PyTorch lists them."""
    return tuple(
        SourceLine(frame["filename"], frame["line"], frame["name"]) for frame in frames[:MAX_FRAMES]
    )


class Source(Struct, frozen=True):
    """Where blocks come from.

    Args:
        stack: where they were allocated; empty is without Python lines.
        size_bytes: of those without, the size: nothing else tells them apart.
        is_old: allocated before anything was recorded.
    """

    stack: Stack = ()
    size_bytes: int = 0
    is_old: bool = False


class LiveBlock(Struct):
    """A block as it was at the last look.

    Args:
        size_bytes: what it takes.
        source: number of its source.
        born: number of the look at which it was first there; -1 is before the first.
    """

    size_bytes: int
    source: int
    born: int


class LiveBlocks:
    """Takes the segments of one look after the other.

    A block stays itself while one of the same size and stack lies at the same address.

    Args:
        before: the segments as they were when the recording began.
    """

    def __init__(self, before: Iterable[Mapping[str, Any]]) -> None:
        self.sources: list[Source] = []
        self.bytes_at_looks: list[dict[int, int]] = []
        """By the number of the source, for each look."""
        self.counts_at_looks: list[dict[int, int]] = []
        self.sizes_at_looks: list[Counter[int]] = []
        """How many blocks of each size there were, whatever they came from."""
        self.blocks: dict[int, LiveBlock] = {}
        """By address, as of the last look."""
        self._number_of: dict[Source, int] = {}
        self._take(before, -1, is_old=True)

    @property
    def looks(self) -> int:
        """How many there have been."""
        return len(self.bytes_at_looks)

    def add(self, segments: Iterable[Mapping[str, Any]]) -> None:
        """Take the next look. Nothing of ``segments`` is kept."""
        self._take(segments, self.looks, is_old=False)
        sums: dict[int, int] = {}
        counts: dict[int, int] = {}
        for block in self.blocks.values():
            sums[block.source] = sums.get(block.source, 0) + block.size_bytes
            counts[block.source] = counts.get(block.source, 0) + 1
        self.bytes_at_looks.append(sums)
        self.counts_at_looks.append(counts)
        self.sizes_at_looks.append(Counter(block.size_bytes for block in self.blocks.values()))

    def drop_gone(self, segments: Iterable[Mapping[str, Any]]) -> None:
        """Forget blocks of the last look that are there no more. Nothing is recorded any more."""
        now = {
            block["address"]: (block["size"], bool(block.get("frames")))
            for segment in segments
            for block in segment["blocks"]
            if block["state"] != FREE_STATE
        }
        # PyTorch keeps the stacks of blocks for as long as they live; the emulation does not.
        has_stacks = any(has_stack for _, has_stack in now.values())
        self.blocks = {
            address: block
            for address, block in self.blocks.items()
            if now.get(address)
            == (block.size_bytes, has_stacks and bool(self.sources[block.source].stack))
        }

    def _take(self, segments: Iterable[Mapping[str, Any]], look: int, *, is_old: bool) -> None:
        known = _Stacks(self._number)
        before = self.blocks
        blocks: dict[int, LiveBlock] = {}
        for segment in segments:
            for block in segment["blocks"]:
                if block["state"] == FREE_STATE:
                    continue
                address, size, frames = block["address"], block["size"], block.get("frames")
                old = before.get(address)
                if old is not None and old.size_bytes != size:
                    old = None
                if frames:
                    source = known.number_of(frames)
                elif old is not None and not self.sources[old.source].stack:
                    source = old.source
                else:
                    source = self._number(Source((), size, is_old))
                is_same = old is not None and old.source == source
                blocks[address] = old if old and is_same else LiveBlock(size, source, look)
        self.blocks = blocks

    def _number(self, source: Source) -> int:
        number = self._number_of.get(source)
        if number is None:
            number = self._number_of[source] = len(self.sources)
            self.sources.append(source)
        return number


class _Stacks:
    """Turns PyTorch's lists of frames into numbers of sources, each list and each frame once."""

    def __init__(self, number: Callable[[Source], int]) -> None:
        self._number = number
        # By id: the objects live as long as the look. PyTorch makes one dictionary a frame, and
        # one list a block; the emulation has equal lists once.
        self._by_list: dict[int, int] = {}
        self._by_frames: dict[tuple[int, ...], int] = {}

    def number_of(self, frames: Sequence[Mapping[str, Any]]) -> int:
        number = self._by_list.get(id(frames))
        if number is None:
            ids = tuple(map(id, frames))
            number = self._by_frames.get(ids)
            if number is None:
                number = self._by_frames[ids] = self._number(Source(stack_of(frames)))
            self._by_list[id(frames)] = number
        return number
