"""Storages that are sent to another process are noted, and PyTorch is left as it was."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from vramscope.growth import shared_storages
from vramscope.growth.shared_storages import SharedStorages


class Untyped:
    def __init__(self, address: int) -> None:
        self.address = address

    def data_ptr(self) -> int:
        return self.address


class TypedStorage:
    """As PyTorch's, whose method every sending goes through."""

    def __init__(self, address: int) -> None:
        self._untyped_storage = Untyped(address)

    def _share_cuda_(self) -> str:
        return "a handle"


@pytest.fixture(autouse=True)
def storage_module(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = types.ModuleType("torch.storage")
    module.TypedStorage = TypedStorage  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.storage", module)
    return module


def test_addresses_are_noted_while_it_is_installed() -> None:
    original = TypedStorage._share_cuda_
    shared = SharedStorages()
    shared.install()
    assert TypedStorage(7)._share_cuda_() == "a handle"
    shared.remove()
    TypedStorage(8)._share_cuda_()
    assert shared.addresses == {7}
    assert TypedStorage._share_cuda_ is original


def test_a_release_without_it_is_left_alone(storage_module: Any) -> None:
    del storage_module.TypedStorage
    shared = SharedStorages()
    shared.install()
    shared.remove()
    shared.forget_after_fork()


def test_no_more_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_storages, "MAX_ADDRESSES", 2)
    shared = SharedStorages()
    shared.install()
    for address in range(5):
        TypedStorage(address)._share_cuda_()
    shared.remove()
    assert len(shared.addresses) == 2


def test_a_forked_child_notes_nothing() -> None:
    shared = SharedStorages()
    shared.install()
    shared.forget_after_fork()
    TypedStorage(7)._share_cuda_()
    shared.remove()
    assert shared.addresses == set()
