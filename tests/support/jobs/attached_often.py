"""Attaches and detaches itself as an arrival from outside does, again and again, in mid-training.

Prints, as JSON, what is another one after the last round than it was after the first few.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import json
import os
import sys
import threading
import types
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

import vramscope
from vramscope import arrival

WARM_UP_ROUNDS = 3
LOOKED_AT = (
    "torch",
    "threading",
    "gc",
    "os",
    "sys",
    "atexit",
    "signal",
    "logging",
    "builtins",
    "warnings",
)

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(batches: int = 2) -> None:
    for batch in torch.utils.data.DataLoader(torch.ones(batches, 4)):
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def ask(action: str, **options: Any) -> dict[str, Any]:
    """Have it done on another thread while this one trains."""
    answers: list[dict[str, Any]] = []
    request = {"action": action, "options": options}
    thread = threading.Thread(target=arrival.act, args=(request, answers.append))
    thread.start()
    while thread.is_alive():
        train()
    assert answers[-1]["ok"], answers
    return answers[-1]


def functions() -> Iterator[tuple[str, int]]:
    """Every function of the modules that could be patched, and the length of every collection."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in LOOKED_AT:
            continue
        for key, value in list(vars(module).items()):
            if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
                yield f"{name}.{key}", id(value)
            elif isinstance(value, (list, dict, set)) and not key.startswith("__"):
                yield f"len({name}.{key})", len(value)
            elif isinstance(value, type):
                for method, function in list(vars(value).items()):
                    if isinstance(function, types.FunctionType):
                        yield f"{name}.{key}.{method}", id(function)


def state() -> dict[str, Any]:
    gc.collect()
    ours = Counter(
        f"{type(each).__module__}.{type(each).__qualname__}"
        for each in gc.get_objects()
        if str(type(each).__module__).partition(".")[0] in ("vramscope", "vramscope_protocol")
    )
    return {
        **dict(functions()),
        **ours,
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "tasks": len(os.listdir("/proc/self/task")),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "environment": dict(os.environ),
        "meta path": [str(finder) for finder in sys.meta_path],
        "path": list(sys.path),
        "excepthook": id(sys.excepthook),
        "at exit": atexit._ncallbacks(),
        "gc callbacks": len(gc.callbacks),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "optimizer hooks": len(sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--emulate", action="store_true")
    rounds, emulate = vars(parser.parse_args()).values()
    warnings.simplefilter("ignore")  # of deprecated names in torch that are looked at
    train()
    before: dict[str, Any] = {}
    for number in range(rounds + WARM_UP_ROUNDS):
        if number == WARM_UP_ROUNDS:
            before = state()
        if emulate:
            vramscope.attach(emulate=True)  # by the thread that trains: it is what is watched
        else:
            ask("attach")
        train()
        answer = ask("detach")
        assert answer["message"] == "everything measured was delivered", answer
    after = state()
    names = {name for name in before | after if before.get(name) != after.get(name)}
    print(json.dumps({name: [before.get(name), after.get(name)] for name in sorted(names)}))


if __name__ == "__main__":
    main()
