"""The settings written as text for the environment, by option name, and as in a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from vramscope_analysis.allocator.settings import (
    MIB,
    POWER2_DIVISION_SLOTS,
    UNLIMITED,
    AllocatorSettings,
)
from vramscope_analysis.allocator.settings_parser import SettingsError, parse_settings

CONF_KEY: Final = "PYTORCH_CUDA_ALLOC_CONF"
"""Where a snapshot keeps the text that the options were last set with."""


def settings_text(settings: AllocatorSettings) -> str:
    """Value of ``PYTORCH_CUDA_ALLOC_CONF`` that gives these settings; only what is set.

    Raises:
        ValueError: a size that is not a multiple of 1 MiB: no text gives it.
    """
    default = AllocatorSettings()
    parts: list[str] = []
    if settings.expandable_segments:
        parts.append("expandable_segments:True")
    if settings.large_segment_bytes != default.large_segment_bytes:
        parts.append(f"large_segment_size_mb:{_mib(settings.large_segment_bytes)}")
    if settings.max_split_size_bytes != UNLIMITED:
        parts.append(f"max_split_size_mb:{_mib(settings.max_split_size_bytes)}")
    if settings.max_non_split_rounding_bytes != settings.large_segment_bytes:
        parts.append(f"max_non_split_rounding_mb:{_mib(settings.max_non_split_rounding_bytes)}")
    if any(settings.roundup_power2_divisions):
        parts.append(f"roundup_power2_divisions:{_divisions_text(settings)}")
    if settings.garbage_collection_threshold:
        parts.append(f"garbage_collection_threshold:{settings.garbage_collection_threshold}")
    if settings.per_process_memory_fraction != 1.0:
        parts.append(f"per_process_memory_fraction:{settings.per_process_memory_fraction}")
    if settings.throw_on_cudamalloc_oom:
        parts.append("throw_on_cudamalloc_oom:True")
    return ",".join(parts)


def settings_dict(settings: AllocatorSettings) -> dict[str, Any]:
    """Every option by PyTorch's name for it; sizes in MiB, an unset size is ``None``."""
    split = settings.max_split_size_bytes
    return {
        "expandable_segments": settings.expandable_segments,
        "max_split_size_mb": None if split == UNLIMITED else _as_mib(split),
        "max_non_split_rounding_mb": _as_mib(settings.max_non_split_rounding_bytes),
        "garbage_collection_threshold": settings.garbage_collection_threshold,
        "roundup_power2_divisions": _divisions_by_size(settings),
        "large_segment_size_mb": _as_mib(settings.large_segment_bytes),
        "per_process_memory_fraction": settings.per_process_memory_fraction,
        "throw_on_cudamalloc_oom": settings.throw_on_cudamalloc_oom,
    }


def snapshot_settings(settings: AllocatorSettings, text: str | None = None) -> dict[str, Any]:
    """What a snapshot says of these settings (``allocator_settings``).

    Args:
        settings: options in force.
        text: what they were last set with; made from the settings if not given.
    """
    split = settings.max_split_size_bytes
    return {
        CONF_KEY: settings_text(settings) if text is None else text,
        "max_split_size": -1 if split == UNLIMITED else split,
        "garbage_collection_threshold": settings.garbage_collection_threshold,
        "expandable_segments": settings.expandable_segments,
        "roundup_power2_divisions": _divisions_by_size(settings),
    }


def settings_from_snapshot(allocator_settings: Mapping[str, Any]) -> AllocatorSettings:
    """Settings of a recording, from its ``allocator_settings``.

    What has no entry of its own there comes from the text, as far as that can be read: it may
    be newer than this model, or only the last of several.

    Raises:
        ValueError: a value of another kind than PyTorch writes.
    """
    settings = _from_text(allocator_settings.get(CONF_KEY))
    changes: dict[str, Any] = {}
    split = allocator_settings.get("max_split_size")
    if split is not None:
        split_bytes = _number(split, "max_split_size")
        changes["max_split_size_bytes"] = UNLIMITED if split_bytes < 0 else int(split_bytes)
    threshold = allocator_settings.get("garbage_collection_threshold")
    if threshold is not None:
        changes["garbage_collection_threshold"] = float(
            _number(threshold, "garbage_collection_threshold")
        )
    expandable = allocator_settings.get("expandable_segments")
    if expandable is not None:
        changes["expandable_segments"] = bool(expandable)
    divisions = allocator_settings.get("roundup_power2_divisions")
    if divisions is not None:
        changes["roundup_power2_divisions"] = _divisions_from(divisions)
    return replace(settings, **changes)


def _from_text(text: object) -> AllocatorSettings:
    if not isinstance(text, str):
        return AllocatorSettings()
    try:
        return parse_settings(text)
    except SettingsError as error:
        return error.applied


def _divisions_from(divisions: object) -> tuple[int, ...]:
    if not isinstance(divisions, Mapping):
        raise ValueError(f"expected roundup_power2_divisions by size, got {divisions!r}")
    slots = [0] * POWER2_DIVISION_SLOTS
    by_size: dict[Any, Any] = dict(cast(Any, divisions))
    for size, value in by_size.items():
        mib = int(_number(int(size) if isinstance(size, str) else size, "a size"))
        slot = mib.bit_length() - 1
        if not 0 <= slot < POWER2_DIVISION_SLOTS or mib != 1 << slot:
            raise ValueError(f"expected a power of two up to 32768 MiB, got {size!r}")
        slots[slot] = int(_number(value, "roundup_power2_divisions"))
    return tuple(slots)


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"expected a number for {name}, got {value!r}")
    return value


def _divisions_by_size(settings: AllocatorSettings) -> dict[str, int]:
    return {str(1 << slot): value for slot, value in enumerate(settings.roundup_power2_divisions)}


def _divisions_text(settings: AllocatorSettings) -> str:
    """One number if it holds for all sizes, else a list that every release reads alike.

    Releases differ in whether ``>`` means the size before it as well, which has its value here.
    """
    slots = settings.roundup_power2_divisions
    if len(set(slots)) == 1:
        return str(slots[0])
    first = next(slot for slot, value in enumerate(slots) if value != slots[0]) - 1
    last = next(slot for slot in range(len(slots) - 1, -1, -1) if slots[slot] != slots[-1])
    entries = [f"{1 << slot}:{slots[slot]}" for slot in range(first, last + 2)]
    return f"[{','.join([*entries, f'>:{slots[-1]}'])}]"


def _mib(size_bytes: int) -> int:
    if size_bytes % MIB:
        raise ValueError(f"expected a multiple of 1 MiB, got {size_bytes} bytes")
    return size_bytes // MIB


def _as_mib(size_bytes: int) -> int | float:
    return size_bytes / MIB if size_bytes % MIB else size_bytes // MIB
