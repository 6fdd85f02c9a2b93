"""A small CPU training job: prints its losses, so that two runs can be compared byte by byte."""

from __future__ import annotations

import argparse
import signal
import sys
import time

import torch
from torch import nn

stopping = False


def stop(*_: object) -> None:
    global stopping
    stopping = True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--pause-s", type=float, default=0.0)
    parser.add_argument("--exit-code", type=int, default=0)
    parser.add_argument("--until-terminated", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    optimizer = torch.optim.AdamW(model.parameters())
    step = 0
    while not stopping and (arguments.until_terminated or step < arguments.steps):
        step += 1
        x = torch.randn(32, 64)
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if not arguments.until_terminated and step % 10 == 0:
            print(step, loss.item().hex())
        time.sleep(arguments.pause_s)
    print("done", file=sys.stderr)
    sys.exit(arguments.exit_code)


if __name__ == "__main__":
    main()
