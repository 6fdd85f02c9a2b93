"""Each PyTorch is asked in the form that it understands."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.fake_torch import install_fake_torch, nested_stats
from vramscope.devices.caching_allocator import (
    current_bytes,
    device_in_use,
    initialised_cuda,
    large_page_bytes,
    read_snapshot,
    read_stats,
    snapshot_obstacle,
)


@pytest.mark.parametrize("minor", range(4, 15))
def test_every_version_gives_its_segments(monkeypatch: pytest.MonkeyPatch, minor: int) -> None:
    fake = install_fake_torch(monkeypatch, (2, minor))
    fake.segments = [{"device": 0}]
    c_module: Any = fake.modules["torch"]._C
    assert read_snapshot(c_module)["segments"] == [{"device": 0}]


@pytest.mark.parametrize("minor", range(4, 15))
def test_a_recorded_history_is_in_the_way_where_it_cannot_be_left_out(
    monkeypatch: pytest.MonkeyPatch, minor: int
) -> None:
    fake = install_fake_torch(monkeypatch, (2, minor))
    c_module: Any = fake.modules["torch"]._C
    assert snapshot_obstacle(c_module) is None
    fake.records_history = True
    reason = snapshot_obstacle(c_module)
    assert (reason is None) == (minor >= 11)
    assert reason is None or reason.startswith("memory history is being recorded")


def test_another_backend_has_no_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install_fake_torch(monkeypatch, (2, 11))
    fake.backend = "cudaMallocAsync"
    reason = snapshot_obstacle(fake.modules["torch"]._C)
    assert reason == "this allocator backend has no segments to show"


def test_cuda_is_there_only_once_the_job_has_initialised_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = install_fake_torch(monkeypatch)
    assert initialised_cuda() is not None
    fake.initialized = False
    assert initialised_cuda() is None


def test_a_torch_that_is_still_being_imported_is_no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = install_fake_torch(monkeypatch).modules["torch"]
    del torch.cuda
    assert initialised_cuda() is None


@pytest.mark.torch
def test_a_cpu_build_is_no_cuda() -> None:
    import torch

    if torch.version.cuda is None:
        assert initialised_cuda() is None


def test_the_device_in_use_is_the_one_with_the_most_reserved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = install_fake_torch(monkeypatch, device_count=3)
    fake.stats[1] = nested_stats(reserved_bytes=10)
    fake.stats[2] = nested_stats(reserved_bytes=20)
    c_module: Any = fake.modules["torch"]._C
    index, stats = device_in_use(c_module, 0, fake.stats[0])
    assert (index, current_bytes(stats, "reserved_bytes")) == (2, 20)


def test_no_device_in_use_keeps_the_expected_one(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install_fake_torch(monkeypatch, device_count=2)
    c_module: Any = fake.modules["torch"]._C
    assert device_in_use(c_module, 1, fake.stats[1])[0] == 1
    assert device_in_use(c_module, 5, None)[0] == 0


def test_a_pluggable_allocator_has_no_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install_fake_torch(monkeypatch)
    fake.stats[0] = None
    assert read_stats(fake.modules["torch"]._C, 0) is None


def test_a_counter_that_is_missing_counts_nothing() -> None:
    assert current_bytes(None, "reserved_bytes") == 0
    assert current_bytes({}, "reserved_bytes") == 0
    assert current_bytes({"reserved_bytes": 5}, "reserved_bytes") == 0


def test_the_page_of_a_large_segment_follows_the_setting() -> None:
    assert large_page_bytes({}) == 20 << 20
    conf = "expandable_segments:True,large_segment_size_mb:64"
    assert large_page_bytes({"PYTORCH_CUDA_ALLOC_CONF": conf, "max_split_size": -1}) == 64 << 20
