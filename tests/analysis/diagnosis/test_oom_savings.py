"""Each saving is offered where the report shows it, with bytes of the report."""

from __future__ import annotations

from typing import Any

from tests.analysis.diagnosis.test_oom_place import SITE, USER
from tests.support.made_ooms import MIB, asking, made_oom, step_rows, tensor
from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.oom_savings import savings

LEVEL = step_rows([500] * 30)


def found(rows: Any = LEVEL, **fields: Any) -> list[Remedy]:
    return savings(OomCase.of(made_oom(rows, **fields)))


def line(size_mib: int, count: int, **more: Any) -> dict[str, Any]:
    told = {"file": "/a/train.py", "line": 20, "function": "forward"}
    return {**told, "bytes": size_mib * MIB, "count": count, **more}


def test_layers_that_repeat_are_recomputed_but_for_one() -> None:
    (remedy,) = found(by_stack=(line(360, 36),))
    assert remedy.action == "recompute activations: checkpoint the module of train.py:20"
    assert remedy.predicted_bytes == 350 * MIB
    assert found(by_stack=(line(360, 2),)) == []  # no layers
    assert found(by_stack=(line(10, 36),)) == []  # not worth it
    assert found(by_stack=(line(360, 36, category="parameters"),)) == []
    frames = [{"file": "/a/train.py", "line": 20, "function": "load"}]
    assert found(by_stack=(line(360, 36, frames=frames),)) == []


def test_float32_activations_are_halved_less_copies_of_the_weights() -> None:
    parameters = {"category.parameters_bytes": 100 * MIB}
    tensors = (
        tensor("float32[8, 8]", 400),
        tensor("bfloat16[8, 8]", 100),
        tensor("float32[9]", 100, category="parameters"),
    )
    (remedy,) = found(largest=tensors, by_category=parameters)
    assert remedy.predicted_bytes == 200 * MIB - 50 * MIB
    assert found(largest=tensors) == []  # parameters not known
    assert found(largest=(tensor("bfloat16[9]", 400),), by_category=parameters) == []
    large = {"category.parameters_bytes": 400 * MIB}
    assert found(largest=tensors, by_category=large) == []  # the copies take what it saves


def test_state_of_8_bits_depends_on_the_type_that_it_has() -> None:
    state = {"category.optimizer_state_bytes": 200 * MIB}
    parameter = tensor("float32[9]", 5, category="parameters")
    assert [r.predicted_bytes for r in found(by_category=state, largest=(parameter,))] == [
        150 * MIB
    ]
    parameter = tensor("bfloat16[9]", 5, category="parameters")
    assert [r.predicted_bytes for r in found(by_category=state, largest=(parameter,))] == [
        100 * MIB
    ]
    assert found(by_category=state) == []
    small = {"category.optimizer_state_bytes": 5 * MIB}
    assert found(by_category=small, largest=(parameter,)) == []


def test_several_ranks_can_share_the_state() -> None:
    state = {"category.optimizer_state_bytes": 200 * MIB}
    (remedy,) = found(by_category=state, world_size=4)
    assert (remedy.predicted_bytes, "4 ranks" in remedy.action) == (150 * MIB, True)


def test_a_fused_step_saves_what_the_step_takes_for_a_moment() -> None:
    rows = step_rows([500] * 30, 100, **{"part.optimizer.peak_bytes": 160 * MIB})
    threads = (asking((f"{SITE}/torch/optim/adamw.py", 3, "_multi_tensor_adamw"), USER),)
    (remedy,) = found(rows, part="optimizer", threads=threads)
    assert remedy.predicted_bytes == 60 * MIB
    assert found(rows, part="backward", threads=threads) == []
    assert found(part="optimizer", threads=threads) == []  # not split, not known


def test_what_frees_most_comes_first() -> None:
    state = {"category.optimizer_state_bytes": 600 * MIB}
    sizes = [
        r.predicted_bytes for r in found(by_category=state, world_size=2, by_stack=(line(360, 36),))
    ]
    assert sizes == [350 * MIB, 300 * MIB]
