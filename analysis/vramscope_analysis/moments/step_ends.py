"""Where the steps of a recording end, and what is named within them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.replay.recording import annotations_of
from vramscope_analysis.replay.steps import STEP_PREFIX, Steps
from vramscope_analysis.snapshot import Snapshot


@dataclass(frozen=True)
class StepEnd:
    """The end of one step.

    Args:
        time_us: when.
        moment: the last entry before it; -1 if it comes before the first.
        step: the number that the job gave it; None if nobody told: then ``ordinal`` is all.
        ordinal: which end of the recording it is, counted from 1.
    """

    time_us: int
    moment: int
    step: int | None
    ordinal: int


@dataclass(frozen=True)
class Scope:
    """A stretch that the job named (``record_function``).

    Args:
        name: as PyTorch or the job calls it.
        start_us: when it began.
        end_us: when it ended.
    """

    name: str
    start_us: int
    end_us: int


def step_ends(
    snapshot: Snapshot,
    device: int,
    time_us: NDArray[np.int64],
    told: Iterable[Sequence[int]] = (),
) -> list[StepEnd]:
    """Ends of the steps of a recording, oldest first.

    Args:
        snapshot: for the scopes of its optimizers.
        device: index of the device.
        time_us: of each entry, never falling.
        told: (step, time_us) as the agent noted them; where there are none, the optimizers' own
            scopes tell.
    """
    pairs: list[tuple[int | None, int]] = [(int(step), int(at)) for step, at in told]
    if not pairs:
        steps = Steps.from_annotations(annotations_of(snapshot, device))
        pairs = [(None, at) for at in steps.ends_us]
    pairs.sort(key=lambda pair: pair[1])
    moments = np.searchsorted(time_us, [at for _, at in pairs], side="right") - 1
    return [
        StepEnd(time_us=at, moment=moment, step=step, ordinal=index + 1)
        for index, ((step, at), moment) in enumerate(zip(pairs, moments.tolist(), strict=True))
    ]


def scopes_of(snapshot: Snapshot, device: int, most: int = 10_000) -> list[Scope]:
    """Stretches that the job named, by their begin; what has no end is left out."""
    begun: dict[str, list[int]] = {}
    scopes: list[Scope] = []
    for annotation in annotations_of(snapshot, device):
        if annotation.stage == "START":
            begun.setdefault(annotation.name, []).append(annotation.time_us)
        elif begun.get(annotation.name):
            start_us = begun[annotation.name].pop()
            scopes.append(Scope(annotation.name, start_us, annotation.time_us))
    return sorted(scopes, key=lambda scope: scope.start_us)[:most]


def optimizer_starts(scopes: Iterable[Scope]) -> list[int]:
    """When each step of an optimizer began."""
    return [scope.start_us for scope in scopes if scope.name.startswith(STEP_PREFIX)]
