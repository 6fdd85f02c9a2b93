"""``python -m vramscope`` is ``vramscope``."""

from __future__ import annotations

import sys

from vramscope.cli import main

if __name__ == "__main__":
    sys.exit(main())
