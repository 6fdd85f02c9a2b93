"""Segments as ``memory_snapshot`` has them, made from short words."""

from __future__ import annotations

import random
from typing import Any

WORDS = {"a": "active_allocated", "p": "active_pending_free", "f": "inactive"}
MIB = 1 << 20


def segment(address: int, blocks: str, **more: Any) -> dict[str, Any]:
    """A segment whose blocks are words such as ``a2`` (allocated, 2 MiB), ``f1`` or ``p3``."""
    made = []
    at = address
    for word in blocks.split():
        size = int(float(word[1:]) * MIB)
        requested = 0 if word[0] == "f" else size - 8
        state = WORDS[word[0]]
        made.append({"address": at, "size": size, "requested_size": requested, "state": state})
        at += size
    return {
        "device": 0,
        "address": address,
        "total_size": at - address,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "blocks": made,
        **more,
    }


def many_segments(count: int, blocks: int, **more: Any) -> list[dict[str, Any]]:
    """``count`` segments of ``blocks`` blocks each, every other one free."""
    words = " ".join("a0.5" if i % 2 == 0 else "f0.5" for i in range(blocks))
    return [segment(0x7F0000000000 + i * blocks * MIB, words, **more) for i in range(count)]


def random_segments(rng: random.Random) -> list[dict[str, Any]]:
    """Some segments out of a few addresses, so that two calls have some in common."""
    made = []
    for number in range(rng.randint(0, 6)):
        if rng.random() < 0.3:
            continue
        blocks = rng.randint(1, 5)
        words = " ".join(f"{rng.choice('apf')}{rng.choice((1, 1, 2))}" for _ in range(blocks))
        pool = rng.choice(((0, 0), (0, 0), (0, 1)))
        made.append(
            segment(
                0x1000000000 + number * 64 * MIB,
                words,
                stream=rng.choice((0, 0, 7)),
                segment_pool_id=pool,
                segment_type=rng.choice(("small", "large")),
            )
        )
    return made
