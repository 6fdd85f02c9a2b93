from __future__ import annotations

import pytest

from vramscope.size_text import size_text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1536, "1.50 KiB"),
        (3 << 30, "3 GiB"),
        (-(5 << 20), "-5 MiB"),
        (1 << 60, "1048576 TiB"),
    ],
)
def test_sizes_are_readable(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


def test_what_is_not_known_is_not_taken_for_nothing() -> None:
    assert size_text(None) == "an unknown amount"
    assert size_text(None, "-") == "-"
    assert size_text(0, "-") == "0 B"
