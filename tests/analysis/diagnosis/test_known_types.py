"""Types are known from reports of training steps, and from nothing else."""

from __future__ import annotations

from typing import Any

from tests.support.made_ranks import GIB, MIB, made_rank
from vramscope_analysis.diagnosis.known_types import KnownTypes, known_types
from vramscope_analysis.evidence.oom_report import OomReport


def tensor(text: str, size_bytes: int, category: str) -> dict[str, Any]:
    return {"tensor": text, "bytes": size_bytes, "category": category}


LARGEST = (
    tensor("float32[8192, 8192]", 256 * MIB, "parameters"),
    tensor("bfloat16[4096, 4096]", 3 * GIB, "activations"),
    tensor("torch.float32[4096, 4096]", GIB, "activations"),
    tensor("float32[8192, 8192]", GIB, "optimizer_state"),
)


def known(*reports: OomReport) -> KnownTypes | None:
    return known_types(made_rank(1, columns={}, ooms=reports))


def test_activations_count_by_their_bytes_and_the_model_apart() -> None:
    assert known(OomReport(part="forward", largest=LARGEST)) == KnownTypes("float32", 0.25)


def test_the_newest_report_of_a_training_step_counts() -> None:
    newer = (tensor("bfloat16[1]", GIB, "parameters"), tensor("bfloat16[1]", GIB, ""))
    reports = [
        OomReport(part="forward", largest=LARGEST),
        OomReport(part="backward", largest=newer),
    ]
    assert known(*reports) == KnownTypes("bfloat16", 0.0)
    # An evaluation, a report without a place and one that names no activation tell nothing.
    for silent in (
        OomReport(part="forward", phase="eval", largest=newer),
        OomReport(largest=newer),
        OomReport(part="backward", largest=newer[:1]),
        OomReport(part="backward"),
    ):
        assert known(*reports[:1], silent) == KnownTypes("float32", 0.25)


def test_the_type_of_parameters_may_be_missing() -> None:
    found = known(OomReport(part="backward", largest=LARGEST[1:]))
    assert found == KnownTypes("", 0.25)


def test_without_a_report_nothing_is_known() -> None:
    assert known() is None
