"""Private pools in the order in which PyTorch goes through them: that of its hash table."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from vramscope_analysis.allocator.events import PoolId

Value = TypeVar("Value")

_FIBONACCI: Final = 11400714819323198485
_WORD: Final = (1 << 64) - 1
_LEAST_SLOTS: Final = 4


class PoolTable(Generic[Value]):
    """Values by pool id, walked as a ``ska::flat_hash_map`` is.

    The table is at most half full and never shrinks. The top bits of its hash (``MempoolIdHash``,
    then Fibonacci hashing) say the slot of a key; keys of one slot keep the order of insertion.
    """

    def __init__(self) -> None:
        self._values: dict[PoolId, Value] = {}
        self._slots = _LEAST_SLOTS

    def __len__(self) -> int:
        return len(self._values)

    def insert(self, pool_id: PoolId, value: Value) -> None:
        """Add a value, or keep the one that is there."""
        self._values.setdefault(pool_id, value)
        while 2 * len(self._values) > self._slots:
            self._slots *= 2

    def remove(self, pool_id: PoolId) -> None:
        """Take a value out."""
        del self._values[pool_id]

    def ids(self) -> list[PoolId]:
        """Ids in the order of the table. A copy."""
        return sorted(self._values, key=self._slot)

    def values(self) -> list[Value]:
        """Values in the order of the table. A copy."""
        return [self._values[pool_id] for pool_id in self.ids()]

    def _slot(self, pool_id: PoolId) -> int:
        shift = 64 - (self._slots.bit_length() - 1)
        return (_FIBONACCI * (pool_id[0] or pool_id[1]) & _WORD) >> shift
