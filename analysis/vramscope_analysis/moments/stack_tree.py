"""Live bytes at a moment as a tree of calls: caller above, callee below."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from vramscope_analysis.moments.category import Category
from vramscope_analysis.moments.frame_kinds import place_of
from vramscope_analysis.moments.recorded_memory import RecordedMemory

MOST_NODES: Final = 2000
LEAST_SHARE: Final = 0.001
PURE: Final = 0.97
"""Above this share of one category a node is of that category."""


@dataclass(frozen=True)
class Node:
    """One call, or what stands for those that are too small.

    Args:
        parent: index of its caller; -1 for the root.
        name: the function, or words where there is none.
        place: ``train.py:20``; empty where there is none.
        file: path as recorded.
        bytes: what is live below it.
        blocks: how many.
        category: what nearly all of it is for; None if mixed.
        small: how many calls it stands for; 0 is one real call.
    """

    parent: int
    name: str
    place: str
    file: str
    bytes: int
    blocks: int
    category: Category | None
    small: int = 0


@dataclass(slots=True)
class _Branch:
    """A node while the tree grows."""

    key: object
    parent: int
    depth: int
    bytes: int = 0
    blocks: int = 0
    categories: dict[int, int] = field(default_factory=dict[int, int])

    def add(self, size: int, blocks: int, category: int) -> None:
        self.bytes += size
        self.blocks += blocks
        self.categories[category] = self.categories.get(category, 0) + size

    @property
    def category(self) -> Category | None:
        """What more than ``PURE`` of it is for."""
        for category, size in self.categories.items():
            if self.bytes and size > PURE * self.bytes:
                return Category(category)
        return None


def stack_tree(
    memory: RecordedMemory, moment: int, *, fold: bool = True, most: int = MOST_NODES
) -> list[Node]:
    """The tree of a moment, parents before their children, children by size.

    Args:
        memory: what was recorded.
        moment: the entry after which to look.
        fold: leave out frames that only call on.
        most: most nodes; what is smaller than the rest, or than a thousandth of everything, is
            put together below its caller.
    """
    branches = _grown(memory, memory.clamped(moment), fold=fold)
    kept = _kept(branches, most)
    return _nodes(memory, branches, kept)


def _grown(memory: RecordedMemory, moment: int, *, fold: bool) -> list[_Branch]:
    lifetimes = memory.lifetimes
    rows = lifetimes.live_at(moment)
    # One path for all blocks of a stack; what has none hangs below the root by its source.
    source = memory.source_of[rows].astype(np.int64)
    stack = lifetimes.stack[rows].astype(np.int64)
    has_path = np.array([bool(one.frames) for one in memory.sources], np.bool_)
    stack[~has_path[source]] = -1
    keys, inverse = np.unique(np.stack((stack, source)), axis=1, return_inverse=True)
    inverse = inverse.reshape(-1)
    size = np.bincount(inverse, lifetimes.size[rows], keys.shape[1]).astype(np.int64)
    blocks = np.bincount(inverse, minlength=keys.shape[1])
    root = _Branch(None, -1, 0)
    branches = [root]
    children: dict[tuple[int, object], int] = {}
    pairs: list[list[int]] = keys.T.tolist()
    for (of_stack, of_source), held, count in zip(
        pairs, size.tolist(), blocks.tolist(), strict=True
    ):
        category = memory.sources[of_source].category
        path: tuple[object, ...] = (
            memory.names.folded(of_stack, fold=fold)
            if of_stack >= 0
            else (memory.sources[of_source].label,)
        )
        root.add(held, count, category)
        parent = 0
        for depth, key in enumerate(path, 1):
            at = children.get((parent, key))
            if at is None:
                at = children[parent, key] = len(branches)
                branches.append(_Branch(key, parent, depth))
            branches[at].add(held, count, category)
            parent = at
    return branches


def _kept(branches: list[_Branch], most: int) -> set[int]:
    """Which nodes are shown by themselves. A caller is never smaller than what it calls."""
    least = LEAST_SHARE * branches[0].bytes
    order = sorted(range(len(branches)), key=lambda i: (-branches[i].bytes, branches[i].depth))
    large = [index for index in order if branches[index].bytes >= least]
    amount = min(len(large), most)
    while True:
        kept = set(large[:amount])
        with_small = {
            branch.parent
            for index, branch in enumerate(branches)
            if index not in kept and branch.parent in kept
        }
        if len(kept) + len(with_small) <= most or amount <= 1:
            return kept | {0}
        amount = max(1, amount * 3 // 4)


def _nodes(memory: RecordedMemory, branches: list[_Branch], kept: set[int]) -> list[Node]:
    children: dict[int, list[int]] = {}
    for index, branch in enumerate(branches):
        children.setdefault(branch.parent, []).append(index)
    nodes: list[Node] = []
    waiting = [(0, -1)]
    while waiting:
        index, parent = waiting.pop(0)
        branch = branches[index]
        here = len(nodes)
        nodes.append(_node(memory, branch, parent))
        below = sorted(children.get(index, []), key=lambda i: -branches[i].bytes)
        waiting.extend((child, here) for child in below if child in kept)
        small = [branches[child] for child in below if child not in kept]
        if small:
            nodes.append(_together(small, here))
    return nodes


def _node(memory: RecordedMemory, branch: _Branch, parent: int) -> Node:
    held = (branch.bytes, branch.blocks, branch.category)
    if branch.key is None:
        return Node(parent, "live bytes", "", "", *held)
    if isinstance(branch.key, int):
        frame = memory.names.frame(branch.key)
        return Node(parent, frame.name, place_of(frame), frame.filename, *held)
    return Node(parent, str(branch.key), "", "", *held)


def _together(small: list[_Branch], parent: int) -> Node:
    joined = _Branch(None, -1, 0)
    for branch in small:
        joined.bytes += branch.bytes
        joined.blocks += branch.blocks
        for category, size in branch.categories.items():
            joined.categories[category] = joined.categories.get(category, 0) + size
    return Node(
        parent, f"{len(small)} small", "", "", joined.bytes, joined.blocks, joined.category,
        small=len(small),
    )  # fmt: skip
