"""What memory is for, told by the stack that allocated it: heuristics, and unknown where they end.

- A frame of ``_init_group`` in ``torch/optim``: optimizer state. Anything else of an optimizer:
  other; it is gone when the step is done.
- A module that is moved, converted or built (``to``, ``convert``, ``_apply``, ``reset_parameters``,
  a constructor of ``torch/nn/modules``): parameters; buffers cannot be told from them.
- Below a ``forward``, in ``torch/nn/functional.py``, or in ``torch/nn/modules``: activations.
- Below PyTorch's own ``backward``: the backward pass, unless a ``forward`` runs within it, which
  recomputes activations (checkpointing).
- Any other Python stack: other.
- No Python frame although the recording has stacks: the backward pass, which runs on threads of
  its own for a GPU. Does its entry name the forward line that it belongs to (``user_metadata``),
  it goes by that line.
- What the backward pass made and is still live when the optimizer's next step begins (or, where
  its scopes are not recorded, when the step ends): gradients.
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
_BACKWARD: Final = (
    "torch/_tensor.py",
    "torch/autograd/__init__.py",
    "torch/autograd/graph.py",
)
_BACKWARD_NAMES: Final = {"backward", "_engine_run_backward", "grad"}
_NN: Final = ("torch/nn/modules/", "torch/nn/parameter.py")


def category_of(names: StackNames, stack: int) -> Category:
    """What memory that a Python stack allocated is for."""
    is_forward = is_optimizer = False
    # Innermost first: a forward that was seen runs within what comes later.
    for index in reversed(names.folded(stack, fold=False)):
        frame = names.frame(index)
        path = frame.filename.replace("\\", "/")
        if "torch/optim/" in path:
            if frame.name == "_init_group":
                return Category.OPTIMIZER
            is_optimizer = True
        if frame.name in _BACKWARD_NAMES and path.endswith(_BACKWARD) and not is_forward:
            return Category.BACKWARD
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
