"""A callback for the Trainer of Lightning, as ``lightning`` or as ``pytorch_lightning``.

    from vramscope.integrations.lightning import VramscopeCallback

    trainer = Trainer(..., callbacks=[VramscopeCallback()])

Tells epoch, batch size, loss, and the phase eval of validation, test and prediction. Optimizer
steps are counted by the optimizer's own hook; the Trainer's count only where that hook sees none.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final

import vramscope
from vramscope import current
from vramscope.guard import guarded
from vramscope.integrations.batch_shape import sample_count
from vramscope.integrations.told_phase import ToldPhase

_WHERE: Final = "lightning callback"


def _callback_class() -> Any:
    """Lightning's base class. Each of its two packages has one of its own: that of the job."""
    names = ["lightning.pytorch", "pytorch_lightning"]
    names.sort(key=lambda name: name not in sys.modules)
    try:
        return importlib.import_module(f"{names[0]}.callbacks").Callback
    except ModuleNotFoundError:
        return importlib.import_module(f"{names[1]}.callbacks").Callback


_Callback: Any = _callback_class()


class VramscopeCallback(_Callback):  # type: ignore[misc]  # Lightning is untyped here
    """Attaches when the Trainer sets up, if nobody has, and tells what the Trainer knows.

    Args:
        options: of :func:`vramscope.attach`, for the case that this attaches.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]  # Lightning is untyped here
        self._options = options
        self._phase = ToldPhase()
        self._steps = 0
        self._samples = 0

    @guarded(_WHERE)
    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Attach, if nobody has. Each rank is a process of its own by now."""
        session = vramscope.attach(**self._options)
        self._steps = trainer.global_step
        if stage == "fit":
            session.framework_begins("The Trainer of Lightning")

    @guarded(_WHERE)
    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        """Tell what belongs to the step that this batch is part of."""
        vramscope.log(epoch=trainer.current_epoch)
        count = sample_count(batch)
        if count is not None:
            self._samples += count
            vramscope.log(batch_size=self._samples)

    @guarded(_WHERE)
    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """A batch is done, and a step too unless gradients are accumulated."""
        has_stepped = trainer.global_step != self._steps
        self._steps = trainer.global_step
        self._log_loss(trainer, pl_module, outputs)
        session = current.session()
        if has_stepped:
            self._samples = 0
            if session is not None:
                session.framework_step()
        if session is not None and session.is_stop_wanted:
            trainer.should_stop = True

    @guarded(_WHERE)
    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Validation, sanity checks included, is evaluation."""
        self._phase.enter("eval")

    @guarded(_WHERE)
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Validation is over."""
        self._phase.leave()

    @guarded(_WHERE)
    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        """A test is evaluation."""
        self._phase.enter("eval")

    @guarded(_WHERE)
    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        """The test is over."""
        self._phase.leave()

    @guarded(_WHERE)
    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        """So is prediction."""
        self._phase.enter("eval")

    @guarded(_WHERE)
    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        """Prediction is over."""
        self._phase.leave()

    @guarded(_WHERE)
    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Whatever the Trainer did is over, also when it failed."""
        self._phase.leave()
        session = current.session()
        if session is not None:
            session.framework_ends()

    @guarded(_WHERE)
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """The Trainer gives up."""
        self._phase.leave()

    def _log_loss(self, trainer: Any, pl_module: Any, outputs: Any) -> None:
        get = getattr(outputs, "get", None)
        loss: Any = outputs if get is None else get("loss")
        if loss is None or getattr(loss, "numel", lambda: 1)() != 1:
            return
        if getattr(getattr(loss, "device", None), "type", "cpu") != "cpu":
            # Reading it waits for the device: only where Lightning's own logging does so too.
            interval = trainer.log_every_n_steps
            if not interval or trainer.global_step % interval:
                return
            loss = loss.item()
        # Lightning has divided it, to add up the gradients of accumulated batches.
        is_part = getattr(pl_module, "automatic_optimization", False)
        vramscope.log(loss=loss * trainer.accumulate_grad_batches if is_part else loss)
