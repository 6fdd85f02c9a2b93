"""A callback for the Trainer of Hugging Face transformers.

    from vramscope.integrations.transformers import VramscopeCallback

    trainer = Trainer(..., callbacks=[VramscopeCallback()])

Tells epoch, batch size, loss, gradient norm and learning rate, and the phases eval and checkpoint
from their beginning on. Optimizer steps are counted by the optimizer's own hook; the Trainer's
count only where that hook sees none.
"""

from __future__ import annotations

from typing import Any, Final

from transformers import TrainerCallback

import vramscope
from vramscope import current
from vramscope.guard import guarded
from vramscope.integrations.told_phase import ToldPhase

_LOGGED: Final = ("loss", "grad_norm", "learning_rate", "eval_loss")
_WHERE: Final = "transformers callback"


class VramscopeCallback(TrainerCallback):  # type: ignore[misc]  # transformers is untyped here
    """Attaches when training or evaluation begins, if nobody has, and tells what the Trainer knows.

    Args:
        options: of :func:`vramscope.attach`, for the case that this attaches.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._phase = ToldPhase()

    @guarded(_WHERE)
    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Attach, if nobody has."""
        vramscope.attach(**self._options).framework_begins("The Trainer of transformers")

    @guarded(_WHERE)
    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """What was between two epochs is over."""
        self._phase.leave()

    @guarded(_WHERE)
    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Tell what belongs to the step that begins."""
        self._phase.leave()
        # The state's is the one that the Trainer found by itself, if it was asked to.
        per_rank = getattr(state, "train_batch_size", None) or args.train_batch_size
        batch_size = per_rank * args.gradient_accumulation_steps
        vramscope.log(epoch=state.epoch or 0.0, batch_size=batch_size)

    @guarded(_WHERE)
    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A step of the optimizer is over."""
        session = current.session()
        if session is not None:
            session.framework_step()
            if session.is_stop_wanted:
                control.should_training_stop = True
        self._enter_what_comes(control)

    @guarded(_WHERE)
    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An epoch is over."""
        self._enter_what_comes(control)

    @guarded(_WHERE)
    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A batch was evaluated, maybe without any training."""
        vramscope.attach(**self._options)
        self._phase.enter("eval")

    @guarded(_WHERE)
    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Evaluation is over."""
        self._phase.leave()
        if control.should_save:
            self._phase.enter("checkpoint")

    @guarded(_WHERE)
    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any, **_: Any) -> None:
        """Prediction is over."""
        self._phase.leave()

    @guarded(_WHERE)
    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The checkpoint is written."""
        self._phase.leave()

    @guarded(_WHERE)
    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """The Trainer logs numbers, and has waited for them itself."""
        vramscope.log(**{name: logs[name] for name in _LOGGED if name in (logs or {})})

    @guarded(_WHERE)
    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Training is over."""
        self._phase.leave()
        session = current.session()
        if session is not None:
            session.framework_ends()

    def _enter_what_comes(self, control: Any) -> None:
        """The Trainer has decided what to do next, and does it when its callbacks return."""
        if control.should_evaluate:
            self._phase.enter("eval")
        elif control.should_save:
            self._phase.enter("checkpoint")
