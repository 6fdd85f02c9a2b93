"""On a real GPU: in any state of the allocator, a dry run promises what the device then gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.dry_runs import check_states

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("settings", "seeds"),
    [
        ("", range(50)),
        ("expandable_segments:True", range(50, 100)),
        ("max_split_size_mb:32,roundup_power2_divisions:4", range(100, 125)),
    ],
)
def test_the_promise_is_kept_to_the_byte(tmp_path: Path, settings: str, seeds: range) -> None:
    check_states(tmp_path, "cuda", seeds, settings)
