"""A tiny job of Lightning: two epochs of 6 steps of two batches, with validation and saving."""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
import warnings
from typing import Any

import torch
from torch import nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import lightning.pytorch as lightning

losses: list[float] = []


class Module(lightning.LightningModule):  # type: ignore[misc]  # untyped here
    """Doubles its input, as it learns."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def _loss(self, batch: Any) -> Any:
        return nn.functional.mse_loss(self.linear(batch), batch * 2)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """Loss of one batch."""
        loss = self._loss(batch)
        losses.append(loss.item())
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Loss of one batch, for nobody."""
        time.sleep(0.01)  # a validation that is long enough to be told
        self._loss(batch)

    def configure_optimizers(self) -> Any:
        """One optimizer."""
        return torch.optim.AdamW(self.parameters())


def loader(samples: int) -> Any:
    return torch.utils.data.DataLoader(torch.randn(samples, 8), batch_size=4)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--callback", action="store_true")
    callbacks: list[Any] = []
    if parser.parse_args().callback:
        from vramscope.integrations.lightning import VramscopeCallback

        callbacks.append(VramscopeCallback())
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu",
            default_root_dir=folder,
            callbacks=callbacks,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            max_epochs=2,
            accumulate_grad_batches=2,
        )
        trainer.fit(Module(), loader(48), loader(80))
    for loss in losses:
        print("loss", loss.hex())


if __name__ == "__main__":
    main()
