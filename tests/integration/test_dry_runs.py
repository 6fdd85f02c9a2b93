"""In any state of an emulated allocator, a dry run promises what the device then gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.dry_runs import check_states

pytestmark = pytest.mark.torch
pytest.importorskip("torch")


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
def test_the_promise_is_kept_to_the_byte(tmp_path: Path, settings: str) -> None:
    check_states(tmp_path, "cpu", range(6), settings)
