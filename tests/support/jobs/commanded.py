"""Trains small things without an end, with commands of its own, and memory that stays stranded."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Literal

import torch

import vramscope

calls: list[str] = []
grown: list[torch.Tensor] = []


@vramscope.command
def save(
    tag: str,
    keep: Annotated[int, (1, 9)] = 3,
    share: float = 0.5,
    quick: bool = False,
    kind: Literal["whole", "weights"] = "whole",
) -> dict[str, object]:
    """Save a checkpoint. Nothing is written."""
    calls.append(tag)
    return {"tag": tag, "keep": keep, "share": share, "quick": quick, "kind": kind}


@vramscope.command("look", right="view", place="agent thread")
def look_at_calls() -> list[str]:
    """What was called so far."""
    return list(calls)


@vramscope.command
def grow(kib: int) -> dict[str, object]:
    """Allocate a tensor and keep it."""
    before = torch.cuda.memory_allocated()
    grown.append(torch.ones(kib << 8))
    segments = torch.cuda.memory_snapshot()
    return {
        "bytes": torch.cuda.memory_allocated() - before,
        "expandable": sum(segment["is_expandable"] for segment in segments),
    }


@vramscope.command
def fail() -> None:
    """Go wrong."""
    raise ValueError("not today")


@vramscope.command
def leave() -> None:
    """Try to end the process."""
    sys.exit(3)


def main() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Linear(256, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    # Two of three pieces of a large segment go again: what is left holds it.
    pieces = [torch.ones(1 << 20) for _ in range(3)]
    kept = pieces[1]
    del pieces
    for step in range(1_000_000):
        optimizer.zero_grad()
        loss = model(torch.ones(32, 256)).sum() + kept[0] * 0
        loss.backward()
        optimizer.step()
        if step == 20:

            @vramscope.command
            def late() -> int:
                """Declared when the job was running already."""
                return 7

        time.sleep(0.005)


if __name__ == "__main__":
    main()
