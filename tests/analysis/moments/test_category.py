"""What memory is for, as far as stacks tell."""

from __future__ import annotations

import pytest

from tests.support.made_moments import (
    CALL,
    FORWARD,
    FORWARD_STACK,
    LOOP,
    LOOP_STACK,
    MODULE,
    OPTIMIZER_STACK,
    STEP,
    TORCH,
    Frame,
    entry,
    snapshot,
)
from vramscope_analysis.moments.category import Category, category_of
from vramscope_analysis.moments.stack_names import StackNames

ENGINE = (TORCH + "autograd/graph.py", 824, "_engine_run_backward")
BACKWARD = (TORCH + "_tensor.py", 647, "backward")
CONVERT = (TORCH + "nn/modules/module.py", 1370, "convert")
BUILD = (TORCH + "nn/modules/linear.py", 106, "__init__")
CROSS_ENTROPY = (TORCH + "nn/functional.py", 3504, "cross_entropy")
CHECKPOINT = (TORCH + "utils/checkpoint.py", 1500, "unpack_hook")


@pytest.mark.parametrize(
    ("stack", "category"),
    [
        (FORWARD_STACK, Category.ACTIVATIONS),
        ([CROSS_ENTROPY, LOOP, MODULE], Category.ACTIVATIONS),
        ([FORWARD, CALL, LOOP], Category.ACTIVATIONS),
        (OPTIMIZER_STACK, Category.OPTIMIZER),
        ([(TORCH + "optim/adam.py", 791, "_multi_tensor_adam"), STEP, LOOP], Category.OTHER),
        ([CONVERT, LOOP, MODULE], Category.PARAMETERS),
        ([BUILD, LOOP, MODULE], Category.PARAMETERS),
        ([ENGINE, BACKWARD, LOOP, MODULE], Category.BACKWARD),
        ([FORWARD, CALL, CHECKPOINT, ENGINE, BACKWARD, LOOP], Category.ACTIVATIONS),
        (LOOP_STACK, Category.OTHER),
    ],
)
def test_categories(stack: list[Frame], category: Category) -> None:
    names = StackNames(snapshot([entry("alloc", 0, 512, stack=stack)]))
    assert category_of(names, 0) == category
