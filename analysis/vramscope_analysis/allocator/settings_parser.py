"""Reads the text of ``PYTORCH_CUDA_ALLOC_CONF``, as each release of torch does."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from vramscope_analysis.allocator.settings import (
    MIB,
    POWER2_DIVISION_SLOTS,
    UNLIMITED,
    AllocatorSettings,
)
from vramscope_analysis.allocator.version_rules import NEWEST_VERSION, Version, version_text

OPTION_SINCE: Final[dict[str, Version]] = {
    "max_split_size_mb": (2, 4),
    "garbage_collection_threshold": (2, 4),
    "roundup_power2_divisions": (2, 4),
    "expandable_segments": (2, 4),
    "max_non_split_rounding_mb": (2, 6),
    "per_process_memory_fraction": (2, 10),
    "large_segment_size_mb": (2, 11),
    "throw_on_cudamalloc_oom": (2, 12),
}
"""Options that the model follows, with the first modelled release that knows them."""

OTHER_OPTION_SINCE: Final[dict[str, Version]] = {
    "backend": (2, 4),
    "release_lock_on_cudamalloc": (2, 4),
    "pinned_use_cuda_host_register": (2, 4),
    "pinned_num_register_threads": (2, 4),
    "pinned_use_background_threads": (2, 6),
    "graph_capture_record_stream_reuse": (2, 9),
    "pinned_reserve_segment_size_mb": (2, 10),
    "pinned_free_catch_all": (2, 12),
    "pinned_max_round_threshold_mb": (2, 13),
    "pinned_max_cached_size_mb": (2, 13),
}
"""Options without an effect on device memory: accepted, not kept."""

_TOKEN: Final = re.compile(r"[,:\[\]]|[^,:\[\]]+")
_WHOLE: Final = re.compile(r"[+-]?\d+")
_DECIMAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LARGEST_MIB: Final = UNLIMITED // MIB


class SettingsError(ValueError):
    """A text that PyTorch does not accept. ``applied`` is what held before the bad part."""

    def __init__(self, message: str, applied: AllocatorSettings) -> None:
        super().__init__(message)
        self.applied = applied


def parse_settings(
    text: str, base: AllocatorSettings | None = None, *, version: Version = NEWEST_VERSION
) -> AllocatorSettings:
    """Settings with the options of a text changed; all others stay (``parseArgs``).

    Args:
        text: as in ``PYTORCH_CUDA_ALLOC_CONF``.
        base: settings to begin with; PyTorch's defaults if not given.
        version: torch release whose options and least values hold.

    Raises:
        SettingsError: an option or a value that the release does not accept.
    """
    reader = _Reader(text, base if base is not None else AllocatorSettings(), version)
    return reader.read()


def changed_settings(
    text: str, current: AllocatorSettings, *, version: Version = NEWEST_VERSION
) -> AllocatorSettings:
    """What a text makes of settings at run time (``_set_allocator_settings``).

    Some options go back to their defaults first, named or not; others keep their value.

    Raises:
        SettingsError: as :func:`parse_settings`.
    """
    rounding = current.max_non_split_rounding_bytes
    base = replace(
        current,
        max_split_size_bytes=UNLIMITED,
        roundup_power2_divisions=(0,) * POWER2_DIVISION_SLOTS,
        garbage_collection_threshold=0.0,
        max_non_split_rounding_bytes=(
            current.large_segment_bytes if version >= (2, 11) else rounding
        ),
    )
    return parse_settings(text, base, version=version)


class _Reader:
    """Reads the tokens of one text in turn (``ConfigTokenizer``)."""

    def __init__(self, text: str, base: AllocatorSettings, version: Version) -> None:
        self._tokens: list[str] = _TOKEN.findall(re.sub(r"\s", "", text))
        self._position = 0
        self._settings = base
        self._version = version
        self._seen: set[str] = set()

    def read(self) -> AllocatorSettings:
        self._read_large_segment_size()
        while self._position < len(self._tokens):
            name = self._next("an option")
            since = OPTION_SINCE.get(name) or OTHER_OPTION_SINCE.get(name)
            if since is None or since > self._version:
                known = f"an option of torch {version_text(self._version)}"
                raise self._error(known, name)
            self._skip(":")
            if name in OPTION_SINCE:
                self._settings = replace(self._settings, **_OPTIONS[name](self))
            else:
                self._skip_value()
            self._seen.add(name)
            if self._position < len(self._tokens):
                self._skip(",")
        return self._settings

    def max_split_size(self) -> dict[str, Any]:
        return {"max_split_size_bytes": self._split_mib("max_split_size_mb")}

    def max_non_split_rounding(self) -> dict[str, Any]:
        return {"max_non_split_rounding_bytes": self._split_mib("max_non_split_rounding_mb")}

    def large_segment_size(self) -> dict[str, Any]:
        mib = self._whole("large_segment_size_mb")
        if mib <= 10:
            raise self._error("a large_segment_size_mb above 10", str(mib))
        changes = {"large_segment_bytes": min(mib, _LARGEST_MIB) * MIB}
        settings = self._settings
        # The other option follows this one until it is set itself.
        if settings.max_non_split_rounding_bytes == settings.large_segment_bytes:
            changes["max_non_split_rounding_bytes"] = changes["large_segment_bytes"]
        return changes

    def threshold(self) -> dict[str, Any]:
        value = self._decimal("garbage_collection_threshold")
        if not 0.0 < value < 1.0:
            raise self._error("a garbage_collection_threshold above 0 and below 1", str(value))
        return {"garbage_collection_threshold": value}

    def fraction(self) -> dict[str, Any]:
        value = self._decimal("per_process_memory_fraction")
        if not 0.0 <= value <= 1.0:
            raise self._error("a per_process_memory_fraction from 0 to 1", str(value))
        return {"per_process_memory_fraction": value}

    def expandable_segments(self) -> dict[str, Any]:
        return {"expandable_segments": self._boolean("expandable_segments")}

    def throw_on_oom(self) -> dict[str, Any]:
        return {"throw_on_cudamalloc_oom": self._boolean("throw_on_cudamalloc_oom")}

    def divisions(self) -> dict[str, Any]:
        """One value for all sizes, or a list by size (``parseRoundUpPower2Divisions``)."""
        if not self._is_next("["):
            value = self._power_of_two("roundup_power2_divisions")
            return {"roundup_power2_divisions": (value,) * POWER2_DIVISION_SLOTS}
        fresh = "roundup_power2_divisions" not in self._seen
        slots = [0] * POWER2_DIVISION_SLOTS if fresh else [*self._settings.roundup_power2_divisions]
        self._skip("[")
        last, is_first = 0, True
        while not self._is_next("]"):
            boundary = self._next("a size in MiB")
            self._skip(":")
            value = self._power_of_two("roundup_power2_divisions", zero=True)
            if boundary == ">":
                # Up to 2.9 that includes the last size before it.
                start = last + (self._version >= (2, 10))
                slots[start:] = [value] * (POWER2_DIVISION_SLOTS - start)
            else:
                last = self._slot(boundary)
                # What lies below the first size is divided as that is.
                slots[0 if is_first else last : last + 1] = [value] * (last + 1 if is_first else 1)
                is_first = False
            if not self._is_next("]"):
                self._skip(",")
        self._skip("]")
        return {"roundup_power2_divisions": tuple(slots)}

    def _slot(self, boundary: str) -> int:
        match = _WHOLE.match(boundary)
        mib = int(match[0]) if match else 0
        if mib <= 0 or mib & (mib - 1):
            raise self._error("a power of two in MiB", boundary)
        return min(mib.bit_length() - 1, POWER2_DIVISION_SLOTS - 1)

    def _read_large_segment_size(self) -> None:
        """Read first what other options are measured against, wherever it stands."""
        for place, token in enumerate(self._tokens):
            if token == "large_segment_size_mb" and self._version >= (2, 11):
                self._position = place + 1
                self._skip(":")
                self._settings = replace(self._settings, **self.large_segment_size())
        self._position = 0

    def _split_mib(self, name: str) -> int:
        """Bytes of an option whose least value is the size of a large segment."""
        mib = self._whole(name)
        if mib < 0:
            return UNLIMITED  # as an unsigned number it is above every size
        least = self._settings.large_segment_bytes // MIB
        least += self._version <= (2, 9)
        if mib < least:
            raise self._error(f"a {name} of at least {least}", str(mib))
        return UNLIMITED if mib >= _LARGEST_MIB else mib * MIB

    def _whole(self, name: str) -> int:
        # As PyTorch, leave what follows the digits alone.
        match = _WHOLE.match(value := self._next(f"a value of {name}"))
        if match is None:
            raise self._error(f"a whole number for {name}", value)
        return int(match[0])

    def _power_of_two(self, name: str, *, zero: bool = False) -> int:
        value = self._whole(name)
        if value < 0 or value & (value - 1) or not (value or zero):
            raise self._error(f"a power of two{' or 0' if zero else ''} for {name}", str(value))
        return value

    def _decimal(self, name: str) -> float:
        match = _DECIMAL.match(value := self._next(f"a value of {name}"))
        if match is None:
            raise self._error(f"a number for {name}", value)
        return float(match[0])

    def _boolean(self, name: str) -> bool:
        value = self._next(f"a value of {name}")
        if value not in ("True", "False"):
            raise self._error(f"True or False for {name}", value)
        return value == "True"

    def _skip_value(self) -> None:
        is_list = self._next("a value") == "["
        while is_list and self._next("a closing bracket") != "]":
            pass

    def _skip(self, token: str) -> None:
        got = self._next(f"{token!r}")
        if got != token:
            raise self._error(f"{token!r}", got)

    def _is_next(self, token: str) -> bool:
        return self._position < len(self._tokens) and self._tokens[self._position] == token

    def _next(self, expected: str) -> str:
        if self._position >= len(self._tokens):
            raise self._error(expected, "the end")
        self._position += 1
        return self._tokens[self._position - 1]

    def _error(self, expected: str, got: str) -> SettingsError:
        return SettingsError(f"expected {expected}, got {got}", self._settings)


_OPTIONS: Final[dict[str, Callable[[_Reader], dict[str, Any]]]] = {
    "max_split_size_mb": _Reader.max_split_size,
    "garbage_collection_threshold": _Reader.threshold,
    "roundup_power2_divisions": _Reader.divisions,
    "expandable_segments": _Reader.expandable_segments,
    "max_non_split_rounding_mb": _Reader.max_non_split_rounding,
    "per_process_memory_fraction": _Reader.fraction,
    "large_segment_size_mb": _Reader.large_segment_size,
    "throw_on_cudamalloc_oom": _Reader.throw_on_oom,
}
