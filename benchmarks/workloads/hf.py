"""A run of the Hugging Face Trainer: a small GPT-2, batches padded to their longest text.

Gradient accumulation, bfloat16, an evaluation in the middle, and the Trainer's own emptying of
the cache. Needs transformers and accelerate.
"""

from __future__ import annotations

import random
import tempfile
from importlib import import_module
from typing import Any

import torch

from benchmarks.trace_recorder import TraceRecorder

transformers: Any = import_module("transformers")

STEPS = 8
VOCABULARY = 2000


def run(recorder: TraceRecorder) -> None:
    """Train, one row an optimizer step."""
    transformers.set_seed(0)
    transformers.logging.set_verbosity_error()
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=512, n_embd=192, n_layer=2, n_head=4
    )
    with tempfile.TemporaryDirectory() as folder:
        trainer = transformers.Trainer(
            model=transformers.GPT2LMHeadModel(config),
            args=_arguments(folder, recorder),
            train_dataset=_texts(128, seed=1),
            eval_dataset=_texts(24, seed=2),
            data_collator=_collate,
            callbacks=[_rows(recorder)],
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()


def _arguments(folder: str, recorder: TraceRecorder) -> Any:
    return transformers.TrainingArguments(
        output_dir=folder,
        max_steps=STEPS,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=12,
        gradient_accumulation_steps=2,
        bf16=True,
        eval_strategy="steps",
        eval_steps=3,
        logging_steps=2,
        torch_empty_cache_steps=5,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=not recorder.records,
    )


def _texts(count: int, *, seed: int) -> list[dict[str, list[int]]]:
    rng = random.Random(seed)
    return [
        {"input_ids": [rng.randrange(VOCABULARY) for _ in range(rng.randrange(32, 400))]}
        for _ in range(count)
    ]


def _collate(texts: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
    """Tokens and labels (batch, longest), padded with 0 that no loss counts."""
    longest = max(len(text["input_ids"]) for text in texts)
    tokens = torch.zeros(len(texts), longest, dtype=torch.long)
    labels = torch.full((len(texts), longest), -100)
    for row, text in enumerate(texts):
        length = len(text["input_ids"])
        tokens[row, :length] = labels[row, :length] = torch.tensor(text["input_ids"])
    return {"input_ids": tokens, "labels": labels}


def _rows(recorder: TraceRecorder) -> Any:
    class Rows(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_args: Any, **_kwargs: Any) -> None:
            recorder.end_step()

    return Rows()
