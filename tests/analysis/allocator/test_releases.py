"""The model against the allocators of the releases themselves."""

from __future__ import annotations

import pytest

from tests.support.allocator_scripts import RELEASES, Script, scripts_of


@pytest.mark.parametrize("release", RELEASES)
def test_every_call_has_the_same_effects_as_in_the_release(release: str) -> None:
    major, minor, _patch = release.removeprefix("torch-").split(".")
    scripts = scripts_of(release)

    for number, script in enumerate(scripts):
        for call, got, expected in Script((int(major), int(minor)), script).run():
            assert got == expected, f"script {number}, call {call}"

    assert len(scripts) >= 8
