"""Step rows made up for judges: floors of jobs that are well, and of jobs that leak."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.growth_report import Frame, GrowthGroup, GrowthReport, Holder
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30
STEP_NS: Final = 10**7

BASE: Final = 512 * MIB
BLOCKS: Final = 200
ACTIVATIONS: Final = 256 * MIB

Column = Sequence[int] | NDArray[Any]


def rank_of(
    floor: Column,
    blocks: Column | None = None,
    *,
    first_step: int = 1,
    step_ns: int = STEP_NS,
    columns: Mapping[str, Column] | None = None,
    **known: Any,
) -> RankEvidence:
    """A rank with one row a step.

    Args:
        floor: allocated at the end of each.
        blocks: number of blocks then.
        first_step: number of the first.
        step_ns: how long each takes.
        columns: others by their names.
        known: other fields of ``RankEvidence``.
    """
    number = np.arange(first_step, first_step + len(floor), dtype=np.int64)
    values: dict[str, Column] = {"allocated_bytes.all.current": floor}
    if blocks is not None:
        values["allocation.all.current"] = blocks
    values |= columns or {}
    rows = Rows(
        number * step_ns,
        {name: np.asarray(column).astype(np.int64) for name, column in values.items()},
        number,
    )
    return RankEvidence(0, steps=rows, **known)


def prefixes(rank: RankEvidence, every: int = 1) -> Iterator[RankEvidence]:
    """The same rank as it was known after each step, or after each so many of them."""
    for rows in range(1, len(rank.steps) + 1, every):
        yield replace(rank, steps=rank.steps.before(rows))


def at(rank: RankEvidence, rows: int) -> RankEvidence:
    """The rank as it was known after so many rows."""
    return replace(rank, steps=rank.steps.before(rows))


def steps_of(count: int) -> NDArray[np.int64]:
    """0, 1, 2, ..."""
    return np.arange(count, dtype=np.int64)


def leaking(slope_bytes: int, *, onset: int = 50, steps: int = 400, every: int = 1) -> RankEvidence:
    """A job that keeps one tensor more in each step, or in each ``every`` steps."""
    kept = np.maximum(steps_of(steps) - onset, 0) // every
    floor = BASE + kept * slope_bytes * every
    return rank_of(floor, BLOCKS + kept, columns={"step.peak_allocated_bytes": floor + ACTIVATIONS})


def _constant(rng: np.random.Generator, n: NDArray[np.int64]) -> tuple[Column, Column]:
    return BASE + 0 * n, BLOCKS + 0 * n


def _optimizer_state_late(rng: np.random.Generator, n: NDArray[np.int64]) -> tuple[Column, Column]:
    """Moments come in the first step that is not skipped; workspaces a little later."""
    late = (n >= 3) * 256 * MIB + (n >= 5) * 32 * MIB + (n >= 6) * 8 * MIB
    return BASE + late, BLOCKS + (n >= 3) * 100 + (n >= 5) + (n >= 6)


def _batches_of_any_length(rng: np.random.Generator, n: NDArray[np.int64]) -> tuple[Column, Column]:
    """The last batch is alive at the end of the step."""
    return BASE + rng.lognormal(2, 1, len(n)).clip(0, 300) * MIB, BLOCKS + 0 * n


def _longest_so_far(rng: np.random.Generator, n: NDArray[np.int64]) -> tuple[Column, Column]:
    """A table of positions is as long as the longest batch until now."""
    return BASE + np.maximum.accumulate(rng.lognormal(2, 1, len(n))) * MIB, BLOCKS + 0 * n


def _longer_batches(rng: np.random.Generator, n: NDArray[np.int64]) -> tuple[Column, Column]:
    """A curriculum: what is held of a batch gets longer in each step."""
    return BASE + n * MIB // 2, BLOCKS + 0 * n


def _longer_batches_in_lists(
    rng: np.random.Generator, n: NDArray[np.int64]
) -> tuple[Column, Column]:
    """Lengths go up by stages, and a list of targets of any number is alive at the step's end."""
    stage = np.minimum(n // 150, 3)
    return BASE + stage * 40 * MIB, BLOCKS + rng.integers(0, 30, len(n))


def _evaluations(rng: np.random.Generator, n: NDArray[np.int64]) -> tuple[Column, Column]:
    """After each evaluation one step ends higher: its last batch is still there."""
    return BASE + (n % 50 == 0) * 300 * MIB, BLOCKS + (n % 50 == 0) * 12


def _two_optimizers(rng: np.random.Generator, n: NDArray[np.int64]) -> tuple[Column, Column]:
    """A GAN: steps of two networks in turn."""
    return BASE + (n % 2) * 90 * MIB, BLOCKS + (n % 2) * 17


def _one_offs(rng: np.random.Generator, n: NDArray[np.int64]) -> tuple[Column, Column]:
    """Streams get workspaces, a graph is captured, a moving average is made."""
    late = (n >= 100) * 32 * MIB + (n >= 180) * 32 * MIB + (n >= 333) * 200 * MIB
    return BASE + late, BLOCKS + (n >= 100) + (n >= 180) + (n >= 333) * 60


def _shapes_are_cached(rng: np.random.Generator, n: NDArray[np.int64]) -> tuple[Column, Column]:
    """A mask for each length that was seen: fewer and fewer new ones come."""
    lengths = rng.integers(0, 60, len(n))
    seen = np.array([len(set(lengths[: k + 1].tolist())) for k in range(len(n))])
    return BASE + seen * 2 * MIB, BLOCKS + seen


def _metric_of_an_epoch(rng: np.random.Generator, n: NDArray[np.int64]) -> tuple[Column, Column]:
    """Predictions gather, and are reset at the end of each epoch."""
    return BASE + (n % 100) * 512 * KIB, BLOCKS + n % 100


def _noise_of_garbage(rng: np.random.Generator, n: NDArray[np.int64]) -> tuple[Column, Column]:
    """Young collections free small cycles every now and then."""
    gathered = n % 17
    return BASE + gathered * 3 * MIB, BLOCKS + gathered * 2


def _model_gets_layers(rng: np.random.Generator, n: NDArray[np.int64]) -> tuple[Column, Column]:
    return BASE + (n >= 150) * 64 * MIB + (n >= 290) * 128 * MIB, BLOCKS + (n >= 150) * 8 + (
        n >= 290
    ) * 8


CLEAN: Final[
    dict[str, Callable[[np.random.Generator, NDArray[np.int64]], tuple[Column, Column]]]
] = {
    "constant": _constant,
    "optimizer state late": _optimizer_state_late,
    "batches of any length": _batches_of_any_length,
    "longest so far": _longest_so_far,
    "longer batches": _longer_batches,
    "longer batches in lists": _longer_batches_in_lists,
    "evaluations": _evaluations,
    "two optimizers": _two_optimizers,
    "one-offs": _one_offs,
    "shapes are cached": _shapes_are_cached,
    "metric of an epoch": _metric_of_an_epoch,
    "noise of garbage": _noise_of_garbage,
    "model gets layers": _model_gets_layers,
}
"""Jobs that are well, by what their floors do."""


def clean(name: str, *, steps: int = 400, seed: int = 0) -> RankEvidence:
    """A job that is well."""
    floor, blocks = CLEAN[name](np.random.default_rng(seed), steps_of(steps))
    peak = np.asarray(floor) + ACTIVATIONS
    return rank_of(
        floor,
        blocks,
        columns={"step.peak_allocated_bytes": peak},
        total_bytes=16 * GIB,
    )


def report_of(
    *groups: GrowthGroup,
    steps: Sequence[int] = (100, 104, 108, 112),
    live: Sequence[int] | None = None,
    garbage: Mapping[str, Any] | None = None,
    held: Sequence[GrowthGroup] = (),
) -> GrowthReport:
    """An agent's answer; what is live at each look is what its groups are, unless it is given."""
    looks = live or [
        BASE + sum(group.bytes_at_looks[look] for group in groups) for look in range(len(steps))
    ]
    return GrowthReport(
        steps=tuple(steps),
        live_bytes_at_looks=tuple(looks),
        groups=groups,
        garbage=garbage or {},
        held=tuple(held),
    )


def group_of(
    *holders: Holder,
    line: int = 56,
    file: str = "/job/train.py",
    pace: int = 4 * MIB,
    looks: int = 4,
    garbage_bytes: int = 0,
    adds: bool = True,
) -> GrowthGroup:
    """A group that grows by ``pace`` from look to look."""
    bytes_at_looks = tuple(pace * (look + 1) for look in range(looks))
    return GrowthGroup(
        stack=(
            Frame("/usr/lib/python3.11/site-packages/torch/nn/functional.py", 10, "linear"),
            Frame(file, line, "train_step"),
        ),
        bytes=bytes_at_looks[-1] - bytes_at_looks[0],
        count=4 * (looks - 1) if adds else 0,
        bytes_at_looks=bytes_at_looks,
        counts_at_looks=tuple(4 * (look + 1) if adds else 1 for look in range(looks)),
        tensors=("float32[512, 512]",),
        holders=holders,
        garbage_bytes=garbage_bytes,
    )


def held_by(kind: str, *chain: str, tensors: int = 3, stored_at: Frame | None = None) -> Holder:
    """A holder."""
    return Holder(kind, chain, None, tensors, True, stored_at)
