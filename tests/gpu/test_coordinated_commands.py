"""On two GPUs that train together: commands at random moments, at one step, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.job_process import Api
from tests.support.two_ranks import TwoRanks, check_empty_caches, check_resizes, patient_server

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

EMPTY_CACHES = 200
RESIZES = 50
LONG_EPOCH = 6144
"""The workers are started anew for each epoch, which takes longer than a few steps."""


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    with patient_server(tmp_path, monkeypatch) as api:
        yield api


@pytest.mark.parametrize("how", ["ddp", "fsdp"])
def test_empty_cache_runs_at_one_step_and_changes_no_loss(
    api: Api, tmp_path: Path, how: str
) -> None:
    ranks = TwoRanks(tmp_path / "ranks", how, "cuda", samples=LONG_EPOCH)
    check_empty_caches(api, ranks, EMPTY_CACHES)


@pytest.mark.parametrize("how", ["ddp", "fsdp"])
def test_resizes_lose_no_sample_and_keep_the_ranks_together(
    api: Api, tmp_path: Path, how: str
) -> None:
    check_resizes(api, TwoRanks(tmp_path / "ranks", how, "cuda"), RESIZES)
