from __future__ import annotations

import pytest

from vramscope_analysis.allocator import AllocatorSettings


def test_settings_that_pytorch_refuses_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 16 roundup_power2_divisions, got 2"):
        AllocatorSettings(roundup_power2_divisions=(1, 2))
    with pytest.raises(ValueError, match="expected a power of two"):
        AllocatorSettings(roundup_power2_divisions=(3,) * 16)
    with pytest.raises(ValueError, match="garbage_collection_threshold"):
        AllocatorSettings(garbage_collection_threshold=1.0)
