"""A job of MosaicML Composer that says what its steps and phases are, with a callback of 20 lines.

    pip install mosaicml
    python examples/train_composer.py

Nothing of this is needed to be watched: `vramscope run` counts the steps of any Composer job. The
callback adds epoch, loss, batch size, and the phase eval from its beginning to its end. Without a
GPU, start it with VRAMSCOPE_EMULATE=1.
"""

from __future__ import annotations

import sys

import torch
from composer import Callback, ComposerModel, Logger, State, Trainer
from torch import nn

import vramscope


class VramscopeCallback(Callback):
    """Tells vramscope what the trainer knows."""

    def __init__(self) -> None:
        self.eval_phase = vramscope.phase("eval")

    def init(self, state: State, logger: Logger) -> None:
        """The trainer is being made, and its ranks are known."""
        vramscope.attach(run="composer")

    def batch_start(self, state: State, logger: Logger) -> None:
        """A step begins."""
        batch_size = state.batch_get_item(0).shape[0]
        vramscope.log(epoch=state.timestamp.epoch.value, batch_size=batch_size)

    def batch_end(self, state: State, logger: Logger) -> None:
        """A step is over."""
        vramscope.log(loss=float(state.total_loss_dict["loss/train/total"]))

    def eval_start(self, state: State, logger: Logger) -> None:
        """Evaluation begins."""
        self.eval_phase.begin()

    def eval_end(self, state: State, logger: Logger) -> None:
        """Evaluation is over."""
        self.eval_phase.end()


class Sine(ComposerModel):
    """A small network."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(1, 512), nn.Tanh(), nn.Linear(512, 1))

    def forward(self, batch: list[torch.Tensor]) -> torch.Tensor:
        """Outputs for a batch of inputs and targets."""
        return self.network(batch[0])

    def loss(self, outputs: torch.Tensor, batch: list[torch.Tensor]) -> torch.Tensor:
        """Error of the outputs."""
        return nn.functional.mse_loss(outputs, batch[1])


def loader(samples: int) -> torch.utils.data.DataLoader:
    """Points of a sine."""
    inputs = torch.rand(samples, 1) * 6
    data = torch.utils.data.TensorDataset(inputs, inputs.sin())
    return torch.utils.data.DataLoader(data, batch_size=256)


def main(epochs: int) -> None:
    """Fit a small network, and evaluate it after each epoch."""
    model = Sine()
    trainer = Trainer(
        model=model,
        optimizers=torch.optim.Adam(model.parameters(), lr=1e-3),
        train_dataloader=loader(8192),
        eval_dataloader=loader(2048),
        max_duration=f"{epochs}ep",
        eval_interval="1ep",
        callbacks=[VramscopeCallback()],
    )
    trainer.fit()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
