"""Where a step ends, for every order in which optimizers are seen to step."""

from __future__ import annotations

import pytest

from vramscope.steps.boundaries import BackwardOptimizers, OptimizerCycle


def boundaries(calls: str) -> str:
    cycle = OptimizerCycle()
    return "".join("|" if cycle.ends_step(call) else "." for call in calls)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ("AAAA", "||||"),
        # Two optimizers: the first iteration is counted at A, all others at B.
        ("ABABAB", "|..|.|"),
        ("ABCABC", "|....|"),
        # Several steps of one for each step of the other.
        ("DDGDDGDDG", "||...|..|"),
        # B is used no more: after two cycles of waiting A counts again.
        ("ABABAAAAAAA", "|..|....|||"),
        # The optimizer is replaced: one iteration is taken for an extension, then B counts.
        ("AAABBB", "|||.||"),
    ],
)
def test_a_step_ends_at_the_last_optimizer_of_an_iteration(calls: str, expected: str) -> None:
    assert boundaries(calls) == expected


def test_many_iterations_of_a_gan_are_counted_one_each() -> None:
    assert boundaries("DG" * 100).count("|") == 100


def test_optimizers_in_backward_are_one_step_until_the_first_comes_round() -> None:
    backward = BackwardOptimizers()
    assert not backward.is_pending()
    assert [backward.comes_round(name) for name in "abc"] == [False, False, False]
    assert backward.is_pending()
    assert backward.comes_round("a")


def test_a_step_that_ended_elsewhere_does_not_end_again() -> None:
    backward = BackwardOptimizers()
    backward.comes_round("a")
    backward.ended()
    assert not backward.is_pending()
    assert not backward.comes_round("a")
