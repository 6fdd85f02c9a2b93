"""Memory outside of PyTorch: growth by lasting levels, named by what came with it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.made_ranks import GIB, MIB, made_rank
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.non_torch_memory import levels_of, non_torch_memory
from vramscope_analysis.evidence.run_evidence import Happening


def told(step: int, **parts: int) -> Happening:
    """What the agent says when the division has changed."""
    named = [{"name": name.replace("_", " "), "bytes": size} for name, size in parts.items()]
    data = {"bytes": sum(parts.values()), "parts": named}
    return Happening(step * 10**9, "outside", step, "", data)


def judged(*events: Happening, **more: Any) -> list[Finding]:
    return non_torch_memory(made_rank(1, columns={}, events=events, **more))


GROUPS = [told(0, CUDA_context=500 * MIB)] + [
    told(100 * n, CUDA_context=500 * MIB, NCCL=n * 160 * MIB) for n in range(1, 6)
]


def test_communicators_of_new_groups_are_found_and_named() -> None:
    (finding,) = judged(*GROUPS)
    assert finding.summary == "800 MiB of memory of NCCL came in 5 rises, steps 100 to 500."
    assert (finding.kind, finding.severity, finding.subject) == (
        "non_torch_memory",
        "warning",
        "NCCL",
    )
    assert finding.since_step == 100
    assert [remedy.fix for remedy in finding.remedies][2] == "NCCL_BUFFSIZE=1048576"
    assert finding.remedies[0].predicted_bytes == 800 * MIB
    assert "leak" not in str(finding)


def test_it_is_found_with_the_third_rise_and_not_before() -> None:
    found = [bool(judged(*GROUPS[:count])) for count in range(1, 7)]
    assert found == [False, False, False, True, True, True]


def test_what_has_no_sign_is_not_named_and_nothing_is_advised() -> None:
    events = [told(0, CUDA_context=500 * MIB)] + [
        told(50 * n, CUDA_context=500 * MIB, not_known=n * 40 * MIB) for n in range(1, 5)
    ]
    (finding,) = judged(*events)
    assert finding.summary.startswith("160 MiB of memory outside of PyTorch came in 4 rises")
    assert (finding.remedies, finding.subject) == ((), "not known")


@pytest.mark.parametrize(
    "events",
    [
        [],
        [told(0, CUDA_context=500 * MIB)],
        [told(n, CUDA_context=(300 + 40 * n) * MIB) for n in range(20)],
        [told(0, CUDA_context=500 * MIB), told(100, CUDA_context=500 * MIB, cuDNN=GIB)],
        [told(0, CUDA_context=500 * MIB)]
        + [told(100 * n, CUDA_context=500 * MIB, cuDNN=n * 4 * MIB) for n in range(1, 6)],
        [told(0, CUDA_context=500 * MIB)]
        + [told(100 * n, CUDA_context=500 * MIB, NCCL=(n % 2) * 400 * MIB) for n in range(1, 9)],
    ],
    ids=["nothing", "context", "start", "one library", "small", "up and down"],
)
def test_no_false_alarm(events: list[Happening]) -> None:
    for count in range(len(events) + 1):
        assert judged(*events[:count]) == []


def test_what_was_given_back_is_over() -> None:
    assert judged(*GROUPS, told(600, CUDA_context=500 * MIB)) == []


def test_whoever_was_attached_to_late_begins_at_what_was_found() -> None:
    late = [told(1000 + step, all=2 * GIB + n * 160 * MIB) for n, step in enumerate((0, 5, 10))]
    assert judged(*late) == []
    rises = [told(1100 + 100 * n, all=3 * GIB + n * 160 * MIB) for n in range(3)]
    assert len(judged(*late, *rises)) == 1


def test_much_of_it_is_told_with_its_parts_and_a_warning_only_where_it_is_missed() -> None:
    outside = ({"name": "NCCL", "bytes": 9 * GIB}, {"name": "CUDA context", "bytes": GIB})
    (finding,) = judged(outside=outside)
    assert finding.summary == (
        "10.0 GiB are outside of PyTorch's allocator: NCCL 9.0 GiB, CUDA context 1.0 GiB."
    )
    assert (finding.severity, finding.remedies[0].predicted_bytes) == ("info", 9 * GIB)
    tight = made_rank(50, columns={"step.peak_active_bytes": 68 * GIB}, outside=outside)
    assert non_torch_memory(tight)[0].severity == "warning"
    usual = ({"name": "CUDA context", "bytes": 520 * MIB}, {"name": "NCCL", "bytes": 2 * GIB})
    assert judged(outside=usual) == []


def test_what_is_not_understood_is_left_out() -> None:
    bad: list[Any] = [
        Happening(0, "outside", 1, "", {"bytes": "many"}),
        Happening(0, "outside", 1, "", {"bytes": 5, "parts": {"a": 1}}),
        Happening(0, "outside", 1, "", {}),
        Happening(0, "history", 1, "", {"bytes": 1, "parts": []}),
    ]
    rank = made_rank(1, columns={}, events=(*bad, told(1, a=3)))
    (level,) = levels_of(rank)
    assert level.parts == {"a": 3}
    parts = {"bytes": 1, "parts": [None, {"name": 3, "bytes": 1}, {"name": "b", "bytes": None}]}
    (level,) = levels_of(made_rank(1, columns={}, events=(Happening(0, "outside", 1, "", parts),)))
    assert level.parts == {}
