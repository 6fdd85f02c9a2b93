"""Frameworks run for real, on tiny models; the session is one that notes what it is told."""

from __future__ import annotations

import pytest

from tests.support.told_session import ToldSession
from vramscope import current


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> ToldSession:
    session = ToldSession()
    monkeypatch.setattr(current, "_session", session)
    return session
