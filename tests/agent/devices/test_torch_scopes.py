"""Open captures and pools are seen, and PyTorch is left as it was."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.fake_torch import FakeTorch, install_fake_torch
from vramscope.devices.torch_scopes import TorchScopes


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    return install_fake_torch(monkeypatch)


def test_a_capture_is_open_until_it_ends(fake: FakeTorch) -> None:
    scopes = TorchScopes()
    scopes.install()
    graphs: Any = fake.modules["torch.cuda.graphs"]
    assert scopes.open_scope() is None
    with graphs.graph():
        assert scopes.open_scope() == "a CUDA graph is being captured"
    assert scopes.open_scope() is None


def test_a_pool_inside_a_capture_is_the_innermost(fake: FakeTorch) -> None:
    scopes = TorchScopes()
    scopes.install()
    graphs: Any = fake.modules["torch.cuda.graphs"]
    memory: Any = fake.modules["torch.cuda.memory"]
    with graphs.graph():
        memory._cuda_beginAllocateToPool(0, (0, 1))
        assert scopes.open_scope() == "a memory pool is in use"
        memory._cuda_endAllocateToPool(0, (0, 1))
        assert scopes.open_scope() == "a CUDA graph is being captured"


def test_a_pool_that_was_open_before_us_may_close(fake: FakeTorch) -> None:
    scopes = TorchScopes()
    scopes.install()
    memory: Any = fake.modules["torch.cuda.memory"]
    memory._cuda_endAllocateToPool(0, (0, 1))
    assert scopes.open_scope() is None


def test_a_scope_that_fails_to_open_is_not_open(fake: FakeTorch) -> None:
    memory: Any = fake.modules["torch.cuda.memory"]

    def fail(device: int, pool: Any) -> None:
        raise RuntimeError("no such pool")

    memory._cuda_beginAllocateToPool = fail
    scopes = TorchScopes()
    scopes.install()
    with pytest.raises(RuntimeError, match="no such pool"):
        memory._cuda_beginAllocateToPool(0, (0, 1))
    assert scopes.open_scope() is None


def test_a_custom_allocator_is_noticed_before_it_exists(fake: FakeTorch) -> None:
    scopes = TorchScopes()
    scopes.install()
    c_module: Any = fake.modules["torch"]._C
    assert not scopes.has_custom_allocator
    assert c_module._cuda_customAllocator(1, 2) == (1, 2)
    assert scopes.has_custom_allocator


def test_removed_it_leaves_every_function_as_it_was(fake: FakeTorch) -> None:
    owners: list[Any] = [
        fake.modules["torch.cuda.memory"],
        fake.modules["torch.cuda.graphs"].graph,
        fake.modules["torch"]._C,
    ]
    before = [dict(vars(owner)) for owner in owners]
    scopes = TorchScopes()
    scopes.install()
    scopes.install()
    assert [dict(vars(owner)) for owner in owners] != before
    scopes.remove()
    assert [dict(vars(owner)) for owner in owners] == before


def test_a_wrapper_of_somebody_else_stays(fake: FakeTorch) -> None:
    memory: Any = fake.modules["torch.cuda.memory"]
    scopes = TorchScopes()
    scopes.install()

    def theirs(device: int, pool: Any) -> None:
        return None

    memory._cuda_beginAllocateToPool = theirs
    scopes.remove()
    assert memory._cuda_beginAllocateToPool is theirs


def test_without_torch_there_is_nothing_to_wrap(
    fake: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    for name in fake.modules:
        monkeypatch.delitem(sys.modules, name)
    scopes = TorchScopes()
    scopes.install()
    assert scopes.open_scope() is None


@pytest.mark.torch
def test_the_cpu_build_of_torch_is_left_usable() -> None:
    import torch

    scopes = TorchScopes()
    scopes.install()
    assert scopes.open_scope() is None
    assert torch.ones(2).sum().item() == 2
    scopes.remove()
