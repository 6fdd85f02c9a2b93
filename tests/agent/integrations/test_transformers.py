"""The callback in the real Trainer tells steps, phases and numbers as they are."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.told_session import ToldSession
from vramscope import current

pytestmark = [
    pytest.mark.torch,
    # Of its own making: the Trainer and what it imports.
    pytest.mark.filterwarnings("ignore"),
]
torch: Any = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    transformers: Any = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

SAMPLES = 24


def a_model() -> Any:
    class Model(torch.nn.Module):  # type: ignore[misc]  # torch is untyped here
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(2, 1)

        def forward(self, inputs: Any, labels: Any = None) -> Any:
            logits = self.linear(inputs)
            return {"loss": torch.nn.functional.mse_loss(logits, labels), "logits": logits}

    return Model()


def samples() -> list[dict[str, Any]]:
    return [{"inputs": torch.ones(2), "labels": torch.ones(1)} for _ in range(SAMPLES)]


MakeTrainer = Callable[..., Any]


@pytest.fixture
def make_trainer(tmp_path: Path) -> MakeTrainer:
    def make(**options: Any) -> Any:
        from vramscope.integrations.transformers import VramscopeCallback

        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path),
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
            per_device_train_batch_size=2,
            per_device_eval_batch_size=8,
            **{"save_strategy": "no", "max_steps": 4, "logging_steps": 2, **options},
        )
        return transformers.Trainer(
            model=a_model(),
            args=arguments,
            train_dataset=samples(),
            eval_dataset=samples(),
            callbacks=[VramscopeCallback(run="unit", url="http://127.0.0.1:9")],
        )

    return make


def test_every_step_evaluation_and_checkpoint_is_told_in_order(
    make_trainer: MakeTrainer, session: ToldSession
) -> None:
    make_trainer(eval_strategy="steps", eval_steps=2, save_strategy="steps", save_steps=2).train()
    assert session.outline() == [
        *("2 steps", "begin eval", "end eval", "begin checkpoint", "end checkpoint"),
        *("2 steps", "begin eval", "end eval", "begin checkpoint", "end checkpoint"),
    ]


def test_a_stop_ends_training_after_the_step_as_the_trainer_does(
    make_trainer: MakeTrainer, session: ToldSession
) -> None:
    class Person(transformers.TrainerCallback):  # type: ignore[misc]  # untyped here
        def on_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            trained.append(list(session.frameworks))
            session.is_stop_wanted = state.global_step == 1

    trained: list[list[str]] = []
    trainer = make_trainer(max_steps=20)
    trainer.add_callback(Person())
    trainer.train()
    assert trainer.state.global_step == 2
    assert trained == [["The Trainer of transformers"]] * 2
    assert session.frameworks == []


def test_evaluation_is_told_before_its_first_batch(
    make_trainer: MakeTrainer, session: ToldSession
) -> None:
    class Watcher(transformers.TrainerCallback):  # type: ignore[misc]  # untyped here
        def on_prediction_step(self, *_: Any, **__: Any) -> None:
            seen.append(session.calls[-1])

    seen: list[Any] = []
    trainer = make_trainer(eval_strategy="epoch", num_train_epochs=1, max_steps=-1)
    trainer.callback_handler.callbacks.insert(0, Watcher())
    trainer.train()
    assert seen == ["begin eval"] * 3
    assert session.outline() == ["12 steps", "begin eval", "end eval"]


def test_accumulated_batches_are_one_step_of_their_size_together(
    make_trainer: MakeTrainer, session: ToldSession
) -> None:
    make_trainer(gradient_accumulation_steps=3).train()
    assert session.outline() == ["4 steps"]
    assert session.logged("batch_size") == [6] * 4
    assert session.logged("epoch") == [0, 0.25, 0.5, 0.75]


def test_numbers_come_as_the_trainer_logs_them(
    make_trainer: MakeTrainer, session: ToldSession
) -> None:
    trainer = make_trainer(eval_strategy="steps", eval_steps=4)
    trainer.train()
    history = trainer.state.log_history
    for name in ("loss", "grad_norm", "learning_rate", "eval_loss"):
        logged = session.logged(name)
        assert logged == [entry[name] for entry in history if name in entry]
        assert logged
        assert all(isinstance(value, float) and math.isfinite(value) for value in logged)
    assert not session.logged("eval_runtime")


def test_evaluation_alone_is_a_phase_and_prediction_too(
    make_trainer: MakeTrainer, session: ToldSession
) -> None:
    trainer = make_trainer()
    trainer.evaluate()
    trainer.predict(samples())
    assert session.outline() == ["begin eval", "end eval"] * 2


def test_it_attaches_with_its_options_when_nobody_has(
    make_trainer: MakeTrainer, session: ToldSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    import vramscope.session

    opened: list[dict[str, Any]] = []

    def open_session(**options: Any) -> ToldSession:
        opened.append({name: value for name, value in options.items() if value is not None})
        return session

    monkeypatch.setattr(vramscope.session, "open_session", open_session)
    monkeypatch.setattr(current, "_session", None)
    make_trainer().train()
    assert opened == [{"run": "unit", "url": "http://127.0.0.1:9"}]
    assert session.outline() == ["4 steps"]


@pytest.mark.expects_guarded_errors
def test_an_error_of_ours_does_not_reach_the_trainer(
    make_trainer: MakeTrainer, session: ToldSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("ours")

    for name in ("log", "framework_step", "begin_phase"):
        monkeypatch.setattr(session, name, fail)
    trainer = make_trainer(eval_strategy="steps", eval_steps=2)
    trainer.train()
    assert trainer.state.global_step == 4
