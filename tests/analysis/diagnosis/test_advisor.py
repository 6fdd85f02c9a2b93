"""Each measure is offered where the job's numbers speak for it, and not where they do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.made_ranks import GIB, MIB, made_rank, stretch
from vramscope_analysis.diagnosis.advisor import advise
from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.evidence.columns import UNKNOWN
from vramscope_analysis.evidence.oom_report import OomReport

COUNT = 60
JOB: dict[str, Any] = {
    "category.parameters_bytes": 4 * GIB,
    "category.optimizer_state_bytes": 0,
    "category.buffers_bytes": 0,
    "category.gradients_bytes": 0,
    "category.gradients_kept_bytes": 0,
    "allocated_bytes.all.current": 4 * GIB,
    "reserved_bytes.all.current": 64 * GIB,
    "step.peak_reserved_bytes": 64 * GIB,
    "step.peak_allocated_bytes": 4 * GIB,
    "step.duration_us": 400_000,
    "step.peak_part": 1,
}


def advised(changes: dict[str, Any], count: int = COUNT, **more: Any) -> dict[str, Remedy]:
    remedies = advise(made_rank(count, columns={**JOB, **changes}, **more))
    return {remedy.action.split(" (")[0]: remedy for remedy in remedies}


HALVE = "halve the batch and accumulate the gradients of 2"


def test_a_job_of_parameters_alone_gets_no_advice() -> None:
    assert advised({}) == {}
    assert advised({}, count=10) == {}


def test_half_the_batch_where_activations_are_the_peak() -> None:
    found = advised({"step.peak_allocated_bytes": 24 * GIB})
    assert found[HALVE].predicted_bytes == 10 * GIB
    assert HALVE not in advised({"step.peak_allocated_bytes": 5 * GIB})
    one = {"step.peak_allocated_bytes": 24 * GIB, "user.batch_size": 1}
    assert "halve the batch" not in advised(one)


def test_half_the_batch_is_measured_where_sizes_differed() -> None:
    sizes = [8] * 30 + [16] * 30
    found = advised(
        {
            "user.batch_size": sizes,
            "step.peak_allocated_bytes": [4 * GIB + size * GIB for size in sizes],
        }
    )
    remedy = found["halve the batch"]
    assert remedy.action.startswith("halve the batch (16 to 8)")
    assert abs((remedy.predicted_bytes or 0) - 8 * GIB) < 64
    assert remedy.why.startswith("Measured: 1.0 GiB for each sample, sizes 8 to 16")


def test_checkpoints_where_the_forward_pass_piles_up() -> None:
    piling = {
        "step.peak_allocated_bytes": 24 * GIB,
        "part.forward.peak_bytes": 23 * GIB,
        "part.forward.time_us": 120_000,
    }
    remedy = advised(piling)["checkpoint the blocks of the model"]
    assert remedy.predicted_bytes is None
    assert "30\u2009%" in remedy.cost
    # It has checkpoints already: the forward pass ends low.
    assert "checkpoint the blocks of the model" not in advised(
        {**piling, "part.forward.peak_bytes": 8 * GIB}
    )
    assert "checkpoint the blocks of the model" not in advised({**piling, "step.peak_part": 3})


def test_gradients_to_none_where_zeros_are_kept_and_bytes_only_if_they_are_at_the_peak() -> None:
    kept = {"category.gradients_bytes": 2 * GIB, "category.gradients_kept_bytes": 2 * GIB}
    action = "set gradients to None instead of zero"
    assert (
        advised({**kept, "step.peak_allocated_bytes": 9 * GIB})[action].predicted_bytes == 2 * GIB
    )
    in_backward = {**kept, "step.peak_allocated_bytes": 9 * GIB, "step.peak_part": 2}
    assert advised(in_backward)[action].predicted_bytes is None
    assert action not in advised({**kept, "category.gradients_kept_bytes": 0})
    assert action not in advised({**kept, "category.gradients_kept_bytes": UNKNOWN})
    # Accumulation: kept in some steps only.
    some = [2 * GIB, 0, 0, 0] * (COUNT // 4)
    assert action not in advised({**kept, "category.gradients_kept_bytes": some})


AMP = "compute in bfloat16: torch.autocast"


def ran_out(*activations: str, part: str = "backward", phase: str = "") -> dict[str, Any]:
    """A job that ran out of memory once, with activations of these types."""
    largest = tuple(
        {"tensor": f"{dtype}[64, 1024]", "bytes": GIB, "category": "activations"}
        for dtype in activations
    )
    return {"ooms": (OomReport(part=part, phase=phase, largest=largest),)}


def test_half_precision_where_activations_are_known_to_be_float32() -> None:
    high = {"step.peak_allocated_bytes": 24 * GIB}
    remedy = advised(high, **ran_out("float32"))[AMP]
    # 20 GiB of activations, of which half goes, less 2 GiB of copies of the weights.
    assert remedy.predicted_bytes == 8 * GIB
    assert remedy.cost
    assert "autocast" in remedy.fix
    mixed = advised(high, **ran_out("float32", "float32", "float32", "bfloat16"))[AMP]
    assert mixed.predicted_bytes == 5.5 * GIB


def test_half_precision_is_not_offered_where_it_is_on_or_the_type_is_not_known() -> None:
    high = {"step.peak_allocated_bytes": 24 * GIB}
    assert AMP not in advised(high)
    assert AMP not in advised(high, **ran_out("bfloat16", "bfloat16", "float32"))
    assert AMP not in advised(high, **ran_out())
    evaluation = ran_out("float32", part="forward", phase="eval")
    assert AMP not in advised(high, **evaluation)
    in_optimizer = {**high, "step.peak_part": 3}
    assert AMP not in advised(in_optimizer, **ran_out("float32"))
    # The copies of the weights would be larger than what it halves.
    assert AMP not in advised({"step.peak_allocated_bytes": 7 * GIB}, **ran_out("float32"))


def test_a_smaller_evaluation_where_it_is_the_highest_moment() -> None:
    action = "evaluate in smaller batches, under torch.no_grad()"
    found = advised({}, stretches=[stretch("eval", 30, 9 * GIB)])
    assert found[action].predicted_bytes == 5 * GIB
    assert action not in advised({}, stretches=[stretch("eval", 30, 3 * GIB)])
    assert action not in advised({}, stretches=[stretch("eval", 30, None)])


def test_leftovers_of_a_step_are_seen_where_steps_differ() -> None:
    rise = np.linspace(8, 20, COUNT)[np.random.default_rng(1).permutation(COUNT)]
    action = "delete outputs and loss at the end of a step"
    lasting = {
        "allocated_bytes.all.current": [int((4 + 0.25 * part) * GIB) for part in rise],
        "step.peak_allocated_bytes": [int((4 + 1.25 * part) * GIB) for part in rise],
    }
    remedy = advised(lasting)[action]
    assert abs((remedy.predicted_bytes or 0) - 5 * GIB) < 64 * MIB
    # As large in every step: it may be there for good, such as a buffer.
    constant = {
        "allocated_bytes.all.current": 6 * GIB,
        "step.peak_allocated_bytes": [int((6 + part) * GIB) for part in rise],
    }
    assert action not in advised(constant)


def test_the_most_effective_comes_first_and_trifles_are_left_out() -> None:
    remedies = advise(
        made_rank(
            COUNT,
            columns={
                **JOB,
                "category.optimizer_state_bytes": 8 * GIB,
                "step.peak_allocated_bytes": 40 * GIB,
            },
            stretches=[stretch("eval", 30, 40 * GIB + 100 * MIB)],
        )
    )
    freed = [remedy.predicted_bytes or 0 for remedy in remedies]
    assert freed == sorted(freed, reverse=True)
    assert not any("evaluate" in remedy.action for remedy in remedies)
