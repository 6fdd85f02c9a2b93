from __future__ import annotations

from vramscope_analysis.replay.steps import Annotation, Steps


def step(end_us: int, name: str = "Optimizer.step#AdamW.step") -> list[Annotation]:
    return [Annotation(name, "START", end_us - 5), Annotation(name, "END", end_us)]


def test_a_step_lasts_until_its_optimizer_is_done() -> None:
    steps = Steps.from_annotations([*step(100), *step(200), *step(300)])

    assert len(steps) == 3
    assert [steps.at(time_us) for time_us in (0, 99, 100, 150, 200, 299, 300, 999)] == [
        0,
        0,
        1,
        1,
        2,
        2,
        3,
        3,
    ]


def test_without_annotations_no_step_is_known() -> None:
    steps = Steps.from_annotations([Annotation("## forward ##", "END", 7)])

    assert len(steps) == 0
    assert steps.at(100) is None


def test_optimizers_that_take_turns_make_one_step_together() -> None:
    turns = [
        annotation
        for round_us in (100, 200)
        for annotation in (
            *step(round_us, "Optimizer.step#Adam.step"),
            *step(round_us + 50, "Optimizer.step#SGD.step"),
        )
    ]

    assert Steps.from_annotations(turns).ends_us == [150, 250]
