"""Allocator settings that ``vramscope replay`` is asked about: ``--set`` on top of the recorded."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final

from vramscope.cli.problem import Problem

if TYPE_CHECKING:
    from vramscope_analysis.allocator import AllocatorSettings

Version = tuple[int, int]

_FRACTION: Final = "per_process_memory_fraction"
_LIST: Final = re.compile(r"\[[^\[\]]*\]")


def changes_of(texts: list[str]) -> dict[str, str]:
    """Values by key, of ``KEY=VALUE`` texts; the last of one key counts.

    Raises:
        Problem: a text without a value, an unknown key, or more than one setting in a value.
    """
    return dict(map(_change, texts))


def _change(text: str) -> tuple[str, str]:
    from vramscope_analysis.allocator.settings_parser import OPTION_SINCE, OTHER_OPTION_SINCE

    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not value:
        raise Problem(f"--set: expected KEY=VALUE, got {text!r}")
    if key in OTHER_OPTION_SINCE:
        raise Problem(f"--set: expected a setting of device memory, got {key!r}, which is none")
    if key not in OPTION_SINCE:
        near = difflib.get_close_matches(key, OPTION_SINCE, n=1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of: {', '.join(OPTION_SINCE)}"
        raise Problem(f"--set: no setting {key!r}; {hint}")
    if re.search("[,:]", _LIST.sub("", value)):
        raise Problem(f"--set {key}: expected one value, got {value!r}; give --set once for each")
    return key, value


def changed(
    recorded: AllocatorSettings, changes: dict[str, str], version: Version
) -> AllocatorSettings:
    """The recorded settings with changes, which hold together or not at all.

    Raises:
        Problem: a value that the release does not accept, alone or beside the others.
    """
    from vramscope_analysis.allocator import NEWEST_VERSION, parse_settings

    def parsed(keys: dict[str, str]) -> AllocatorSettings:
        settings = recorded
        # Releases without the option have the function, torch.cuda.set_per_process_memory_fraction.
        fraction = {key: value for key, value in keys.items() if key == _FRACTION}
        options = {key: value for key, value in keys.items() if key != _FRACTION}
        for part, release in ((options, version), (fraction, NEWEST_VERSION)):
            text = ",".join(f"{key}:{value}" for key, value in part.items())
            settings = parse_settings(text, settings, version=release)
        return settings

    try:
        return parsed(changes)
    except ValueError as error:
        problem = error
    for key, value in changes.items():
        try:
            parsed({key: value})
        except ValueError as error:
            raise Problem(f"--set {key}: {error}") from None
    raise Problem(f"--set: {problem}") from None


def limit_of(
    settings: AllocatorSettings, changes: dict[str, str], capacity_bytes: int | None
) -> int | None:
    """The limit that a fraction makes of what the device has, in bytes; None where there is none.

    Raises:
        Problem: a fraction that is asked for, of nothing.
    """
    if capacity_bytes is None:
        if _FRACTION in changes:
            what = "expected --capacity too, got none; a fraction of what?"
            raise Problem(f"--set {_FRACTION}: {what}")
        return None
    fraction = settings.per_process_memory_fraction
    return int(fraction * capacity_bytes) if fraction < 1 else None
