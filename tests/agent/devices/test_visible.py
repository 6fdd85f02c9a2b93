"""The rules of CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import pytest

from vramscope.devices.visible import visible_devices

UUIDS = ["GPU-aaaa1111", "GPU-aaaa2222", "GPU-bbbb3333"]


@pytest.mark.parametrize(
    ("setting", "positions"),
    [
        (None, [0, 1, 2]),
        ("2,0", [2, 0]),
        (" 1 , 2 ", [1, 2]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("0,-1,1", [0]),
        ("0,7,1", [0]),
        ("0,0", []),
        ("GPU-bbbb3333,0", [2, 0]),
        ("GPU-bb", [2]),
        ("GPU-aaaa", []),
        ("bbbb3333", []),
    ],
)
def test_the_devices_that_cuda_shows(setting: str | None, positions: list[int]) -> None:
    assert [device.position for device in visible_devices(setting, UUIDS)] == positions


def test_a_mig_slice_is_known_by_its_uuid_alone() -> None:
    (device,) = visible_devices("MIG-1234", UUIDS)
    assert device.position is None
    assert device.uuid == "MIG-1234"
