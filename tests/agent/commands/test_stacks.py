from __future__ import annotations

import threading

from vramscope.commands.call import Call
from vramscope.commands.stacks import stack_handlers
from vramscope_protocol.commands import Receipt


def waits_for_a_batch(ready: threading.Event, end: threading.Event) -> None:
    ready.set()
    end.wait(20)


def text() -> str:
    receipt = stack_handlers()["stacks"](Call())
    assert isinstance(receipt, Receipt)
    assert receipt.state == "done"
    assert isinstance(receipt.result, str)
    return receipt.result


def test_every_thread_is_there_with_its_lines_the_innermost_last() -> None:
    ready, end = threading.Event(), threading.Event()
    threads = [
        threading.Thread(target=waits_for_a_batch, args=(ready, end), name=name, daemon=True)
        for name in ("vramscope-sampler", "loader")
    ]
    for thread in threads:
        thread.start()
    ready.wait(5)
    stacks = text().split("\n\n")
    end.set()
    for thread in threads:
        thread.join()
    heads = [stack.splitlines()[0] for stack in stacks]
    assert heads[0].startswith("thread MainThread (most recent call last):")
    loader = next(stack for stack in stacks if " loader " in stack)
    lines = [line.rpartition(" in ")[2] for line in loader.splitlines()[1:]]
    assert lines.index("waits_for_a_batch") < len(lines) - 1 - lines[::-1].index("wait")
    assert f'File "{__file__}", line ' in loader
    own = next(head for head in heads if "vramscope-sampler" in head)
    assert own == "daemon thread vramscope-sampler, of vramscope (most recent call last):"
    assert heads.index(own) > heads.index("daemon thread loader (most recent call last):")
