"""Sizes of a batch follow from what was missing and from what scales with the batch."""

from __future__ import annotations

from tests.support.made_ooms import MIB, made_oom, step_rows
from vramscope_analysis.diagnosis.oom_batch import batch_remedies, fitting_batch
from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.evidence.oom_report import OomReport

GRADIENTS = {"category.gradients_bytes": 50 * MIB, "category.gradients_kept_bytes": 0}


def remedies(report: OomReport) -> list[tuple[str, int | None]]:
    return [(r.action, r.predicted_bytes) for r in batch_remedies(OomCase.of(report))]


def test_a_batch_fits_that_frees_what_was_missing() -> None:
    assert fitting_batch(32, 1000, 100) == 28
    assert fitting_batch(2, 1000, 600) == 0


def test_a_known_batch_is_lowered_to_what_fits() -> None:
    """Constant 50 MiB (100 less gradients), 1050 MiB of activations in the forward; 76 missing."""
    rows = step_rows([500] * 10, 100, **GRADIENTS, **{"user.batch_size": 32})
    report = made_oom(rows, part="forward")
    lower, accumulate = batch_remedies(OomCase.of(report))
    assert lower.action == "lower the batch from 32 to 29 samples at most"
    assert lower.predicted_bytes == int(1050 * MIB * (1 - 29 / 32))
    assert "a sample needs 32.8 MiB of activations" in lower.why
    assert accumulate.action == "accumulate gradients over parts of the batch: 2 of 16"
    # The gradients of the first part stay while the second runs.
    assert accumulate.predicted_bytes == 525 * MIB - 50 * MIB


def test_gradients_of_a_backward_pass_do_not_scale() -> None:
    rows = step_rows([500] * 10, 100, **GRADIENTS, **{"user.batch_size": 32})
    forward, backward = (
        batch_remedies(OomCase.of(made_oom(rows, part=part)))[0] for part in ("forward", "backward")
    )
    assert forward.predicted_bytes != backward.predicted_bytes
    assert "might need more" in forward.why
    assert "might need more" not in backward.why


def test_an_unknown_batch_is_halved_until_it_is_enough() -> None:
    half = remedies(made_oom(step_rows([500] * 10)))
    assert half[0] == ("lower the batch to half of its size at most", 500 * MIB)
    # 1200 of 2100 MiB were missing, and a tenth of that as a margin.
    much = made_oom(step_rows([500] * 10), allocated_mib=1024, request_mib=1176, limit_mib=1000)
    assert remedies(much)[0][0] == "lower the batch to a quarter of its size at most"


def test_as_much_as_steps_had_needed_before_is_still_to_come() -> None:
    """In the forward pass 340 MiB of the usual 700 had been asked for; 76 were missing."""
    rows = step_rows([800] * 10, **{"user.batch_size": 32})
    report = made_oom(rows, allocated_mib=240, request_mib=200, limit_mib=364, part="forward")
    lower = batch_remedies(OomCase.of(report))[0]
    # 700 MiB have to become 700 - 1.1 * (76 + 360).
    assert lower.action == "lower the batch from 32 to 10 samples at most"


def test_no_batch_helps_where_more_was_missing_than_scales() -> None:
    rows = step_rows([800] * 10, 780)
    assert remedies(made_oom(rows, allocated_mib=785, request_mib=100, limit_mib=770)) == []


def test_a_batch_of_one_cannot_be_lowered() -> None:
    rows = step_rows([500] * 10, **{"user.batch_size": 1})
    assert remedies(made_oom(rows)) == []


def test_nothing_is_predicted_of_what_is_not_known() -> None:
    assert remedies(made_oom()) == remedies(OomReport()) == []


def test_before_the_first_step_the_parameters_are_the_constant_part() -> None:
    report = made_oom(by_category={"category.parameters_bytes": 300 * MIB}, part="forward")
    assert remedies(report)[0] == ("lower the batch to half of its size at most", 400 * MIB)
