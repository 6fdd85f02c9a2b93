"""What is offered works against the cause; what works against another is not."""

from __future__ import annotations

from dataclasses import replace

from tests.analysis.diagnosis.test_oom_causes import LEVEL, process
from tests.analysis.diagnosis.test_oom_place import SITE, USER
from tests.support.made_ooms import MIB, asking, made_oom, step_rows, tensor
from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.oom_causes import causes_of
from vramscope_analysis.diagnosis.oom_remedies import remedies_of
from vramscope_analysis.evidence.growth_report import (
    Frame,
    GrowthGroup,
    GrowthReport,
    Holder,
)
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.run_evidence import RankEvidence
from vramscope_analysis.evidence.settings_trial import SettingsTrial

FLOORS = [100, 100, 100, *(100 + 15 * n for n in range(40))]
GROWTH = made_oom(step_rows([f + 300 for f in FLOORS], FLOORS), largest=())


def remedies(
    report: OomReport, rank: RankEvidence | None = None, trials: tuple[SettingsTrial, ...] = ()
) -> tuple[Remedy, ...]:
    case = OomCase.of(report, rank, trials)
    return remedies_of(case, causes_of(case))


def actions(report: OomReport, rank: RankEvidence | None = None) -> str:
    return "\n".join(remedy.action for remedy in remedies(report, rank))


def test_a_spike_is_bounded_and_not_every_batch_lowered_for_it() -> None:
    first, *others = remedies(made_oom(LEVEL))
    assert first.action.startswith("bound the size of a batch")
    assert first.predicted_bytes == 600 * MIB
    assert not any("lower the batch" in remedy.action for remedy in others)
    known = step_rows([1000] * 30, **{"user.batch_size": 8})
    assert "lower the batch" not in actions(made_oom(step_rows([500] * 30)))
    assert "lower the batch from 8" in actions(made_oom(known, request_mib=150))


def test_after_a_larger_batch_the_former_one_is_advised() -> None:
    sizes = {"before": {"batch_size": 8}, "after": {"batch_size": 16}}
    first, *others = remedies(made_oom(LEVEL, new_sizes=sizes))
    assert first.action == "go back to a batch size of 8, or accumulate"
    assert first.predicted_bytes == 600 * MIB
    assert not any("lower the batch" in remedy.action for remedy in others)


def test_no_smaller_batch_against_what_is_kept_or_garbage_or_others() -> None:
    assert "lower the batch" not in actions(GROWTH)
    assert "lower the batch" not in actions(made_oom(LEVEL, garbage_bytes=300 * MIB))
    held = (tensor("x", 300, "exception"),)
    assert "lower the batch" not in actions(made_oom(LEVEL, largest=held))
    other = made_oom(LEVEL, allocated_mib=700, free_mib=100, processes=(process(220),))
    assert actions(other).startswith("end the other process, or use another device (pid 4123")


def test_garbage_is_collected_and_that_gives_all_of_it() -> None:
    remedy = remedies(made_oom(LEVEL, garbage_bytes=300 * MIB))[0]
    assert (remedy.predicted_bytes, remedy.command) == (300 * MIB, "gc_collect")


def test_an_evaluation_has_its_own_batch() -> None:
    assert actions(made_oom(LEVEL, phase="eval")) == "evaluate in smaller batches"


def test_what_an_evaluation_collects_is_named_if_somebody_holds_it() -> None:
    held = (tensor("x", 60, "local"), tensor("y", 50, "autograd_graph"), tensor("z", 90))
    told = remedies(made_oom(LEVEL, phase="eval", largest=held))
    assert [(remedy.action, remedy.predicted_bytes) for remedy in told] == [
        ("evaluate in smaller batches", None),
        ("keep numbers, not tensors, in kept", 110 * MIB),
        ("evaluate without gradients", None),
    ]


def growth_report() -> GrowthReport:
    """A list that took 100 MiB from look to look, allocated within PyTorch."""
    group = GrowthGroup(
        (
            Frame("/a/train.py", 56, "f"),
            Frame("/env/site-packages/torch/nn/modules/linear.py", 1, "g"),
        ),
        bytes=400 * MIB,
        count=40,
        bytes_at_looks=tuple(n * 100 * MIB for n in range(1, 6)),
        counts_at_looks=(10, 20, 30, 40, 50),
        holders=(Holder("local", ("kept", "list of 50"), tensors=50, is_growing=True),),
    )
    return GrowthReport(
        steps=(1, 2, 3, 4, 5),
        live_bytes_at_looks=tuple(n * 100 * MIB for n in range(1, 6)),
        groups=(group,),
    )


def test_what_is_kept_is_let_go_by_its_line_else_by_its_holder() -> None:
    told = remedies(GROWTH, RankEvidence(0, growth=growth_report()))[0]
    assert ("kept" in told.action + told.why, told.predicted_bytes) == (True, 400 * MIB)
    held = (tensor("x", 60, "local"), tensor("y", 50, "local"), tensor("z", 90))
    report = replace(GROWTH, largest=held)
    told = remedies(report)[0]
    assert (told.action, told.predicted_bytes) == ("let go of what kept holds", 110 * MIB)
    assert actions(GROWTH).startswith("find what is kept from step to step")


def test_the_state_that_is_to_come_follows_from_optimizer_and_gradients() -> None:
    threads = (asking((f"{SITE}/torch/optim/adam.py", 178, "_init_group"), USER),)
    told = remedies(made_oom(threads=threads, by_category={"category.gradients_bytes": 64 * MIB}))
    assert "its state (128 MiB) comes with the first step" in told[0].why
    assert not any("batch to" in remedy.action for remedy in told)
    told = remedies(
        made_oom(
            threads=threads,
            by_category={"category.gradients_bytes": 64 * MIB},
            largest=(tensor("float32[9]", 9, category="parameters"),),
        )
    )
    assert (told[1].action, told[1].predicted_bytes) == (
        "keep the optimizer's state in 8 bits",
        96 * MIB,
    )
    told = remedies(made_oom(threads=threads))
    assert "its state comes with the first step" in told[0].why


def test_what_would_not_have_been_enough_comes_behind() -> None:
    state = {"category.optimizer_state_bytes": 100 * MIB}
    rows = step_rows([1000] * 30)
    report = made_oom(rows, by_category=state, world_size=2, request_mib=150, limit_mib=960)
    freed = [remedy.predicted_bytes or 0 for remedy in remedies(report)[1:]]
    assert [size >= 90 * MIB for size in freed] == [True, True, False]


def test_an_evaluation_with_gradients_on_is_told_so() -> None:
    report = replace(made_oom(LEVEL, phase="eval"), grad_enabled=True)
    assert "evaluate without gradients" in actions(report)
    report = replace(report, grad_enabled=False)
    assert "evaluate without gradients" not in actions(report)
