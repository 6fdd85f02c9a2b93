"""What shows a server that a process belongs to its run, and a stream to its process.

The first is made of what the run's id is made of: every rank finds it by itself, nobody finds it
from the id. The second is random, and children get it with the environment: a process that starts
ranks may seem to be one of them until they take its place.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

_BYTES: Final = 16


def run_secret(run_name: str, key: str) -> str:
    """What all ranks of a launch know.

    Args:
        run_name: name of the run.
        key: what the launch has, and no other.
    """
    text = f"vramscope run secret\0{run_name}\0{key}"
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def seat_secret(inherited: str = "") -> str:
    """What this process knows, with those that it starts and that which has started it.

    Args:
        inherited: what a watched process that started this one has left to it; it is kept.
    """
    # A child by fork has a copy, which is the same as if it had inherited it.
    if inherited:
        _kept["secret"] = inherited
    return _kept.setdefault("secret", secrets.token_hex(_BYTES))


_kept: dict[str, str] = {}
