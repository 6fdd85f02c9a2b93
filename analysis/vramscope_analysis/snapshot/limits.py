"""How much a snapshot may ask of its reader."""

from __future__ import annotations

from dataclasses import dataclass

from vramscope_analysis.snapshot.errors import SnapshotError


@dataclass(frozen=True)
class Limits:
    """Bounds on what reading one snapshot may cost; beyond each the file is refused.

    The defaults let through everything that PyTorch writes up to several GiB.
    """

    # The file, after it was unzipped.
    file_bytes: int = 16 << 30
    # Unzipped bytes to zipped ones: real traces reach 15, bombs 1000.
    gzip_ratio: int = 300
    # Opcodes executed one by one, about 70 bytes of memory each at worst. The runs of equal
    # entries that make up a large snapshot are not executed one by one and do not count.
    opcodes: int = 16_000_000
    # Containers within containers: PyTorch's own files have 7.
    depth: int = 64
    # Values that one kept-aside value may unfold to, each counted as often as it is reachable.
    unfolded_values: int = 10_000_000
    # Bytes of one integer.
    integer_bytes: int = 64
    # Different sets of keys in one table.
    shapes: int = 1000

    def rows(self, file_bytes: int) -> int:
        """Most table rows that a file of this size may stand for.

        An entry of PyTorch's takes 30 bytes or more; entries that are references to one and the
        same dict take 2 and would multiply without limit.
        """
        return 1_000_000 + file_bytes // 8


def over(what: str, limit: int, option: str) -> SnapshotError:
    """The refusal of a file that goes beyond one of the limits."""
    return SnapshotError(
        f"{what} (limit {limit:,}); if you trust the file, read it with Limits({option}=...)"
    )
