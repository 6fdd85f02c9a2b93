"""Two ways to need more memory that are no leak, each in a line that tests look for. For --emulate.

Boxes whose number changes by image (ultralytics#25240), and an evaluation that collects all logits
(transformers#12878). Records its history and writes a snapshot; prints where everything happened,
by the number of entries so far, as one line of JSON.
"""

from __future__ import annotations

import json
import sys

import torch
from torch import Tensor, nn

BOXES = (20, 30, 25, 400, 22, 28)
ANCHORS = 2100


def main() -> None:
    memory = torch.cuda.memory
    memory._record_memory_history(stacks="python", max_entries=100_000)
    torch.manual_seed(0)
    model = nn.Linear(64, 64)
    head = nn.Linear(64, 4096)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.01)
    marks: dict[str, list[int]] = {"steps": [], "eval": []}

    def note(where: str) -> None:
        marks[where].append(len(memory._snapshot()["device_traces"][0]))

    for boxes in BOXES:
        features = model(torch.randn(ANCHORS, 64))
        distance = (torch.rand(boxes, 1, 4) - torch.rand(1, ANCHORS, 4)).abs().sum(-1)  # pairs
        loss = features.square().mean() + distance.topk(4).values.mean()
        del features, distance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del loss
        note("steps")
    with torch.no_grad():
        collected: Tensor | None = None
        for _ in range(12):
            logits = head(torch.randn(64, 64))
            collected = logits if collected is None else torch.cat([collected, logits])  # collects
            del logits
            note("eval")
        del collected
    note("eval")
    memory._dump_snapshot(sys.argv[1])
    print(json.dumps(marks))


if __name__ == "__main__":
    main()
