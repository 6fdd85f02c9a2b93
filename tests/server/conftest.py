"""A started application, for the tests that ask it something."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server_app import ServerApp, server_app


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerApp]:
    """A server of its own for each test; its token is ``TOKEN``."""
    with server_app(tmp_path) as started:
        yield started
