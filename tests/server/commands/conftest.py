"""The database of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from vramscope_server.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A database of its own for each test."""
    opened = Store.open(f"sqlite:///{tmp_path / 'x.db'}")
    yield opened
    opened.close()
