"""A job of PyTorch Ignite that says what its steps and phases are, with three handlers.

    pip install pytorch-ignite
    python examples/train_ignite.py

Nothing of this is needed to be watched: `vramscope run` counts the steps of any Ignite job. The
handlers add epoch, loss, batch size, and the phase eval from its beginning to its end. Without a
GPU, start it with VRAMSCOPE_EMULATE=1.
"""

from __future__ import annotations

import sys

import torch
from ignite.engine import Engine, Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import MeanSquaredError
from torch import nn

import vramscope


def loader(samples: int) -> torch.utils.data.DataLoader:
    """Points of a sine."""
    inputs = torch.rand(samples, 1) * 6
    data = torch.utils.data.TensorDataset(inputs, inputs.sin())
    return torch.utils.data.DataLoader(data, batch_size=256)


def main(epochs: int) -> None:
    """Fit a small network, and evaluate it after each epoch."""
    vramscope.attach(run="ignite")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(1, 512), nn.Tanh(), nn.Linear(512, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    trainer = create_supervised_trainer(model, optimizer, nn.functional.mse_loss, device=device)
    evaluator = create_supervised_evaluator(model, {"mse": MeanSquaredError()}, device=device)
    eval_loader = loader(2048)

    @trainer.on(Events.ITERATION_STARTED)
    def tell_step(engine: Engine) -> None:
        vramscope.log(epoch=engine.state.epoch, batch_size=len(engine.state.batch[0]))

    @trainer.on(Events.ITERATION_COMPLETED)
    def tell_loss(engine: Engine) -> None:
        vramscope.log(loss=engine.state.output)

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate(engine: Engine) -> None:
        with vramscope.phase("eval"):
            evaluator.run(eval_loader)
        print(f"epoch {engine.state.epoch}  mse {evaluator.state.metrics['mse']:.5f}", flush=True)

    trainer.run(loader(8192), max_epochs=epochs)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
