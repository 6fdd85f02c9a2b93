"""What memory is for, told by the stack that allocated it: heuristics, and unknown where they end.

- A frame of ``_init_group`` in ``torch/optim``: optimizer state. Anything else of an optimizer:
  other; it is gone when the step is done.
- A module that is moved, converted or built (``to``, ``convert``, ``_apply``, ``reset_parameters``,
  a constructor of ``torch/nn/modules``): parameters; buffers cannot be told from them.
- Below a ``forward``, in ``torch/nn/functional.py``, or in ``torch/nn/modules``: activations.
- Any other Python stack: other.
- No Python frame although the recording has stacks: the backward pass, which runs on threads of
  its own. What of it is still live when the optimizer's next step begins is a gradient. Does its
  entry name the forward line that it belongs to (``user_metadata``), it goes by that line.
- Allocated before the first entry without a stack, or a recording without any: unknown.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from vramscope_analysis.moments.frame_kinds import FrameKind
from vramscope_analysis.moments.stack_names import StackNames


class Category(IntEnum):
    """What a block is for."""

    PARAMETERS = 0
    GRADIENTS = 1
    OPTIMIZER = 2
    ACTIVATIONS = 3
    BACKWARD = 4
    OTHER = 5
    UNKNOWN = 6

    @property
    def word(self) -> str:
        """As it is written outside: ``"activations"``."""
        return self.name.lower()


NO_STACK_NAMES: Final = {
    Category.GRADIENTS: "gradients, no Python stack",
    Category.BACKWARD: "backward, no Python stack",
    Category.UNKNOWN: "allocated before the recording",
}
"""What blocks without a Python stack are called."""

_MADE: Final = {"to", "convert", "_apply", "cuda", "reset_parameters", "half", "bfloat16", "float"}
_NN: Final = ("torch/nn/modules/", "torch/nn/parameter.py")


def category_of(names: StackNames, stack: int) -> Category:
    """What memory that a Python stack allocated is for."""
    frames = names.folded(stack, fold=False)
    is_forward = False
    is_optimizer = False
    for index in reversed(frames):
        frame = names.frame(index)
        path = frame.filename.replace("\\", "/")
        if "torch/optim/" in path:
            if frame.name == "_init_group":
                return Category.OPTIMIZER
            is_optimizer = True
        is_nn = any(part in path for part in _NN)
        if is_nn and (frame.name in _MADE or frame.name == "__init__") and not is_forward:
            return Category.PARAMETERS
        if names.kinds[index] != FrameKind.WRAPPER and (
            frame.name == "forward" or is_nn or path.endswith("torch/nn/functional.py")
        ):
            is_forward = True
    if is_optimizer:
        return Category.OTHER
    return Category.ACTIVATIONS if is_forward else Category.OTHER
