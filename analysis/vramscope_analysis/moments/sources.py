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
    index = np.full(len(lifetimes), -1, np.int32)
    by_key: dict[object, int] = {}
    sources: list[Source] = []

    def source(key: object, made: Source) -> int:
        if key not in by_key:
            by_key[key] = len(sources)
            sources.append(made)
        return by_key[key]

    different, inverse = np.unique(lifetimes.stack, return_inverse=True)
    of_stack = np.full(len(different), -1, np.int32)
    for place, stack in enumerate(different.tolist()):
        if stack >= 0 and names.is_python(stack):
            made = _of_stack(names, stack)
            # By the user's frames and what they called in the end: PyTorch's lines in between
            # would split one optimizer's state in two.
            of_stack[place] = source((made.frames, made.label, made.category), made)
    if len(different):
        index = of_stack[inverse]
    without = np.flatnonzero(index < 0)
    metadata = _forward_lines(trace, lifetimes, without)
    has_stacks = bool((index >= 0).any())
    stays = _stays(lifetimes, time_us, optimizer_starts)
    for place, made in enumerate(list(sources)):
        if made.category == Category.BACKWARD:
            kept = np.flatnonzero((index == place) & stays)
            if len(kept):
                grown = replace(made, label=f"{made.line} › gradients", category=Category.GRADIENTS)
                index[kept] = source((made.frames, grown.label, grown.category), grown)
    born = lifetimes.born[without]
    kinds = np.full(len(without), int(Category.UNKNOWN))
    if has_stacks:
        kinds[born >= 0] = Category.BACKWARD
        kinds[(born >= 0) & stays[without]] = Category.GRADIENTS
    for row, kind in zip(without.tolist(), kinds.tolist(), strict=True):
        category = Category(kind)
        text = metadata.get(row)
        index[row] = source((category, text), _of_no_stack(category, text, has_stacks))
    return index, _told_apart(sources, names)


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


def _of_no_stack(category: Category, text: str | None, has_stacks: bool) -> Source:
    label, file = NO_STACK_NAMES[category], ""
    if category == Category.UNKNOWN and not has_stacks:
        label = "recorded without stacks"
    told = BACKWARD_OF.fullmatch(text or "")
    line = label
    if told:
        file = told["path"]
        place = f"{file.rpartition('/')[2]}:{told['line']} {told['function']}"
        what = "gradients of" if category == Category.GRADIENTS else "backward of"
        label = line = f"{what} {place}"
    return Source(label, line, file, category, (), -1)


def _forward_lines(
    trace: Trace | None, lifetimes: Lifetimes, rows: NDArray[np.intp]
) -> dict[int, str]:
    """The forward line of the blocks whose entry names one."""
    if trace is None or not len(trace):
        return {}
    traced = rows[lifetimes.born[rows] >= 0]
    texts = trace.user_metadata[lifetimes.born[traced]]
    is_line = np.array([BACKWARD_OF.fullmatch(text) is not None for text in trace.texts], np.bool_)
    if not is_line.any():
        return {}
    told = (texts >= 0) & is_line[texts]
    chosen = zip(traced[told].tolist(), texts[told].tolist(), strict=True)
    return {row: trace.texts[text] for row, text in chosen}


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
