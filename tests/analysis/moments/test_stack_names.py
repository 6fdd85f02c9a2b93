"""What stacks are called."""

from __future__ import annotations

from tests.support.made_moments import (
    CALL,
    FORWARD_STACK,
    LOOP_STACK,
    MODULE,
    OPTIMIZER_STACK,
    TORCH,
    Frame,
    entry,
    snapshot,
)
from vramscope_analysis.moments.stack_names import StackNames

LIBRARY = ("/opt/site-packages/transformers/models/gpt2.py", 345, "forward")


def names_of(*stacks: list[Frame]) -> StackNames:
    trace = [entry("alloc", i << 20, 512, stack=stack) for i, stack in enumerate(stacks)]
    return StackNames(snapshot(trace))


def label(stack: list[Frame]) -> str:
    return names_of(stack).name(0).label


def test_the_innermost_line_of_the_user_and_what_it_called() -> None:
    assert label(LOOP_STACK) == "train.py:30 train_step"
    assert label(FORWARD_STACK) == "model.py:20 forward › forward"
    assert label(OPTIMIZER_STACK) == "train.py:30 train_step › _init_group"
    assert label([(TORCH + "nn/functional.py", 5, "softmax"), CALL, LIBRARY, CALL, MODULE]) == (
        "train.py:76 <module> › gpt2.py:345 forward"
    )


def test_without_a_user_it_is_the_library_then_pytorch() -> None:
    assert label([CALL, LIBRARY, CALL]) == "gpt2.py:345 forward"
    assert label([(TORCH + "nn/functional.py", 5, "softmax"), CALL]) == "functional.py:5 softmax"
    assert label([CALL]) == "module.py:1790 _call_impl"
    assert label([("alloc.cpp", 1, "malloc")]) == " "


def test_folding_leaves_out_what_only_calls_on() -> None:
    names = names_of(FORWARD_STACK, [CALL], [("alloc.cpp", 1, "malloc"), MODULE])
    folded = [names.frame(index).name for index in names.folded(0)]
    assert folded == ["<module>", "train_step", "forward", "forward"]
    assert len(names.folded(0, fold=False)) == len(FORWARD_STACK)
    assert len(names.folded(1)) == 1, "nothing else is there"
    assert [names.frame(index).name for index in names.folded(2)] == ["<module>"]


def test_a_stack_of_the_c_side_alone_is_none_of_pythons() -> None:
    names = names_of([("alloc.cpp", 1, "malloc")], LOOP_STACK)
    assert [names.is_python(0), names.is_python(1)] == [False, True]


def test_callers_are_the_users_frames_and_those_of_libraries() -> None:
    names = names_of(FORWARD_STACK, [CALL, LIBRARY, CALL])
    assert [names.frame(index).line for index in names.callers(0)] == [76, 30, 20]
    assert [names.frame(index).line for index in names.callers(1)] == [345]
