"""What differs between the releases of torch, as named rules."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

Version: TypeAlias = tuple[int, int]
"""(major, minor) of a torch release."""

OLDEST_VERSION: Final = (2, 4)
NEWEST_VERSION: Final = (2, 14)
DEFAULT_VERSION: Final = (2, 11)


class TieBreak(Enum):
    """Which of several free blocks of equal size is taken (``BlockComparatorSize``)."""

    ADDRESS = "the lowest address"
    OLDEST_BLOCK = "the block object that was made first"
    OLDEST_MEMORY = "the memory that came from the device first, then the lowest address"


class PoolFallback(Enum):
    """When pools made with ``use_on_oom`` are tried (``try_mempool_fallback``)."""

    NEVER = "never"
    LAST = "after everything cached was released"
    FIRST = "before anything cached is released"


@dataclass(frozen=True)
class VersionRules:
    """The rules of one release.

    Args:
        tie_break: order of free blocks of one size.
        pool_fallback: when ``use_on_oom`` pools help out.
        newest_scope_first: of several begun scopes the last one gets a request, not the first
            (``get_pool``).
        only_captures_hold_back: scopes without a capture let events be processed and the cache
            be released (``malloc``, ``release_cached_blocks``).
        flush_in_scope_fails: ``empty_cache`` raises in a scope, where later releases skip it.
        full_fraction_lifts_limit: a memory fraction of 1 removes the limit, where earlier
            releases set it to all of the device (``setMemoryFraction``).
        fraction_is_option: ``per_process_memory_fraction`` is read when the allocator is made.
        pages_by_request: a pool with an allocator of its own gets no expandable segments, and a
            pool that helps out is searched as if there were none
            (``AllocParams::is_expandable_segments_active``).
        counts_rejections: ``throw_on_cudamalloc_oom`` and its counter exist.
        counts_private_pools: ``reserved_bytes_by_private_pools`` exists.
    """

    tie_break: TieBreak
    pool_fallback: PoolFallback
    newest_scope_first: bool
    only_captures_hold_back: bool
    flush_in_scope_fails: bool
    full_fraction_lifts_limit: bool
    fraction_is_option: bool
    pages_by_request: bool
    counts_rejections: bool
    counts_private_pools: bool


def tie_break_of(version: Version) -> TieBreak:
    """Order of free blocks of one size in a release."""
    if version <= (2, 11):
        return TieBreak.ADDRESS
    return TieBreak.OLDEST_BLOCK if version == (2, 12) else TieBreak.OLDEST_MEMORY


def pool_fallback_of(version: Version) -> PoolFallback:
    """When ``use_on_oom`` pools are tried in a release."""
    if version < (2, 8):
        return PoolFallback.NEVER
    return PoolFallback.LAST if version <= (2, 10) else PoolFallback.FIRST


def rules_of(version: Version) -> VersionRules:
    """Rules of a release.

    Raises:
        ValueError: a version whose rules are not modelled.
    """
    if not OLDEST_VERSION <= version <= NEWEST_VERSION:
        raise ValueError(
            f"expected a torch version from {version_text(OLDEST_VERSION)} to "
            f"{version_text(NEWEST_VERSION)}, got {version_text(version)}"
        )
    return VersionRules(
        tie_break=tie_break_of(version),
        pool_fallback=pool_fallback_of(version),
        newest_scope_first=version >= (2, 10),
        only_captures_hold_back=version >= (2, 13),
        flush_in_scope_fails=version <= (2, 7),
        full_fraction_lifts_limit=version >= (2, 10),
        fraction_is_option=version >= (2, 10),
        pages_by_request=version >= (2, 10),
        counts_rejections=version >= (2, 12),
        counts_private_pools=version >= (2, 13),
    )


def version_text(version: Version) -> str:
    """A version as people write it."""
    return ".".join(map(str, version))
