"""Times one look at the tensors of a model: with bytes alone, with names, and at gradients alone.

python benchmarks/bench_census.py
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from vramscope.tensors.census import Census
from vramscope.tensors.module_scan import ModuleScan
from vramscope.tensors.modules import Modules

ROUNDS = 200


def trained(layers: int) -> tuple[Any, Any]:
    """A model with AdamW after one step."""
    model = nn.ModuleList(nn.TransformerEncoderLayer(8, 2, 16) for _ in range(layers))
    optimizer = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    return model, optimizer


def storage(tensor: Any) -> tuple[int, int]:
    """What a CUDA device does for each tensor, besides asking for its device."""
    tensor.get_device()
    found = tensor.untyped_storage()
    return found.data_ptr(), found.nbytes()


def median_us(work: Callable[[], object]) -> float:
    taken: list[float] = []
    for _ in range(ROUNDS):
        start = time.thread_time()
        work()
        taken.append((time.thread_time() - start) * 1e6)
    return sorted(taken)[ROUNDS // 2]


def main() -> None:
    for layers in (5, 21, 84):
        model, optimizer = trained(layers)
        modules = list(model.modules())
        census = Census(storage)
        census.count(modules, [optimizer])

        def look(names: bool, modules: Any = modules, optimizer: Any = optimizer) -> None:
            Census(storage, names=names).count(modules, [optimizer])

        def kept(modules: Any = modules, optimizer: Any = optimizer) -> None:
            Census(storage).count_gradients(modules, [optimizer])

        per_thousand = 1000 / census.tensors
        print(
            f"{census.tensors:6,} tensors, {len(modules):5,} modules; CPU time by 1,000 tensors: "
            f"bytes {median_us(lambda: look(False)) * per_thousand:6.0f} us, "
            f"names {median_us(lambda: look(True)) * per_thousand:6.0f} us; "
            f"gradients alone {median_us(kept):6.0f} us"
        )
    gc.collect()
    scan = ModuleScan(Modules(), turn_s=60.0)
    scan.go_on()
    cost = scan.took_s * 1e6 / scan.objects
    print(f"one look through {scan.objects:,} objects: {cost:.2f} us an object")


if __name__ == "__main__":
    main()
