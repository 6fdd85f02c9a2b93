"""The page: static files that the server serves, and nothing that Python runs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

STATIC_DIR: Final = Path(__file__).resolve().parent
"""Folder that the server mounts at ``/static``: ``css/`` and ``js/`` lie directly in it."""

INDEX_HTML: Final = STATIC_DIR / "index.html"
"""The one document; every page path (``/``, ``/runs/...``) answers with it."""
