"""Two ranks with loader workers, wrapped by FSDP: resized at random moments while they train.

On GPUs, over NCCL, with more of it and with DDP: ``tests/gpu/test_coordinated_commands.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.job_process import Api
from tests.support.two_ranks import TwoRanks, check_resizes, patient_server

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

RESIZES = 5


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    with patient_server(tmp_path, monkeypatch) as api:
        yield api


def test_resizes_lose_no_sample_and_keep_the_ranks_together(api: Api, tmp_path: Path) -> None:
    check_resizes(api, TwoRanks(tmp_path / "ranks", "fsdp", "cpu"), RESIZES)
