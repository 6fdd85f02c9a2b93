"""Bytes by category, counted in another way than the agent does: from PyTorch's public names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def plain(tensor: Any) -> Any:
    """The part of a tensor that lies here."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def storage_bytes(tensors: Iterable[Any], device_type: str) -> int:
    """Bytes of the storages behind tensors, each once, those of one kind of device."""
    storages = {}
    for tensor in map(plain, tensors):
        if tensor.device.type == device_type:
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def counted(models: Iterable[Any], optimizers: Iterable[Any], device_type: str) -> dict[str, int]:
    """Bytes by category, as ``named_parameters``, ``grad`` and the state of optimizers have it."""
    models, optimizers = list(models), list(optimizers)
    parameters = [each for model in models for _, each in model.named_parameters()]
    state = [
        value
        for optimizer in optimizers
        for each in optimizer.state.values()
        for value in each.values()
        if hasattr(value, "untyped_storage")
    ]
    return {
        "parameters": storage_bytes(parameters, device_type),
        "gradients": storage_bytes(
            (each.grad for each in parameters if each.grad is not None), device_type
        ),
        "optimizer_state": storage_bytes(state, device_type),
        "buffers": storage_bytes(
            (each for model in models for _, each in model.named_buffers()), device_type
        ),
    }
