"""The callback in the real Trainer tells steps, phases and numbers as they are."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.told_session import ToldSession

pytestmark = [
    pytest.mark.torch,
    # Of its own making: the Trainer and what it imports.
    pytest.mark.filterwarnings("ignore"),
]
torch: Any = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    lightning: Any = pytest.importorskip("lightning.pytorch")

Fit = Callable[..., Any]


def loader(samples: int) -> Any:
    return torch.utils.data.DataLoader(torch.ones(samples, 2), batch_size=2)


def a_module(optimizers: int = 1) -> Any:
    class Module(lightning.LightningModule):  # type: ignore[misc]  # untyped here
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(2, 1)
            self.automatic_optimization = optimizers == 1

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = self.linear(batch).square().mean()
            if not self.automatic_optimization:
                for optimizer in self.optimizers():
                    optimizer.zero_grad()
                    self.manual_backward(self.linear(batch).square().mean())
                    optimizer.step()
            return {"loss": loss, "other": "text"}

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.linear(batch)

        test_step = validation_step

        def configure_optimizers(self) -> Any:
            return [torch.optim.SGD(self.parameters(), lr=0.1) for _ in range(optimizers)]

    return Module()


def test_a_stop_ends_training_after_the_step_as_the_trainer_does(
    make_trainer: Callable[..., Any], session: ToldSession
) -> None:
    class Person(lightning.Callback):  # type: ignore[misc]  # untyped here
        def on_before_zero_grad(self, trainer: Any, *_: Any) -> None:
            trained.append(list(session.frameworks))
            session.is_stop_wanted = trainer.global_step == 1

    trained: list[list[str]] = []
    trainer = make_trainer(max_epochs=3)
    trainer.callbacks.append(Person())
    trainer.fit(a_module(), loader(20))
    assert 0 < trainer.global_step < 5
    assert trained[0] == ["The Trainer of Lightning"]
    assert session.frameworks == []


@pytest.fixture
def make_trainer(tmp_path: Path) -> Callable[..., Any]:
    def make(**options: Any) -> Any:
        from vramscope.integrations.lightning import VramscopeCallback

        return lightning.Trainer(
            accelerator="cpu",
            default_root_dir=str(tmp_path),
            callbacks=[VramscopeCallback(run="unit")],
            **{
                "logger": False,
                "enable_progress_bar": False,
                "enable_model_summary": False,
                "enable_checkpointing": False,
                "num_sanity_val_steps": 0,
                "max_epochs": 1,
                **options,
            },
        )

    return make


def test_steps_epochs_and_validation_are_told_in_order(
    make_trainer: Fit, session: ToldSession
) -> None:
    make_trainer(max_epochs=2).fit(a_module(), loader(8), loader(4))
    assert session.outline() == ["4 steps", "begin eval", "end eval"] * 2
    assert session.logged("epoch") == [0] * 4 + [1] * 4
    assert session.logged("batch_size") == [2] * 8


def test_a_sanity_check_is_evaluation(make_trainer: Fit, session: ToldSession) -> None:
    make_trainer(num_sanity_val_steps=1).fit(a_module(), loader(4), loader(4))
    assert session.outline() == ["begin eval", "end eval", "2 steps", "begin eval", "end eval"]


def test_accumulated_batches_are_one_step_of_their_size_together(
    make_trainer: Fit, session: ToldSession
) -> None:
    make_trainer(accumulate_grad_batches=2).fit(a_module(), loader(8))
    assert session.outline() == ["2 steps"]
    assert session.logged("batch_size") == [2, 4, 2, 4]


def test_two_optimizers_of_one_batch_are_one_step(make_trainer: Fit, session: ToldSession) -> None:
    trainer = make_trainer()
    trainer.fit(a_module(optimizers=2), loader(8))
    assert trainer.global_step == 8
    assert session.outline() == ["4 steps"]


@pytest.mark.parametrize("accumulated", [1, 2])
def test_the_loss_is_the_modules_own(
    make_trainer: Fit, session: ToldSession, accumulated: int
) -> None:
    module = a_module()
    losses: list[float] = []
    original = module.training_step

    def training_step(batch: Any, batch_idx: int) -> Any:
        outputs = original(batch, batch_idx)
        losses.append(outputs["loss"].item())
        return outputs

    module.training_step = training_step
    make_trainer(accumulate_grad_batches=accumulated).fit(module, loader(8))
    assert [float(loss) for loss in session.logged("loss")] == losses
    assert len(losses) == 4


@pytest.mark.parametrize(("interval", "reads"), [(5, 2), (1, 10), (0, 0)])
def test_a_loss_on_a_device_is_only_read_where_lightning_logs(
    session: ToldSession, interval: int, reads: int
) -> None:
    """Reading it waits for the device."""
    from vramscope.integrations.lightning import VramscopeCallback

    class DeviceLoss:
        device = torch.device("cuda")
        reads = 0

        def numel(self) -> int:
            return 1

        def item(self) -> float:
            self.reads += 1
            return 0.5

    callback, loss = VramscopeCallback(), DeviceLoss()
    for step in range(1, 11):
        trainer = SimpleNamespace(global_step=step, log_every_n_steps=interval)
        callback.on_train_batch_end(trainer, None, {"loss": loss}, None, step)
    assert loss.reads == reads
    assert session.logged("loss") == [0.5] * reads


def test_tests_are_evaluation(make_trainer: Fit, session: ToldSession) -> None:
    make_trainer().test(a_module(), loader(4))
    assert session.outline() == ["begin eval", "end eval"]


def test_a_validation_that_fails_ends_its_phase_and_fails_as_before(
    make_trainer: Fit, session: ToldSession
) -> None:
    module = a_module()

    def validation_step(batch: Any, batch_idx: int) -> None:
        raise LookupError("of the job")

    module.validation_step = validation_step
    with pytest.raises(LookupError, match="of the job"):
        make_trainer().fit(module, loader(8), loader(4))
    assert session.outline() == ["4 steps", "begin eval", "end eval"]


def test_the_base_class_is_that_of_the_package_that_the_job_uses() -> None:
    code = (
        "import {package}\n"
        "from {package}.callbacks import Callback\n"
        "from vramscope.integrations.lightning import VramscopeCallback\n"
        "assert issubclass(VramscopeCallback, Callback)\n"
    )
    subprocess.run(
        [sys.executable, "-c", code.format(package="pytorch_lightning")], check=True, timeout=100
    )
    from vramscope.integrations.lightning import VramscopeCallback

    assert issubclass(VramscopeCallback, lightning.Callback)
