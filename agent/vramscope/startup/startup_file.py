"""The ``.pth`` file that an installation puts among the environment's packages."""

from __future__ import annotations

import os
import site
import sysconfig
from typing import Final

NAME: Final = "vramscope.pth"


def has_startup_file() -> bool:
    """Whether the Python processes of this environment would attach when they are asked to."""
    folders = [sysconfig.get_path("purelib"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return any(os.path.exists(os.path.join(folder, NAME)) for folder in folders)
