"""On a real GPU: a batch size that does not fit is taken back, and training goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.rollback import check_rollback

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


def test_a_batch_that_does_not_fit_is_rolled_back(tmp_path: Path) -> None:
    check_rollback(tmp_path, "cuda", cap_mib=1024, sample_kib=4096)
