"""Tensors on the host are summed up by what holds them; those on a device are left out."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.growth.host_tensors import HostTensors, host_tensors  # noqa: E402
from vramscope.holders.reach import Reach  # noqa: E402

pytestmark = pytest.mark.torch

SHAPE = (7, 1001)


def found_now(before: HostTensors) -> HostTensors:
    reach = Reach(60.0)
    plain = torch.Tensor
    reach.search(lambda value: type(value) is plain and tuple(value.shape) == SHAPE)
    found = host_tensors(reach, reach.found, before)
    reach.clear()
    return found


def made(device: str = "cpu") -> Any:
    return torch.empty(SHAPE, device=device)


def test_a_storage_counts_once_and_growth_is_what_came() -> None:
    kept = [made()]
    views = [kept[0].view(SHAPE)]
    before = found_now(HostTensors())
    kept += [made(), made()]
    (group,) = found_now(before).grown_since(before)
    assert (group.count, group.bytes) == (2, 2 * 4 * 7 * 1001)
    assert group.holder.chain[0] == "kept"
    assert len(views) == 1


def test_what_has_gone_is_no_growth() -> None:
    kept = [made(), made()]
    before = found_now(HostTensors())
    kept.pop()
    assert found_now(before).grown_since(before) == []


def test_tensors_elsewhere_are_left_out() -> None:
    kept = [made("meta")]
    assert found_now(HostTensors()).found == {}
    assert len(kept) == 1


def test_a_lazy_copy_stays_one() -> None:
    kept = [torch._lazy_clone(made())]
    found_now(HostTensors())
    assert torch._C._is_cow_tensor(kept[0])
