"""The options of PyTorch's CUDA allocator by name: which release knows them, their values, and
what becomes of them at run time. Pure.

Text is as in ``PYTORCH_CUDA_ALLOC_CONF``: ``name:value`` pairs with commas between them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

Release: TypeAlias = "tuple[int, int]"
Options: TypeAlias = "dict[str, str]"
"""Values as they are written, by name; an option that has its default may be missing."""

DEFAULT: Final = "default"
"""Our word for going back; PyTorch has none."""

_MIB: Final = 1 << 20
_LARGE_SEGMENT_MIB: Final = 20
_MAX_MIB: Final = 1 << 24
_SLOTS: Final = 16
"""Sizes from 1 MiB to 32 GiB that ``roundup_power2_divisions`` tells apart."""


class OptionsError(ValueError):
    """Not what this release accepts; the message is one line: expected, got."""


class Option(Struct, frozen=True):
    """One option of the allocator."""

    since: Release
    read: Callable[[str, str], str]
    """Takes name and value, returns the value as it is sent."""
    effect: str
    """What a change does while the job runs, as the rest of a sentence."""
    reset_since: Release | None = None
    """From which release on each call sets it back first, named or not."""
    default: str | None = None
    """What has to be sent to go back, where leaving it out does not."""


def _boolean(name: str, value: str) -> str:
    if value not in ("True", "False"):
        raise OptionsError(f"{name}: expected True or False, got {value!r}")
    return value


def _whole(least: int, most: int, what: str = "a whole number") -> Callable[[str, str], str]:
    def read(name: str, value: str) -> str:
        if not re.fullmatch(r"\d{1,18}", value) or not least <= int(value) <= most:
            raise OptionsError(f"{name}: expected {what} from {least} to {most}, got {value!r}")
        return str(int(value))

    return read


def _threads(name: str, value: str) -> str:
    number = int(_whole(1, 128)(name, value))
    if number & (number - 1):
        raise OptionsError(f"{name}: expected a power of two, got {value!r}")
    return str(number)


def _share(low_open: bool) -> Callable[[str, str], str]:
    def read(name: str, value: str) -> str:
        is_number = re.fullmatch(r"\d{0,9}\.?\d{0,17}", value) and re.search(r"\d", value)
        number = float(value) if is_number else -1.0
        if not (0 < number < 1 if low_open else 0 <= number <= 1):
            expected = "above 0 and below 1" if low_open else "from 0 to 1"
            raise OptionsError(f"{name}: expected a number {expected}, got {value!r}")
        return value

    return read


def _divisions(name: str, value: str) -> str:
    listed = re.fullmatch(r"\[(.+)\]", value)
    if listed is None:
        return _power_of_two(name, value, least=1)
    last = 0
    entries = listed[1].split(",")
    for place, entry in enumerate(entries):
        size, _, divisions = entry.partition(":")
        _power_of_two(name, divisions, least=0)
        if size == ">" and place == len(entries) - 1 and place > 0:
            continue
        mib = int(_power_of_two(name, size, least=1))
        if not last < mib <= 1 << (_SLOTS - 1):
            raise OptionsError(
                f"{name}: expected rising sizes up to {1 << (_SLOTS - 1)} MiB, got {size!r}"
            )
        last = mib
    return value


def _power_of_two(name: str, value: str, *, least: int) -> str:
    number = int(value) if re.fullmatch(r"\d{1,9}", value) else -1
    if number < least or number & (number - 1):
        raise OptionsError(f"{name}: expected a power of two, got {value!r}")
    return str(number)


_MIB_SIZE: Final = _whole(1, _MAX_MIB, "MiB")

OPTIONS: Final[dict[str, Option]] = {
    "expandable_segments": Option(
        (2, 4),
        _boolean,
        "holds for new allocations; what there is stays as it is, and is used on",
        default="False",
    ),
    "max_split_size_mb": Option(
        (2, 4),
        _MIB_SIZE,
        "holds at once for new splits; blocks that are split already stay so",
        reset_since=(2, 4),
    ),
    "max_non_split_rounding_mb": Option(
        (2, 6), _MIB_SIZE, "holds at once for new allocations", reset_since=(2, 11)
    ),
    "roundup_power2_divisions": Option(
        (2, 4),
        _divisions,
        "holds at once for new requests; free blocks of the old sizes are used on",
        reset_since=(2, 4),
    ),
    "garbage_collection_threshold": Option(
        (2, 4),
        _share(low_open=True),
        "acts only under a cap: set_memory_fraction with less than 1",
        reset_since=(2, 4),
    ),
    "large_segment_size_mb": Option(
        (2, 11),
        _whole(11, _MAX_MIB, "MiB"),
        "holds for new segments; a segment keeps its page size",
        default=str(_LARGE_SEGMENT_MIB),
    ),
    "per_process_memory_fraction": Option(
        (2, 10),
        _share(low_open=False),
        "was read when the allocator was made and now counts for throw_on_cudamalloc_oom alone: "
        "the command set_memory_fraction changes the cap",
        default="1.0",
    ),
    "throw_on_cudamalloc_oom": Option(
        (2, 12),
        _boolean,
        "holds at once: what exceeds the cap is refused without a retry",
        default="False",
    ),
    "release_lock_on_cudamalloc": Option(
        (2, 4), _boolean, "holds for new segments", default="False"
    ),
    "graph_capture_record_stream_reuse": Option(
        (2, 9), _boolean, "holds for the next capture of a CUDA graph", default="False"
    ),
    "pinned_use_cuda_host_register": Option(
        (2, 4), _boolean, "holds for new blocks of pinned host memory", default="False"
    ),
    "pinned_num_register_threads": Option(
        (2, 4), _threads, "holds for new blocks of pinned host memory", default="1"
    ),
    "pinned_use_background_threads": Option(
        (2, 6), _boolean, "holds for new blocks of pinned host memory", default="False"
    ),
    "pinned_reserve_segment_size_mb": Option(
        (2, 10), _MIB_SIZE, "is read when pinned host memory is first used"
    ),
    "pinned_max_round_threshold_mb": Option(
        (2, 13), _MIB_SIZE, "holds for new blocks of pinned host memory"
    ),
    "pinned_max_cached_size_mb": Option(
        (2, 13), _MIB_SIZE, "holds for new blocks of pinned host memory"
    ),
}
"""Those that may be set while the job runs."""


def known_names(release: Release) -> list[str]:
    """Options that a release of torch has."""
    return [name for name, option in OPTIONS.items() if option.since <= release]


def split_options(text: str) -> list[tuple[str, str]]:
    """Names and values as they stand in a text, whatever they are; an empty value where none is."""
    pairs = re.findall(r"[^,\[\]]*(?:\[[^\]]*\]?)?[^,\[\]]*", re.sub(r"\s", "", text))
    return [(name, value) for name, _, value in (pair.partition(":") for pair in pairs if pair)]


def read_options(text: str, release: Release) -> Options:
    """The options that a person asks for, every one of them checked.

    Raises:
        OptionsError: with what was expected and what came.
    """
    found: Options = {}
    for name, value in split_options(text):
        option = OPTIONS.get(name)
        if name == "backend":
            raise OptionsError("backend: expected another option: it is fixed once torch is loaded")
        if option is None or option.since > release:
            known = ", ".join(known_names(release))
            raise OptionsError(
                f"expected options of torch {release[0]}.{release[1]} ({known}), got {name[:80]!r}"
            )
        if name in found:
            raise OptionsError(f"{name}: expected it once")
        if value == DEFAULT:
            resets = option.reset_since is not None and option.reset_since <= release
            if not resets and option.default is None:
                raise OptionsError(f"{name}: expected a value: there is no way back to its default")
            found[name] = DEFAULT
        else:
            found[name] = option.read(name, value)
    if not found:
        raise OptionsError('expected options such as "expandable_segments:True", got none')
    return found


def merged(known: Mapping[str, str], asked: Mapping[str, str], release: Release) -> Options:
    """The full set to send: what holds now, with the changes.

    Raises:
        OptionsError: values that are fine alone and not together.
    """
    full = {**known}
    for name, value in asked.items():
        default = OPTIONS[name].default
        if value != DEFAULT:
            full[name] = value
        elif default is not None:
            full[name] = default
        else:
            full.pop(name, None)
    large = int(full.get("large_segment_size_mb", _LARGE_SEGMENT_MIB))
    least = large + 1 if release <= (2, 9) else large
    for name in ("max_split_size_mb", "max_non_split_rounding_mb"):
        if name in full and int(full[name]) < least:
            raise OptionsError(f"{name}: expected at least {least}, got {full[name]!r}")
    return full


def followed(known: Mapping[str, str], text: str, release: Release) -> Options:
    """What holds after a text was sent: some options go back first, others stay."""
    kept: Options = {}
    for name, value in known.items():
        option = OPTIONS.get(name)
        if option is None or option.reset_since is None or option.reset_since > release:
            kept[name] = value
    return kept | dict(split_options(text))


def options_text(options: Mapping[str, str]) -> str:
    """The text that sets these; the size that others are measured against comes first."""
    names = sorted(options, key=lambda name: (name != "large_segment_size_mb", name))
    return ",".join(f"{name}:{options[name]}" for name in names)


def reported_options(reported: Mapping[str, Any]) -> dict[str, str | None]:
    """What a snapshot says of the options that it has entries for; ``None`` is the default."""
    found: dict[str, str | None] = {}
    split = reported.get("max_split_size")
    if isinstance(split, int):
        mib = split // _MIB
        found["max_split_size_mb"] = str(mib) if 0 <= mib <= _MAX_MIB else None
    threshold = reported.get("garbage_collection_threshold")
    if isinstance(threshold, float):
        found["garbage_collection_threshold"] = f"{threshold:.9g}" if threshold > 0 else None
    expandable = reported.get("expandable_segments")
    if isinstance(expandable, bool):
        found["expandable_segments"] = "True" if expandable else None
    divisions = reported.get("roundup_power2_divisions")
    if isinstance(divisions, Mapping):
        by_size: dict[Any, Any] = {**divisions}
        if all(str(size).isdigit() for size in by_size):
            found["roundup_power2_divisions"] = _divisions_text(by_size)
    return found


def in_force(known: Mapping[str, str], reported: Mapping[str, Any]) -> Options:
    """What is known from texts, corrected by what the allocator reports itself."""
    full = {**known}
    for name, value in reported_options(reported).items():
        if value is not None:
            full[name] = value
        elif OPTIONS[name].default is not None and name in full:
            full[name] = str(OPTIONS[name].default)
        else:
            full.pop(name, None)
    return full


def _divisions_text(by_size: Mapping[Any, Any]) -> str | None:
    slots = sorted((int(size), int(value)) for size, value in by_size.items())
    values = {value for _, value in slots}
    if values <= {0}:
        return None
    if len(values) == 1:
        return str(values.pop())
    return f"[{','.join(f'{size}:{value}' for size, value in slots)}]"
