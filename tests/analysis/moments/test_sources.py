"""Where blocks come from."""

from __future__ import annotations

from tests.support.made_moments import (
    FORWARD,
    FORWARD_STACK,
    LINEAR,
    LOOP,
    MIB,
    MODULE,
    TORCH,
    block,
    entry,
    memory,
    recorded,
    segment,
    two_steps,
)
from vramscope_analysis.moments.category import Category
from vramscope_analysis.moments.recorded_memory import RecordedMemory


def labels(made: RecordedMemory) -> list[str]:
    return [made.sources[index].label for index in made.source_of]


def test_gradients_are_what_the_backward_pass_leaves_to_the_optimizer() -> None:
    made = two_steps()
    backward = [i for i, size in enumerate(made.lifetimes.requested) if size == 2 * MIB][1:]
    assert {made.category_of[i] for i in backward} == {Category.GRADIENTS}
    # Without the optimizer's scopes the end of the step tells.
    entries = [
        entry("alloc", 0, 512, time_us=1, stack=FORWARD_STACK),
        entry("alloc", 512, 512, time_us=2),
        entry("alloc", 1024, 512, time_us=3),
        entry("free_completed", 1024, 512, time_us=4),
    ]
    told = memory(entries, told_steps=[(5, 10)])
    assert set(labels(told)[1:]) == {"gradients, no Python stack", "backward, no Python stack"}
    assert labels(memory(entries))[1:] == ["backward, no Python stack"] * 2


def test_gradients_of_a_backward_pass_that_has_a_stack() -> None:
    engine = [(TORCH + "autograd/graph.py", 824, "_engine_run_backward"), LOOP, MODULE]
    entries = [
        entry("alloc", 0, 512, time_us=1, stack=engine),
        entry("alloc", 512, 512, time_us=1, stack=engine),
        entry("free_completed", 512, 512, time_us=2),
        entry("alloc", 1024, 512, time_us=9),
    ]
    made = memory(entries, told_steps=[(1, 5)])
    assert [made.sources[i].category for i in made.source_of[:2]] == [
        Category.GRADIENTS,
        Category.BACKWARD,
    ]
    assert labels(made)[0] == "train.py:30 train_step › gradients"


def test_a_backward_block_goes_by_its_forward_line_if_the_entry_names_it() -> None:
    entries = [
        entry("alloc", 0, 512, stack=FORWARD_STACK, user_metadata=""),
        entry("alloc", 512, 512, user_metadata="backward of /home/ada/model.py:20 forward"),
        entry("alloc", 1024, 512, user_metadata="something else"),
    ]
    made = memory(entries)
    assert labels(made)[1:] == ["backward of model.py:20 forward", "backward, no Python stack"]
    assert made.sources[made.source_of[1]].file == "/home/ada/model.py"


def test_the_forward_line_counts_more_than_the_call_of_backward() -> None:
    engine = [(TORCH + "autograd/graph.py", 824, "_engine_run_backward"), LOOP, MODULE]
    told = "backward of /home/ada/model.py:20 forward"
    entries = [
        entry("alloc", 0, 512, stack=engine, user_metadata=told),
        entry("alloc", 512, 512, stack=FORWARD_STACK, user_metadata=told),
    ]
    assert labels(memory(entries)) == [
        "backward of model.py:20 forward",
        "model.py:20 forward › forward",
    ]


def test_unknown_stays_unknown() -> None:
    segments = [segment(8 * MIB, [block(MIB, MIB)])]
    bare = memory([entry("alloc", 0, 512)], segments)
    assert set(labels(bare)) == {"recorded without stacks"}
    assert set(bare.category_of) == {Category.UNKNOWN}
    with_stacks = memory([entry("alloc", 0, 512, stack=FORWARD_STACK)], segments)
    assert labels(with_stacks)[1] == "allocated before the recording"


def test_same_labels_are_told_apart_by_their_callers() -> None:
    other = ("/home/ada/train.py", 31, "train_step")
    entries = [
        entry("alloc", 0, 512, stack=[LINEAR, FORWARD, LOOP, MODULE]),
        entry("alloc", 512, 512, stack=[LINEAR, FORWARD, other, MODULE]),
    ]
    assert labels(memory(entries)) == [
        "model.py:20 forward › forward ← train.py:30",
        "model.py:20 forward › forward ← train.py:31",
    ]


def test_lines_of_pytorch_in_between_do_not_split_a_source() -> None:
    made = recorded("fixed__default")
    state = [s.label for s in made.sources if s.category == Category.OPTIMIZER]
    assert len(state) == 1
    assert state[0].endswith("› _init_group")
