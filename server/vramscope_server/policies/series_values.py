"""The known values of one series in one batch, read once for every policy that is about it."""

from __future__ import annotations

from dataclasses import dataclass

from vramscope_server.rows import Rows, json_values


@dataclass(frozen=True)
class SeriesValues:
    """Values with their times and steps; at least one."""

    kind: str
    """Of samples, or of steps."""
    values: list[int | float]
    time_ns: list[int]
    steps: list[int]
    lowest: int | float
    highest: int | float


def series_values(rows: Rows, series: str) -> SeriesValues | None:
    """What a batch knows of a series; None if nothing."""
    column = rows.column(series)
    if column is None:
        return None
    values = json_values(column)
    times: list[int] = rows.time_ns.tolist()
    steps: list[int] = rows.step.tolist()
    if None in values:
        # What is not known neither holds nor ends anything.
        places = [place for place, value in enumerate(values) if value is not None]
        times, steps = [times[place] for place in places], [steps[place] for place in places]
    known = [value for value in values if value is not None]
    if not known:
        return None
    return SeriesValues(rows.kind, known, times, steps, min(known), max(known))
