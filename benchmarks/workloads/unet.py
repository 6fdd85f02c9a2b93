"""Training of a diffusion model: a U-Net with attention in mixed precision, sizes that vary.

An averaged copy of the weights is kept, and images are sampled from it now and then.
"""

from __future__ import annotations

import copy
import itertools
import random

import torch
from torch import nn
from torch.nn import functional

from benchmarks.trace_recorder import TraceRecorder

STEPS = 8
SAMPLE_EVERY = 4
DENOISING_STEPS = 3
CHANNELS = (32, 64, 128)
TIME_WIDTH = 64


class Residual(nn.Module):  # type: ignore[misc]
    """Two convolutions beside a skip connection, shifted by the time step."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(8, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1)
        )
        self.time = nn.Linear(TIME_WIDTH, outputs)
        self.second = nn.Sequential(
            nn.GroupNorm(8, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1)
        )
        self.skip = nn.Conv2d(inputs, outputs, 1)

    def forward(self, images: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """Images (batch, inputs, height, width) and times (batch, TIME_WIDTH)."""
        hidden = self.first(images) + self.time(time)[:, :, None, None]
        return self.second(hidden) + self.skip(images)


class Attention(nn.Module):  # type: ignore[misc]
    """Self-attention over all pixels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, channels)
        self.inner = nn.Conv2d(channels, 3 * channels, 1)
        self.outer = nn.Conv2d(channels, channels, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images (batch, channels, height, width)."""
        batch, channels, height, width = images.shape
        parts = self.inner(self.norm(images)).reshape(batch, 3, 4, channels // 4, height * width)
        query, key, value = parts.transpose(-1, -2).unbind(1)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return images + self.outer(mixed.transpose(-1, -2).reshape(images.shape))


class UNet(nn.Module):  # type: ignore[misc]
    """Predicts the noise in images (batch, 3, height, width) at times (batch,)."""

    def __init__(self) -> None:
        super().__init__()
        pairs = list(itertools.pairwise(CHANNELS))
        self.enter = nn.Conv2d(3, CHANNELS[0], 3, padding=1)
        self.down = nn.ModuleList(Residual(narrow, wide) for narrow, wide in pairs)
        self.attention = Attention(CHANNELS[-1])
        self.middle = Residual(CHANNELS[-1], CHANNELS[-1])
        self.up = nn.ModuleList(Residual(2 * wide, narrow) for narrow, wide in reversed(pairs))
        self.leave = nn.Conv2d(CHANNELS[0], 3, 3, padding=1)

    def forward(self, images: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        """Noise of the same shape as the images."""
        powers = torch.arange(TIME_WIDTH // 2, device=times.device) / 8
        angles = times[:, None] * torch.exp(-powers)
        time = torch.cat((angles.sin(), angles.cos()), dim=1)
        hidden, skips = self.enter(images), list[torch.Tensor]()
        for block in self.down:
            hidden = block(hidden, time)
            skips.append(hidden)
            hidden = functional.avg_pool2d(hidden, 2)
        hidden = self.middle(self.attention(hidden), time)
        for block in self.up:
            hidden = functional.interpolate(hidden, scale_factor=2.0)
            hidden = block(torch.cat((hidden, skips.pop()), dim=1), time)
        return self.leave(hidden)


def run(recorder: TraceRecorder) -> None:
    """Train, one row a step and one a sampling."""
    torch.manual_seed(0)
    rng = random.Random(0)
    device = recorder.device
    model = UNet().to(device)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler(device, init_scale=256.0)
    for step in range(1, STEPS + 1):
        side, batch = rng.choice((64, 96, 128)), rng.choice((8, 16, 24))
        images = torch.randn(batch, 3, side, side, device=device)
        noise, times = torch.randn_like(images), torch.rand(batch, device=device)
        with torch.autocast(device):
            predicted = model(images + noise * times[:, None, None, None], times)
            loss = functional.mse_loss(predicted, noise)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 0.1)
        recorder.end_step()
        if step % SAMPLE_EVERY == 0:
            _sample(average, recorder)


def _sample(model: nn.Module, recorder: TraceRecorder) -> None:
    """Remove noise step by step from a large batch."""
    with torch.no_grad(), torch.autocast(recorder.device):
        images = torch.randn(32, 3, 96, 96, device=recorder.device)
        for time in torch.linspace(1, 0, DENOISING_STEPS).tolist():
            images = images - 0.1 * model(images, torch.full((32,), time, device=recorder.device))
        images.clamp(-1, 1).mean().item()
    recorder.end_step()
