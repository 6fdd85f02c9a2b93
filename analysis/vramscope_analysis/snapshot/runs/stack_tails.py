"""Lists of frames as bytes: whatever has equal bytes is the same stack."""

from __future__ import annotations

import numpy as np

from vramscope_analysis.snapshot.runs.template import GET_BYTES, stack_end

MALFORMED = -1


class StackTails:
    """Numbers for the bytes that fill a list from the memo ("(" gets "e", a get "a", nothing).

    The memo is only ever added to, so that equal bytes fetch equal frames wherever they stand.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self.references_read = 0
        # By number: the memo indices fetched.
        self.references: list[list[int]] = []
        # By number, with room for more: the highest of those, and the list's number in the pool
        # of objects once it was built, until then -1.
        self.highest = np.zeros(1024, np.int64)
        self.codes = np.full(1024, -1, np.int32)

    def numbers(self, tails: list[bytes]) -> list[int]:
        """The number of each, MALFORMED for bytes that are something else."""
        known = self._numbers
        numbers: list[int] = []
        for tail in tails:
            number = known.get(tail)
            numbers.append(self._add(tail) if number is None else number)
        return numbers

    def _add(self, tail: bytes) -> int:
        number = MALFORMED
        # A zero behind, so that nothing ends where an opcode is looked for.
        if stack_end(tail + b"\0", 0) == len(tail):
            number = len(self.references)
            references = _references(tail)
            self.references.append(references)
            self.references_read += len(references)
            if number == len(self.codes):
                self.highest = np.concatenate([self.highest, np.zeros(number, np.int64)])
                self.codes = np.concatenate([self.codes, np.full(number, -1, np.int32)])
            self.highest[number] = max(references, default=-1)
        self._numbers[tail] = number
        return number


def _references(tail: bytes) -> list[int]:
    at = 0 if tail[:1] and tail[0] in GET_BYTES else 1
    references: list[int] = []
    while at < len(tail) - 1:
        size = GET_BYTES[tail[at]]
        references.append(int.from_bytes(tail[at + 1 : at + size], "little"))
        at += size
    return references
