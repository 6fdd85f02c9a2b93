"""Advice about an optimizer: offered with bytes and cost where its rows show them, else not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.made_ranks import GIB, MIB, made_rank
from vramscope_analysis.diagnosis.advisor import advise
from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.evidence.columns import UNKNOWN
from vramscope_analysis.evidence.oom_report import OomReport

COUNT = 60
EIGHT_BITS = "use an 8-bit optimizer"
TO_HOST = "keep the optimizer's state in host memory"
SHARD = "shard the optimizer's state over the 4 ranks"
FUSED = "step the optimizer fused, or parameter by parameter"
ADAM: dict[str, Any] = {
    "category.parameters_bytes": 4 * GIB,
    "category.gradients_bytes": 4 * GIB,
    "category.optimizer_state_bytes": 8 * GIB,
    "category.buffers_bytes": 0,
    "category.gradients_kept_bytes": 0,
    "allocated_bytes.all.current": 20 * GIB + 32 * MIB,
    "reserved_bytes.all.current": 32 * GIB,
    "step.peak_reserved_bytes": 32 * GIB,
    "step.peak_allocated_bytes": 24 * GIB,
    "step.duration_us": 400_000,
    "step.peak_part": 2,
}
"""Under `DistributedDataParallel`: buckets of 4 GiB, and a workspace, lie beside what is named."""


def advised(changes: dict[str, Any] | None = None, **more: Any) -> dict[str, Remedy]:
    remedies = advise(made_rank(COUNT, columns={**ADAM, **(changes or {})}, **more))
    return {remedy.action: remedy for remedy in remedies}


def test_a_smaller_state_where_it_is_large() -> None:
    remedy = advised()[EIGHT_BITS]
    assert remedy.predicted_bytes == 4 * GIB
    assert remedy.cost
    assert EIGHT_BITS not in advised({"category.optimizer_state_bytes": 4 * GIB})
    assert EIGHT_BITS not in advised({"category.parameters_bytes": UNKNOWN})
    assert EIGHT_BITS not in advised({"step.peak_allocated_bytes": 90 * GIB})


def test_of_float32_state_three_quarters_go() -> None:
    largest = (
        {"tensor": "float32[8]", "bytes": GIB, "category": "parameters"},
        {"tensor": "bfloat16[8]", "bytes": GIB, "category": "activations"},
    )
    remedy = advised(ooms=(OomReport(part="forward", largest=largest),))[EIGHT_BITS]
    assert remedy.predicted_bytes == 6 * GIB
    assert "float32" in remedy.why


def test_the_state_goes_to_the_host_only_where_moving_it_is_short_against_a_step() -> None:
    assert TO_HOST not in advised()  # 0.86 s to move, a step takes 0.4 s
    remedy = advised({"step.duration_us": 4_000_000})[TO_HOST]
    assert remedy.predicted_bytes == 8 * GIB
    assert remedy.cost.startswith("about 21\u2009% of the step time")
    unknown = {"step.duration_us": UNKNOWN}
    assert TO_HOST not in advised(unknown)


def test_a_state_that_each_rank_has_whole_may_be_shared() -> None:
    remedy = advised(world_size=4)[SHARD]
    assert remedy.predicted_bytes == 6 * GIB
    assert remedy.cost == "parameters are gathered after each step"
    assert SHARD not in advised()


@pytest.mark.parametrize(
    "changes",
    [
        {"allocated_bytes.all.current": 16 * GIB + 32 * MIB},  # no buckets: a sharded model
        {"allocated_bytes.all.current": 24 * GIB},  # what two ranks of a sharded model gather
        {"category.optimizer_state_bytes": 4 * GIB},  # half of it: shared already, or momentum
        {"category.gradients_bytes": UNKNOWN},
        {"category.gradients_bytes": 0},
        {"allocated_bytes.all.current": UNKNOWN},
        {"step.peak_allocated_bytes": 90 * GIB},
    ],
)
def test_a_state_that_may_be_shared_already_or_is_small_is_left_alone(
    changes: dict[str, Any],
) -> None:
    if "category.optimizer_state_bytes" in changes:
        changes = changes | {"allocated_bytes.all.current": 16 * GIB + 32 * MIB}
    assert SHARD not in advised(changes, world_size=4)


IN_OPTIMIZER: dict[str, Any] = {
    "step.peak_part": 3,
    "part.forward.peak_bytes": 21 * GIB,
    "part.backward.peak_bytes": 22 * GIB,
    "part.optimizer.peak_bytes": [UNKNOWN, 24 * GIB] * (COUNT // 2),
}


def test_a_fused_step_where_the_copies_of_the_optimizer_are_the_peak() -> None:
    remedy = advised(IN_OPTIMIZER)[FUSED]
    # 4 GiB of copies less the workspace; but the backward pass is only 2 GiB lower.
    assert remedy.predicted_bytes == 2 * GIB
    assert remedy.cost
    low = advised({**IN_OPTIMIZER, "part.backward.peak_bytes": 20 * GIB})[FUSED]
    assert low.predicted_bytes == 3 * GIB, "the forward pass is the next"


@pytest.mark.parametrize(
    "changes",
    [
        {"step.peak_part": 2},
        {"part.optimizer.peak_bytes": UNKNOWN},
        {"part.backward.peak_bytes": UNKNOWN},
        {"part.optimizer.peak_bytes": 20 * GIB + 32 * MIB},  # no copies: it is fused
        {"part.backward.peak_bytes": 24 * GIB},
    ],
)
def test_a_fused_step_is_not_offered_where_it_would_not_lower_the_peak(
    changes: dict[str, Any],
) -> None:
    assert FUSED not in advised({**IN_OPTIMIZER, **changes})
