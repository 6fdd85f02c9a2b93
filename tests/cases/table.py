"""All cases that are scripts."""

from __future__ import annotations

from typing import Final

from tests.cases import fragments, harmless, leaks

CASES: Final = (*leaks.CASES, *fragments.CASES, *harmless.CASES)
