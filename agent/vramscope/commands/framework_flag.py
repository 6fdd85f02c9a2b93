"""The flag by which a framework ends training by itself, found on the stack of the step's end.

For who trains without our callback, which would see the command at the same step.
"""

from __future__ import annotations

from typing import Any, Final

from vramscope.batching.running_frames import variables
from vramscope.guard import Attempt

_HF: Final = ("transformers.trainer", ("_inner_training_loop", "train"))
_LIGHTNING: Final = ("lightning.pytorch.trainer.trainer", "pytorch_lightning.trainer.trainer")
_FIT: Final = ("_run_stage", "_fit_impl")


def raise_flag() -> str:
    """Tell the framework that trains on this thread to end; its name, empty if there is none."""
    # Whatever it is of, and in whichever version: without a flag there is another way.
    with Attempt():
        trainer = _running(*_HF)
        if trainer is not None and hasattr(trainer.control, "should_training_stop"):
            trainer.control.should_training_stop = True
            return "The Trainer of transformers"
        for module in _LIGHTNING:
            trainer = _running(module, _FIT)
            if trainer is not None and hasattr(trainer, "should_stop"):
                trainer.should_stop = True
                return "The Trainer of Lightning"
    return ""


def _running(module: str, functions: tuple[str, ...]) -> Any:
    """The object whose method is running, of the innermost of these functions."""
    found = variables(module, functions)
    return None if found is None else found.get("self")
