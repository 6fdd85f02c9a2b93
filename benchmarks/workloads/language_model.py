"""A small language model whose activations vary with the length of the text."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

VOCABULARY = 4000
WIDTH = 256

Apply = Callable[[nn.Module, torch.Tensor], torch.Tensor]


class LanguageModel(nn.Module):  # type: ignore[misc]
    """Transformer encoder over tokens. ``apply`` runs one layer; checkpointing replaces it."""

    def __init__(self, layers: int, apply: Apply | None = None) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.1, batch_first=True)
            for _ in range(layers)
        )
        self.head = nn.Linear(WIDTH, VOCABULARY)
        self._apply_layer: Apply = apply or (lambda layer, hidden: layer(hidden))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Loss of predicting ``tokens`` (batch, length) from themselves."""
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = self._apply_layer(layer, hidden)
        return functional.cross_entropy(self.head(hidden).flatten(0, 1), tokens.flatten())


def text(rng: random.Random, device: str, batch: int, lengths: tuple[int, int]) -> Any:
    """Random tokens (batch, length), the length drawn from ``lengths``."""
    length = rng.randrange(*lengths)
    return torch.randint(VOCABULARY, (batch, length), device=device)
