"""Where blocks come from: one source for each different stack, and for each kind of no stack."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.moments.category import NO_STACK_NAMES, Category, category_of
from vramscope_analysis.moments.frame_kinds import place_of
from vramscope_analysis.moments.lifetimes import Lifetimes
from vramscope_analysis.moments.stack_names import StackNames
from vramscope_analysis.snapshot import Trace

BACKWARD_OF: Final = re.compile(r"backward of (?P<path>.+):(?P<line>\d+) (?P<function>\S+)")
"""``user_metadata`` of a block that the backward pass allocated: its forward line."""


@dataclass(frozen=True)
class Source:
    """What allocated blocks.

    Args:
        label: its words: ``train.py:30 gpt_step › cross_entropy``.
        line: the user's line and function alone; the label where there is no line.
        file: path of that line; empty where there is none.
        category: what its memory is for.
        frames: the user's frames and those of libraries, from the caller down.
        stack: one of its stacks; -1 without.
    """

    label: str
    line: str
    file: str
    category: Category
    frames: tuple[int, ...]
    stack: int


def sources_of(
    lifetimes: Lifetimes,
    trace: Trace | None,
    names: StackNames,
    time_us: NDArray[np.int64],
    optimizer_starts: list[int],
) -> tuple[NDArray[np.int32], list[Source]]:
    """The source of every block, as an index, and the sources.

    Args:
        lifetimes: the blocks.
        trace: their entries.
        names: of the stacks.
        time_us: of each entry, never falling.
        optimizer_starts: when each step of an optimizer began, or ended if that is all there is:
            tells gradients from the rest of the backward pass.
    """
    found = _Sources()
    index = found.by_stack(lifetimes, names)
    has_stacks = bool((index >= 0).any())
    categories = np.array([*(s.category for s in found.sources), Category.UNKNOWN], np.int64)
    kinds = categories[index]
    if has_stacks:
        kinds[(index < 0) & (lifetimes.born >= 0)] = Category.BACKWARD
    stays = _stays(lifetimes, time_us, optimizer_starts)
    kinds[(kinds == Category.BACKWARD) & stays] = Category.GRADIENTS
    texts = _forward_lines(trace, lifetimes)
    of_backward = (kinds == Category.BACKWARD) | (kinds == Category.GRADIENTS)
    texts[~of_backward] = -1
    # Those whose source is more, or something else, than their stack: few different ones.
    rows = np.flatnonzero((index < 0) | (kinds != categories[index]) | (texts >= 0))
    different, inverse = np.unique(
        np.stack((index[rows], kinds[rows], texts[rows])), axis=1, return_inverse=True
    )
    refined = np.zeros(different.shape[1], np.int32)
    triples: list[list[int]] = different.T.tolist()
    for place, (of_stack, kind, text) in enumerate(triples):
        told = trace.texts[text] if trace is not None and text >= 0 else None
        stack_source = found.sources[of_stack] if of_stack >= 0 else None
        refined[place] = found.add(
            _refined(stack_source, Category(kind), told, has_stacks=has_stacks)
        )
    index[rows] = refined[inverse.reshape(-1)]
    return index, _told_apart(found.sources, names)


class _Sources:
    """Sources while they are found: equal ones get one index."""

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self._by_key: dict[tuple[object, ...], int] = {}

    def add(self, source: Source) -> int:
        """The index of a source. It is known by the user's frames and by what they called in the
        end: PyTorch's lines in between would split one optimizer's state in two."""
        key = (source.frames, source.label, source.category)
        if key not in self._by_key:
            self._by_key[key] = len(self.sources)
            self.sources.append(source)
        return self._by_key[key]

    def by_stack(self, lifetimes: Lifetimes, names: StackNames) -> NDArray[np.int32]:
        """Sources of the blocks that have a Python stack; -1 for others."""
        different, inverse = np.unique(lifetimes.stack, return_inverse=True)
        of_stack = np.full(len(different), -1, np.int32)
        for place, stack in enumerate(different.tolist()):
            if stack >= 0 and names.is_python(stack):
                of_stack[place] = self.add(_of_stack(names, stack))
        return of_stack[inverse] if len(different) else np.zeros(0, np.int32)


def _of_stack(names: StackNames, stack: int) -> Source:
    name = names.name(stack)
    return Source(
        label=name.label,
        line=f"{name.line} {name.function}",
        file=name.file,
        category=category_of(names, stack),
        frames=names.callers(stack),
        stack=stack,
    )


def _refined(
    source: Source | None, category: Category, text: str | None, *, has_stacks: bool
) -> Source:
    """What is known of a block beside its stack, or without one."""
    told = BACKWARD_OF.fullmatch(text or "")
    if told:
        path = told["path"]
        place = f"{path.rpartition('/')[2]}:{told['line']} {told['function']}"
        what = "gradients of" if category == Category.GRADIENTS else "backward of"
        label = f"{what} {place}"
        return Source(label, label, path, category, (), source.stack if source else -1)
    if source:
        return replace(source, label=f"{source.line} › gradients", category=category)
    label = NO_STACK_NAMES[category]
    if category == Category.UNKNOWN and not has_stacks:
        label = "recorded without stacks"
    return Source(label, label, "", category, (), -1)


def _forward_lines(trace: Trace | None, lifetimes: Lifetimes) -> NDArray[np.int64]:
    """For each block the text that names its forward line, -1 where none does."""
    texts = np.full(len(lifetimes), -1, np.int64)
    if trace is None or not len(trace):
        return texts
    is_line = [BACKWARD_OF.fullmatch(text) is not None for text in trace.texts]
    if not any(is_line):
        return texts
    traced = np.flatnonzero(lifetimes.born >= 0)
    found = trace.user_metadata[lifetimes.born[traced]]
    told = (found >= 0) & np.array(is_line)[found]
    texts[traced[told]] = found[told]
    return texts


def _stays(
    lifetimes: Lifetimes, time_us: NDArray[np.int64], until_us: list[int]
) -> NDArray[np.bool_]:
    """Which blocks are still live at the first of these times after they were allocated."""
    if not until_us or not len(time_us):
        return np.zeros(len(lifetimes), np.bool_)
    # The first entry that comes after each time.
    starts = np.searchsorted(time_us, np.sort(np.array(until_us)), side="left")
    following = np.searchsorted(starts, lifetimes.born, side="right")
    begins = np.append(starts, lifetimes.entries + 1)[following]
    stays: NDArray[np.bool_] = lifetimes.completed >= begins
    return stays


def _told_apart(sources: list[Source], names: StackNames) -> list[Source]:
    """Sources with the same label get the line of a caller in which they differ behind it."""
    same: dict[str, list[int]] = defaultdict(list)
    for index, source in enumerate(sources):
        same[source.label].append(index)
    result = list(sources)
    for indices in same.values():
        if len(indices) > 1:
            callers = [_callers(sources[index], names) for index in indices]
            for index, caller in zip(indices, _telling(callers), strict=True):
                label = f"{sources[index].label} ← {caller}" if caller else sources[index].label
                result[index] = replace(sources[index], label=label)
    return result


def _telling(callers: list[list[str]]) -> list[str]:
    """Of each list the caller at the first depth at which most of them differ."""
    best = [places[0] if places else "" for places in callers]
    for depth in range(1, max(map(len, callers))):
        deeper = [places[min(depth, len(places) - 1)] if places else "" for places in callers]
        if len(set(deeper)) > len(set(best)):
            best = deeper
    return best


def _callers(source: Source, names: StackNames) -> list[str]:
    """Places of the frames outside of its line, innermost first."""
    places = [place_of(names.frame(index)) for index in reversed(source.frames)]
    line = source.line.partition(" ")[0]
    return places[places.index(line) + 1 :] if line in places else []
