"""Small trainings whose memory depends on the batch size, each in its own way.

The same on a CPU and, larger, on a GPU: ``scale`` multiplies widths and lengths.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss, relu, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

VOCABULARY = 2048


@dataclass
class Training:
    """A model that can take one step with any number of samples.

    Args:
        step: trains one step on so many samples.
        modules: what is trained.
    """

    step: Callable[[int], None]
    model: Any


class Block(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """Attention and a feed-forward part, with what each keeps for the backward pass."""

    def __init__(self, width: int, *, whole_scores: bool) -> None:
        super().__init__()
        self.heads = 4
        self.whole_scores = whole_scores
        self.norm, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        qkv = self.qkv(self.norm(x)).view(n, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        if self.whole_scores:  # quadratic in the length, as attention was
            scores = (q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5).softmax(-1)
            attended = scores @ v
        else:
            attended = scaled_dot_product_attention(q, k, v)
        x = x + self.out(attended.transpose(1, 2).reshape(n, length, width))
        return x + self.feed(self.norm_2(x))


class Transformer(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """Predicts the next token."""

    def __init__(
        self, width: int, layers: int, *, checkpointed: bool = False, whole_scores: bool = False
    ) -> None:
        super().__init__()
        self.checkpointed = checkpointed
        self.embed = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width, whole_scores=whole_scores) for _ in range(layers))
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.head(x)


class ConvNet(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """Residual convolutions with batch norm."""

    def __init__(self, channels: int, layers: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.convs = nn.ModuleList(
            nn.Conv2d(channels, channels, 3, padding=1) for _ in range(layers)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(layers))
        self.head = nn.Linear(channels, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = x + relu(norm(conv(x)))
        return self.head(x.mean((2, 3)))


class UNet(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """Down, up, and what is carried across."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, channels, 3, padding=1)
        self.down = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.lower = nn.Conv2d(2 * channels, 4 * channels, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(4 * channels, 4 * channels, 3, padding=1)
        self.rise = nn.ConvTranspose2d(4 * channels, 2 * channels, 2, stride=2)
        self.rise_2 = nn.ConvTranspose2d(4 * channels, channels, 2, stride=2)
        self.last = nn.Conv2d(2 * channels, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = relu(self.first(x))
        second = relu(self.down(first))
        low = relu(self.middle(relu(self.lower(second))))
        second = torch.cat([relu(self.rise(low)), second], 1)
        return self.last(torch.cat([relu(self.rise_2(second)), first], 1))


def make(name: str, device: str, scale: int) -> Training:
    """One of :data:`MODELS`."""
    torch.manual_seed(0)
    return MODELS[name](device, scale)


def _tokens(
    device: str,
    scale: int,
    *,
    adam: bool = True,
    amp: bool = False,
    parts: int = 1,
    lengths: bool = False,
    **options: Any,
) -> Training:
    length = 96 * scale
    model = Transformer(64 * scale, 4 * min(scale, 3), **options).to(device)
    optimizer = _optimizer(model, adam=adam)
    generator = torch.Generator().manual_seed(1)

    def longest() -> int:
        # As a collate function pads: to the longest of the batch, cut off at the most.
        drawn = torch.randint(length // 4, length + length // 8, (1,), generator=generator)
        return min(int(drawn), length)

    def step(samples: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        for _ in range(parts):
            tokens = torch.randint(
                VOCABULARY, (samples, longest() if lengths else length), device=device
            )
            with _autocast(device, on=amp):
                logits = model(tokens)
                loss = cross_entropy(logits.flatten(0, 1), tokens.flatten())
            (loss / parts).backward()
        optimizer.step()

    return Training(step, model)


def _images(
    device: str,
    scale: int,
    model: Any,
    *,
    size: int,
    adam: bool,
    amp: bool = False,
    parts: int = 1,
    to_images: bool = False,
) -> Training:
    model = model.to(device)
    optimizer = _optimizer(model, adam=adam)

    def step(samples: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        for _ in range(parts):
            images = torch.randn(samples, 3, size * scale, size * scale, device=device)
            with _autocast(device, on=amp):
                found = model(images)
                loss = (
                    mse_loss(found, images)
                    if to_images
                    else cross_entropy(found, torch.zeros(samples, dtype=torch.long, device=device))
                )
            (loss / parts).backward()
        optimizer.step()

    return Training(step, model)


def _wide(device: str, scale: int) -> Training:
    # Mostly parameters, and no state: gradients are half of what does not depend on the batch.
    layers: list[Any] = []
    for _ in range(3):
        layers += [nn.Linear(1024 * scale, 1024 * scale), nn.GELU()]
    model = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)

    def step(samples: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        x = torch.randn(samples * 16, 1024 * scale, device=device)
        model(x).square().mean().backward()
        optimizer.step()

    return Training(step, model)


def _optimizer(model: Any, *, adam: bool) -> Any:
    if adam:
        return torch.optim.AdamW(model.parameters(), 1e-4)
    return torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)


@contextlib.contextmanager
def _autocast(device: str, *, on: bool) -> Generator[None]:
    with torch.autocast(device.partition(":")[0], torch.bfloat16, enabled=on):
        yield


MODELS: dict[str, Callable[[str, int], Training]] = {
    "transformer": _tokens,
    "conv": lambda d, s: _images(d, s, ConvNet(16 * s, 8), size=40, adam=False),
    "unet": lambda d, s: _images(d, s, UNet(16 * s), size=64, adam=True, to_images=True),
    "checkpointed": lambda d, s: _tokens(d, s, checkpointed=True),
    "sgd": _wide,
    "lengths": lambda d, s: _tokens(d, s, lengths=True),
    "amp": lambda d, s: _tokens(d, s, amp=True),
    "accumulated": lambda d, s: _tokens(d, s, parts=2, adam=False),
    "attention": lambda d, s: _tokens(d, s, whole_scores=True),
    "conv-amp": lambda d, s: _images(d, s, ConvNet(16 * s, 8), size=40, adam=True, amp=True),
}
"""By name; tests and the benchmark go through all of them."""
