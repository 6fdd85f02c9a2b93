from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_server import free_port
from vramscope.identity.process_group import ProcessGroup, read_process_group

pytestmark = pytest.mark.torch
dist: Any = pytest.importorskip("torch.distributed")


def test_before_and_after_a_group_there_is_none() -> None:
    assert read_process_group() is None
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert read_process_group() == ProcessGroup(0, 1)  # a store of one process has no place
    finally:
        dist.destroy_process_group()
    assert read_process_group() is None


def test_ranks_that_meet_at_an_address_or_in_a_file_know_where(tmp_path: Path) -> None:
    port, file = free_port(), tmp_path / "meet"
    for method, place in (
        (f"tcp://127.0.0.1:{port}", f"127.0.0.1:{port}"),
        (f"file://{file}", str(file)),
    ):
        dist.init_process_group("gloo", init_method=method, rank=0, world_size=1)
        try:
            assert read_process_group() == ProcessGroup(0, 1, place)
        finally:
            dist.destroy_process_group()
