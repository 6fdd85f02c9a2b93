"""A policy in one sentence, and why it acted in another. Pure."""

from __future__ import annotations

from vramscope_protocol.series import unit_of
from vramscope_server.commands.summary import format_bytes
from vramscope_server.policies.definition import Definition, FindingCondition, SeriesCondition
from vramscope_server.policies.watch import Met

_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


def says(definition: Definition) -> str:
    """ "When reserved_bytes.all.current > 60.0 GiB on any rank for 30 s, then empty_cache ..." """
    when, hold, then = definition.when, definition.hold, definition.then
    if isinstance(when, SeriesCondition):
        bound = value_text(when.series, when.value)
        condition = f"When {when.series} {when.op} {bound} on {when.ranks} rank"
    else:
        kind = f"a finding {when.finding!r}" if when.finding is not None else "any finding"
        stage = "is confirmed" if when.confirmed else "holds"
        condition = f"When {kind}, {when.severity} or worse, {stage}"
    if hold is not None:
        length = duration(hold.seconds) if hold.seconds is not None else f"{hold.steps} steps"
        condition += f" for {length}"
    where = {"all": "on all ranks", "matching": "on the ranks where it does"}
    ranks = where[then.ranks] if isinstance(then.ranks, str) else f"on {rank_names(then.ranks)}"
    mode = "" if definition.mode == "act" else " (dry run)"
    every = duration(definition.every_s)
    return f"{condition}, then {then.command} {ranks}, at most every {every}{mode}."


def why(definition: Definition, met: Met) -> str:
    """ "reserved_bytes.all.current was 61.2 GiB on rank 0, above 60.0 GiB for 31 s" """
    when = definition.when
    if isinstance(when, FindingCondition):
        text = f"{when.finding or 'a finding'}: {met.what}"
    else:
        assert met.value is not None
        side = "above" if when.op == ">" else "below"
        bound = value_text(when.series, when.value)
        was = f"{when.series} was {value_text(when.series, met.value)}"
        text = f"{was} on {rank_names(met.ranks)}, {side} {bound}"
    if definition.hold is None:
        return text
    is_of_steps = definition.hold.steps is not None
    return f"{text}, for {f'{met.held_steps} steps' if is_of_steps else duration(met.held_s)}"


def value_text(series: str, value: float) -> str:
    """A value with its unit."""
    unit = unit_of(series)
    if unit == "B" and value >= 0:
        return format_bytes(int(value))
    return f"{value:g} {unit}".rstrip()


def duration(seconds: float) -> str:
    """ "90 s", "10 min", "2 h" """
    for size_s, unit in _UNITS:
        if seconds >= size_s and seconds % size_s == 0:
            return f"{seconds / size_s:g} {unit}"
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def rank_names(ranks: tuple[int, ...] | list[int]) -> str:
    """ "rank 3", or "3 ranks" """
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"{len(ranks)} ranks"
