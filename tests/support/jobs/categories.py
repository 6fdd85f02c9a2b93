"""Trains a small transformer in one of several ways, and counts its tensors itself at each step.

    categories.py KIND PATH [--device=cuda] [--steps=8] [--pause-s=0.1]

KIND: plain, amp, checkpointing, tied, frozen, gan, ema; late, which attaches the agent itself when
it has trained for a while; and under torchrun ddp, fsdp (fully_shard) and fsdp1
(FullyShardedDataParallel). Each rank writes a line of JSON a step to PATH.RANK.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import os
import time
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import vramscope
from tests.support.tensor_counts import counted

VOCABULARY, LENGTH = 4000, 64


def transformer(*, tied: bool = False) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_layer=3,
        n_embd=192,
        n_head=4,
        vocab_size=VOCABULARY,
        n_positions=LENGTH,
        tie_word_embeddings=tied,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    return GPT2LMHeadModel(config)


def checkpointed(model: Any) -> None:
    name = "activation_checkpointing_enable"  # the newer name of the same
    enable = getattr(model, name, None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})


def sharded(kind: str, model: Any, device: Any) -> Any:
    if kind == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    if kind == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(device.type, (dist.get_world_size(),))
        for block in model.transformer.h:
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(model, device_id=device)


class Training:
    """Models and optimizers of one kind of training."""

    def __init__(self, kind: str, device: Any) -> None:
        self.device = device
        self.amp = kind == "amp"
        model = transformer(tied=kind == "tied").to(device)
        self.average = copy.deepcopy(model) if kind == "ema" else None
        if kind == "checkpointing":
            checkpointed(model)
        if kind == "frozen":
            model.transformer.wte.requires_grad_(False)
            model.transformer.h[:2].requires_grad_(False)
        if kind in ("ddp", "fsdp", "fsdp1"):
            model = sharded(kind, model, device)
        self.models = [model, *([self.average] if self.average is not None else [])]
        trained = [each for each in model.parameters() if each.requires_grad]
        self.optimizers = [torch.optim.AdamW(trained, lr=1e-4)]
        if kind == "gan":
            critic = nn.Sequential(nn.Linear(VOCABULARY, 64), nn.ReLU(), nn.Linear(64, 1))
            self.models.append(critic.to(device))
            self.optimizers.append(torch.optim.SGD(critic.parameters(), lr=0.1, momentum=0.9))

    def step(self) -> None:
        tokens = torch.randint(0, VOCABULARY, (2, LENGTH), device=self.device)
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        dtype = torch.bfloat16 if self.amp else None
        scope = torch.autocast(self.device.type, dtype) if dtype else contextlib.nullcontext()
        with scope:
            logits = self.models[0](tokens).logits
        loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())
        if len(self.optimizers) > 1:
            loss = loss + self.models[1](logits).mean()
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        if self.average is not None:
            parameters = zip(self.average.parameters(), self.models[0].parameters(), strict=True)
            with torch.no_grad():
                for mean, parameter in parameters:
                    mean.lerp_(parameter, 0.1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("path")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--pause-s", type=float, default=0.1)
    options = parser.parse_args()
    torch.manual_seed(0)
    rank = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device(options.device, rank if options.device == "cuda" else None)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if options.kind in ("ddp", "fsdp", "fsdp1"):
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    training = Training(options.kind, device)
    with open(f"{options.path}.{rank}", "w") as log:
        for number in range(options.steps):
            if options.kind == "late" and number == 2:
                vramscope.attach()
            training.step()
            sizes = counted(training.models, training.optimizers, device.type)
            log.write(json.dumps(sizes) + "\n")
            time.sleep(options.pause_s)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
