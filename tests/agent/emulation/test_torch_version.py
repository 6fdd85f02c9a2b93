from __future__ import annotations

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.11.0+cu130", (2, 11)),
        ("2.4.1", (2, 4)),
        ("2.9.0a0+git1234", (2, 9)),
        ("2.3.1", (2, 4)),
        ("1.13.1", (2, 4)),
        ("2.15.0", (2, 14)),
        ("3.0.0", (2, 14)),
        ("parrot", (2, 14)),
    ],
)
def test_the_nearest_release_that_is_modelled(text: str, version: tuple[int, int]) -> None:
    from vramscope.emulation.torch_version import modelled_version

    assert modelled_version(text) == version
