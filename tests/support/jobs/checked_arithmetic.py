"""A job without torch whose results are known: any wrong bit in a register or on the heap ends it.

Runs until its standard input closes, then prints how many rounds it checked.
"""

from __future__ import annotations

import sys
import threading


def float_chain(length: int = 1500) -> float:
    """The same float, to the last bit, from every call on every machine."""
    x, total = 0.3, 0.0
    for index in range(length):
        x = 3.99 * x * (1.0 - x)
        total += x * 1e-3 + index * 1.000001
    return total


def heap_chain(round_number: int) -> int:
    """Zero, by way of many allocations of all sizes."""
    blocks = [bytearray([size % 251]) * (size * 37 % 70_000) for size in range(round_number % 97)]
    return sum(block.count(block[0]) - len(block) for block in blocks if block)


def main() -> None:
    """Check until standard input closes."""
    closed = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        closed.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    expected = float_chain()
    print("ready", flush=True)
    rounds = 0
    while not closed.is_set():
        found = float_chain()
        if found != expected:
            sys.exit(f"round {rounds}: {found!r} is not {expected!r}")
        if heap_chain(rounds):
            sys.exit(f"round {rounds}: the heap changed")
        rounds += 1
    print(f"checked {rounds} rounds")


if __name__ == "__main__":
    main()
