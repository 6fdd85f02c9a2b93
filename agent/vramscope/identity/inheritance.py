"""What a watched process leaves to those that it starts: the options and the run that it is in.

By a variable of the environment, which children get on every way that there is to start one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from vramscope.config import Config

VARIABLE: Final = "VRAMSCOPE_PARENT"


class Inheritance(Struct, frozen=True):
    """What the ranks that a process starts by itself have in common with it."""

    config: Config
    run_name: str = ""
    key: str = ""
    """Key of the parent's launch; empty for what a launcher starts, which has one of its own."""
    seat_secret: str = ""
    """By which a child takes the place of the rank that its parent seemed to be."""


def bequeath(inheritance: Inheritance) -> None:
    """Leave this to all processes that are started from now on."""
    os.environ[VARIABLE] = msgspec.json.encode(inheritance).decode()


def disinherit() -> None:
    """Leave nothing to processes that are started from now on."""
    os.environ.pop(VARIABLE, None)


def inherited(environ: Mapping[str, str] | None = None) -> Inheritance | None:
    """What the process that started this one has left to it, if that was watched.

    Args:
        environ: variables to read; the process's own by default.
    """
    text = (os.environ if environ is None else environ).get(VARIABLE)
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=Inheritance)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None  # another version's, or somebody else's
