"""Numbers of a query that go to the database: none that it cannot hold."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import Query

from vramscope_protocol.integers import MAX_INT64

RankNumber: TypeAlias = Annotated[int, Query(ge=0, le=MAX_INT64)]
Int64Bound: TypeAlias = Annotated[int | None, Query(ge=-MAX_INT64, le=MAX_INT64)]
"""One end of a range of times or steps; open without it."""
