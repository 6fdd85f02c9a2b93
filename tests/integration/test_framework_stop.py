"""``stop`` ends jobs of real frameworks that know nothing of us by their own flags."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.job_process import Api, finish, foreign_lines, start, watched_command
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.torch, pytest.mark.timeout(240)]
pytest.importorskip("torch")

TRANSFORMERS = """
import tempfile, time, warnings
import torch
from torch import nn
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from transformers import Trainer, TrainingArguments

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, inputs, labels):
        time.sleep(0.01)
        logits = self.linear(inputs)
        return {"loss": nn.functional.mse_loss(logits, labels), "logits": logits}

data = [{"inputs": each, "labels": each} for each in torch.randn(64, 8)]
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model=Model(),
        args=TrainingArguments(
            output_dir=folder, use_cpu=True, report_to=[], disable_tqdm=True,
            dataloader_pin_memory=False, save_strategy="no", logging_strategy="no",
            max_steps=100_000, gradient_accumulation_steps=2,
        ),
        train_dataset=data,
    )
    trainer.train()
    print("came back at", trainer.state.global_step)
"""

LIGHTNING = """
import logging, tempfile, time, warnings
import torch
from torch import nn
warnings.simplefilter("ignore")
import lightning.pytorch as lightning
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def training_step(self, batch, batch_idx):
        time.sleep(0.01)
        return self.linear(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 1e-3)

with tempfile.TemporaryDirectory() as folder:
    trainer = lightning.Trainer(
        accelerator="cpu", default_root_dir=folder, logger=False, enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False, max_steps=100_000,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(torch.randn(64, 8), batch_size=4))
    print("came back at", trainer.global_step)
"""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with ServerProcess(tmp_path_factory.mktemp("server")) as server:
        yield Api(server.url, server.token)


@pytest.mark.parametrize(
    ("package", "source"), [("transformers", TRANSFORMERS), ("lightning", LIGHTNING)]
)
def test_the_call_of_the_job_comes_back_and_nothing_is_raised(
    api: Api, tmp_path: Path, package: str, source: str
) -> None:
    pytest.importorskip(package)
    script = tmp_path / "train.py"
    script.write_text(source)
    job = start(watched_command(script, url=api.url, token=api.token, run=package))
    try:
        api.wait_for_run(package, lambda told: (told["step"] or 0) > 5, "training", timeout_s=120)
        command = api.command(package, "stop")
        code, output, errors = finish(job)
    finally:
        job.kill()
    (receipt,) = command["receipts"].values()
    assert command["state"] == "done", receipt
    assert "was told to end training" in receipt["message"]
    assert "its own flag" in receipt["message"]
    assert (code, foreign_lines(errors)) == (0, [])
    words, _, steps = output.splitlines()[-1].rpartition(" ")
    assert words == "came back at"
    assert 5 < int(steps) <= receipt["step"]  # none came after the one that the receipt names
