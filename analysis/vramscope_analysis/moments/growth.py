"""What grew between two moments, of one recording or of two: by stack, or by what was asked for."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.moments.category import Category
from vramscope_analysis.moments.recorded_memory import RecordedMemory

MOST_ROWS: Final = 100


@dataclass(frozen=True)
class Growth:
    """How much one source held at either moment.

    Args:
        label: of the source.
        category: what its memory is for.
        file: path of its line.
        before_bytes: at the earlier moment.
        after_bytes: at the later one.
        before_blocks: how many at the earlier moment.
        after_blocks: how many at the later one.
        survived_bytes: what was live at both.
        survived_blocks: how many.
    """

    label: str
    category: Category
    file: str
    before_bytes: int
    after_bytes: int
    before_blocks: int
    after_blocks: int
    survived_bytes: int
    survived_blocks: int

    @property
    def bytes(self) -> int:
        """By how much it grew; negative if it shrank."""
        return self.after_bytes - self.before_bytes


@dataclass(frozen=True)
class GrowthBetween:
    """Growth by source, the largest change first, and all of it together.

    ``by_request``: one of the two has no stacks, so that only the size that was asked for tells
    blocks apart; a row is all blocks of one size then.
    ``is_certain``: both moments are of one recording, so that a block that survived is known by
    its entry. Of two recordings a block counts as the same if address, request and source agree.
    """

    rows: list[Growth]
    before_bytes: int
    after_bytes: int
    survived_bytes: int
    is_certain: bool
    by_request: bool


def growth_between(
    before: RecordedMemory, before_moment: int, after: RecordedMemory, after_moment: int
) -> GrowthBetween:
    """Compare what was live at two moments.

    Args:
        before: recording of the earlier moment.
        before_moment: the entry after which it is.
        after: recording of the later moment; the same object if it is the same recording.
        after_moment: the entry after which that is.
    """
    old = before.lifetimes.live_at(before.clamped(before_moment))
    new = after.lifetimes.live_at(after.clamped(after_moment))
    is_same = before is after
    by_request = not (before.has_stacks and after.has_stacks)
    keys: dict[Hashable, int] = {}
    if by_request:
        old_source = _by_request(before, old, keys)
        new_source = _by_request(after, new, keys)
    else:
        old_source = _joint(before, keys, is_same=is_same)[before.source_of[old]]
        new_source = _joint(after, keys, is_same=is_same)[after.source_of[new]]
    if is_same:
        survived = np.isin(new, old, assume_unique=True)
    else:
        survived = _survivors(before, old, old_source, after, new, new_source)
    n = len(keys)
    old_size, new_size = before.lifetimes.size[old], after.lifetimes.size[new]
    columns = (
        np.bincount(old_source, old_size, n),
        np.bincount(new_source, new_size, n),
        np.bincount(old_source, minlength=n),
        np.bincount(new_source, minlength=n),
        np.bincount(new_source[survived], new_size[survived], n),
        np.bincount(new_source[survived], minlength=n),
    )
    table = np.stack(columns).astype(np.int64)
    change = table[1] - table[0]
    order = np.lexsort((-table[1], -np.abs(change)))[:MOST_ROWS]
    words = _sizes(keys) if by_request else _words(before, after, keys, is_same=is_same)
    numbers: list[list[int]] = table[:, order].T.tolist()
    chosen: list[int] = order.tolist()
    rows = [Growth(*words[i], *row) for i, row in zip(chosen, numbers, strict=True) if any(row)]
    return GrowthBetween(
        rows=rows,
        before_bytes=int(old_size.sum()),
        after_bytes=int(new_size.sum()),
        survived_bytes=int(new_size[survived].sum()),
        is_certain=is_same,
        by_request=by_request,
    )


def _key(memory: RecordedMemory, index: int, *, is_same: bool) -> Hashable:
    """What tells a source from others, in two recordings alike."""
    if is_same:
        return index
    source = memory.sources[index]
    frames = tuple(memory.names.frame(frame) for frame in source.frames)
    return (source.label.partition(" ← ")[0], source.category, frames)


def _joint(
    memory: RecordedMemory, keys: dict[Hashable, int], *, is_same: bool
) -> NDArray[np.int64]:
    """Numbers of the sources that both recordings share."""
    return np.array(
        [
            keys.setdefault(_key(memory, index, is_same=is_same), len(keys))
            for index in range(len(memory.sources))
        ],
        np.int64,
    )


def _by_request(
    memory: RecordedMemory, rows: NDArray[np.intp], keys: dict[Hashable, int]
) -> NDArray[np.int64]:
    """Numbers of the sizes that were asked for."""
    sizes, index = np.unique(memory.lifetimes.requested[rows], return_inverse=True)
    numbers = [keys.setdefault(size, len(keys)) for size in sizes.tolist()]
    return np.array(numbers, np.int64)[index]


def _sizes(keys: dict[Hashable, int]) -> list[tuple[str, Category, str]]:
    return [(f"requests of {size:,} bytes", Category.UNKNOWN, "") for size in keys]


def _words(
    before: RecordedMemory,
    after: RecordedMemory,
    keys: dict[Hashable, int],
    *,
    is_same: bool,
) -> list[tuple[str, Category, str]]:
    words: list[tuple[str, Category, str]] = [("", Category.UNKNOWN, "")] * len(keys)
    for memory in (before, after):
        for index, source in enumerate(memory.sources):
            place = keys[_key(memory, index, is_same=is_same)]
            words[place] = (source.label, source.category, source.file)
    return words


def _survivors(
    before: RecordedMemory,
    old: NDArray[np.intp],
    old_source: NDArray[np.int64],
    after: RecordedMemory,
    new: NDArray[np.intp],
    new_source: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Which of the new blocks lie where an old one of the same request and source lay."""
    was = before.lifetimes
    known = {
        (address, requested, source)
        for address, requested, source in zip(
            was.address[old].tolist(), was.requested[old].tolist(), old_source.tolist(), strict=True
        )
    }
    now = after.lifetimes
    rows = zip(
        now.address[new].tolist(), now.requested[new].tolist(), new_source.tolist(), strict=True
    )
    return np.array([row in known for row in rows], np.bool_)
