"""C35: record_stream delays reuse (pytorch/pytorch#147168).

usage: C35.py [control]    control: references are kept until the side stream is done
"""

from __future__ import annotations

import sys
import time

import torch
from torch import nn

MIB = 1 << 20
STEPS = 800
LAYERS = 12


def main(control: bool) -> None:
    torch.manual_seed(0)
    side = torch.cuda.Stream()
    model = nn.Linear(512, 512).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    big = torch.randn(2048, 2048, device="cuda")
    for _ in range(STEPS):
        kept = []
        for _ in range(LAYERS):
            t = torch.empty(24 * MIB // 4, device="cuda")  # culprit
            with torch.cuda.stream(side):
                for _ in range(4):
                    big @ big
                t.mul_(2)
            if control:
                kept.append(t)
            else:
                t.record_stream(side)  # culprit
            del t
        if control:
            torch.cuda.current_stream().wait_stream(side)
            kept.clear()
        model(torch.randn(64, 512, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.005)


if __name__ == "__main__":
    main("control" in sys.argv)
