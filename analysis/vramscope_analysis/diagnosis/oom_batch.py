"""A smaller batch, or the same in parts: what it would free at the moment of an out-of-memory.

What grows with the batch is what was needed beyond the constant part (parameters, buffers,
optimizer state), gradients left out: activations, taken as proportional to the samples. Workspaces
that do not depend on the batch make the prediction too large, which is why a tenth more than what
was missing has to be freed before a size is called sufficient. The step was not over when it
failed: as much as the steps before had needed is added, and a size is "at most".
"""

from __future__ import annotations

from typing import Final

from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.words import count_text, size_text

MARGIN: Final = 1.1
_DIVISORS: Final = (2, 4, 8)
_NAMES: Final = {2: "half", 4: "a quarter", 8: "an eighth"}


def batch_remedies(case: OomCase) -> list[Remedy]:
    """A smaller batch and gradient accumulation, if freeing a part of the batch is enough."""
    scaling, missing = case.scaling_bytes, case.shortage.missing_bytes
    if not scaling or missing is None:
        return []
    to_come = max((case.demand.highest_moving_bytes or 0) - (case.moving_bytes or 0), 0)
    scaling += to_come
    least = max((missing + to_come) * MARGIN, 1)
    if least >= scaling:
        return []
    batch = case.demand.batch
    if batch is not None:
        return _known(case, batch, scaling, least)
    divisor = next((n for n in _DIVISORS if scaling * (1 - 1 / n) >= least), None)
    return [] if divisor is None else _unknown(case, divisor, scaling)


def fitting_batch(batch: int, scaling_bytes: int, least_bytes: float) -> int:
    """The most samples of a batch with which at least so much is freed; 0 is none."""
    return int(batch * (1 - least_bytes / scaling_bytes))


def _known(case: OomCase, batch: int, scaling: int, least: float) -> list[Remedy]:
    size = fitting_batch(batch, scaling, least)
    if size < 1:
        return []
    freed = int(scaling * (1 - size / batch))
    remedies = [
        Remedy(
            f"lower the batch from {batch} to {size} samples at most",
            f"{_each(scaling // batch)}; {_not_over(case)}.",
            freed,
            "changes what a step learns from",
        )
    ]
    parts = -(-batch // size)
    return [*remedies, *_accumulation(case, parts, scaling, f"{parts} of {-(-batch // parts)}")]


def _unknown(case: OomCase, divisor: int, scaling: int) -> list[Remedy]:
    name = _NAMES[divisor]
    remedies = [
        Remedy(
            f"lower the batch to {name} of its size at most",
            f"what depends on the batch comes to {size_text(scaling)}; {_not_over(case)}.",
            int(scaling * (1 - 1 / divisor)),
            "changes what a step learns from",
        )
    ]
    return [*remedies, *_accumulation(case, divisor, scaling, count_text(divisor))]


def _accumulation(case: OomCase, parts: int, scaling: int, words: str) -> list[Remedy]:
    """The same batch in parts: between them the gradients stay, which counts against it."""
    gradients = case.demand.gradients_bytes
    freed = int(scaling * (1 - 1 / parts)) - (gradients or 0)
    if freed <= (case.shortage.missing_bytes or 0):
        return []
    kept = f", less {size_text(gradients)} of gradients that stay in between" if gradients else ""
    return [
        Remedy(
            f"accumulate gradients over parts of the batch: {words}",
            f"the same effective batch; frees what the other parts would need{kept}.",
            freed,
            f"{parts} smaller passes in place of one",
        )
    ]


def _each(bytes_per_sample: int) -> str:
    return f"a sample needs {size_text(bytes_per_sample)} of activations"


def _not_over(case: OomCase) -> str:
    if case.report.part in ("backward", "optimizer"):
        return "the largest part of the step was over"
    if case.demand.highest_moving_bytes is None:
        return "the step was not over and will need more"
    return "the step was not over and might need more"
