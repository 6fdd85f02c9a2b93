"""Which release's rules the emulated device follows."""

from __future__ import annotations

import re
from typing import Final

OLDEST: Final = (2, 4)
NEWEST: Final = (2, 14)


def modelled_version(text: str) -> tuple[int, int]:
    """The release of ``torch.__version__``, or the nearest one that the model knows."""
    match = re.match(r"(\d+)\.(\d+)", text)
    version = (int(match[1]), int(match[2])) if match else NEWEST
    return min(max(version, OLDEST), NEWEST)
