"""How large the autograd graphs of live tensors are. No saved tensor is ever unpacked."""

from __future__ import annotations

from typing import Any, Final

from vramscope.holders.time_box import TimeBox

MAX_NODES: Final = 20_000
_TIME_EVERY: Final = 256


def graph_nodes(tensor: Any, box: TimeBox, most: int = MAX_NODES) -> int:
    """How many nodes the graph of a tensor has; 0 if it has none.

    Args:
        tensor: a plain one.
        box: counts no longer than it.
        most: or up to so many.
    """
    first = tensor.grad_fn
    if first is None:
        return 0
    # They are held while they are counted: PyTorch makes an object for a node when it is asked
    # for, and the ids of those that are gone are used again.
    seen: dict[int, Any] = {id(first): first}
    pending = [first]
    while pending and len(seen) < most:
        if len(seen) % _TIME_EVERY == 0 and box.is_over:
            break
        for node, _ in pending.pop().next_functions:
            if node is not None and id(node) not in seen:
                seen[id(node)] = node
                pending.append(node)
    return len(seen)
