"""What is offered works against the cause; what works against another is not."""

from __future__ import annotations

from typing import Any

from tests.analysis.diagnosis.test_oom_causes import LEVEL, process
from tests.analysis.diagnosis.test_oom_place import SITE, USER
from tests.support.made_ooms import MIB, STEP_NS, asking, made_oom, step_rows, tensor
from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.oom_causes import causes_of
from vramscope_analysis.diagnosis.oom_remedies import remedies_of
from vramscope_analysis.evidence.growth_report import Frame, GrowthGroup, GrowthReport
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.run_evidence import RankEvidence, Stretch
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
    known = step_rows([500] * 30, **{"user.batch_size": 8})
    assert "lower the batch from 8" in actions(made_oom(known))


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
    text = actions(made_oom(LEVEL, phase="eval"))
    assert text.startswith("lower the batch of the evaluation")
    assert "lower the batch to" not in text


def test_what_is_kept_is_let_go_by_its_line_else_by_its_holder() -> None:
    group = GrowthGroup((Frame("/a/train.py", 56, "f"),), bytes=400 * MIB)
    told = remedies(GROWTH, RankEvidence(0, growth=GrowthReport(groups=(group,))))[0]
    assert (told.action, told.predicted_bytes) == (
        "let go of what train.py:56 allocates",
        400 * MIB,
    )
    held = (tensor("x", 60, "local"), tensor("y", 50, "local"), tensor("z", 90))
    report = OomReport(**{**vars(GROWTH), "largest": held})
    told = remedies(report)[0]
    assert (told.action, told.predicted_bytes) == ("let go of what kept holds", 110 * MIB)
    assert actions(GROWTH).startswith("find what is kept from step to step")


def test_the_state_that_is_to_come_follows_from_optimizer_and_gradients() -> None:
    threads = (asking((f"{SITE}/torch/optim/adam.py", 178, "_init_group"), USER),)
    told = remedies(made_oom(threads=threads, by_category={"category.gradients_bytes": 64 * MIB}))
    assert "its state (128 MiB) comes with the first step" in told[0].why
    told = remedies(made_oom(threads=threads))
    assert "its state comes with the first step" in told[0].why


PIECES = made_oom(step_rows([800] * 30), allocated_mib=600, pieces_mib=300)


def test_pieces_are_made_whole_where_the_request_is_most_of_a_step() -> None:
    steps = step_rows([600] * 30, 200)
    large = made_oom(steps, allocated_mib=200, request_mib=400, pieces_mib=500)
    assert "allocate what lasts before the large block" in actions(large)
    assert "allocate what lasts" not in actions(PIECES)
    assert "record the next run" in actions(PIECES)
    assert "lower the batch" not in actions(PIECES)


def test_the_cache_is_emptied_after_an_evaluation_that_came_just_before() -> None:
    since = Stretch("eval", 29 * STEP_NS + 5, 30 * STEP_NS - 5, 29)
    long_ago = Stretch("eval", 2 * STEP_NS, 3 * STEP_NS, 2)
    assert "empty the cache after the evaluation" in actions(
        PIECES, RankEvidence(0, stretches=(since,))
    )
    assert "empty the cache" not in actions(PIECES, RankEvidence(0, stretches=(long_ago,)))


def trial(text: str, **more: Any) -> SettingsTrial:
    told: dict[str, Any] = {
        "is_recorded": False,
        "peak_reserved_bytes": 5,
        "peak_allocated_bytes": 5,
        "gain_bytes": 80 * MIB,
        "retries": 0,
        "more_device_allocs": 0,
        "runs_out": False,
        "is_worth_it": True,
    }
    return SettingsTrial(text, **{**told, **more})


RECORDED = trial("", is_recorded=True, runs_out=True, is_worth_it=False)


def test_settings_are_advised_if_a_replay_proved_them_and_they_are_not_on() -> None:
    trials = (
        RECORDED,
        trial("expandable_segments:True"),
        trial("max_split_size_mb:64", runs_out=True),
    )
    told = "\n".join(remedy.fix for remedy in remedies(PIECES, trials=trials))
    assert "expandable_segments:True" in told
    assert "max_split_size_mb" not in told
    on = OomReport(**{**vars(PIECES), "settings": "expandable_segments:True"})
    told = "\n".join(r.fix + r.action for r in (*remedies(on, trials=trials), *remedies(PIECES)))
    assert "expandable_segments" not in told


def test_of_growing_needs_it_is_told_for_how_long_a_setting_helps() -> None:
    growing = made_oom(
        step_rows([200 + 25 * n for n in range(30)]), allocated_mib=750, pieces_mib=200
    )
    told = remedies(growing, trials=(RECORDED, trial("expandable_segments:True")))
    why = next(r.why for r in told if "expandable" in r.action)
    # 274 MiB were free, 200 of them were asked for.
    assert "at 25.0 MiB more with every step that lasts for about 3 steps" in why


def test_a_cap_is_raised_where_the_device_has_more() -> None:
    assert "raise the memory fraction" in actions(made_oom(LEVEL, total_mib=8192))
    assert "raise the memory fraction" not in actions(made_oom(LEVEL))
    assert "raise" not in actions(made_oom(LEVEL, total_mib=8192, free_mib=50))


def test_what_would_not_have_been_enough_comes_behind() -> None:
    state = {"category.optimizer_state_bytes": 100 * MIB}
    rows = step_rows([1000] * 30)
    report = made_oom(rows, by_category=state, world_size=2, request_mib=150, limit_mib=960)
    freed = [remedy.predicted_bytes or 0 for remedy in remedies(report)[1:]]
    assert [size >= 90 * MIB for size in freed] == [True, True, False]
