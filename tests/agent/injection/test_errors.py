"""What is raised says why in words, and in one word for programs."""

from __future__ import annotations

import pytest

from vramscope.injection import InjectionError, NotInjectable


@pytest.mark.parametrize("error", [InjectionError, NotInjectable])
def test_reason_and_kind(error: type[InjectionError] | type[NotInjectable]) -> None:
    raised = error("it is a 32-bit program", "architecture")
    assert str(raised) == raised.reason == "it is a 32-bit program"
    assert raised.kind == "architecture"
