"""The ranges of the integers that travel.

MessagePack can carry integers up to 2**64 - 1; columns and databases hold signed 64-bit ones. What
would not fit is refused when it is decoded, before it can fail in the middle of a commit.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

MAX_INT64 = 2**63 - 1

Int64 = Annotated[int, Meta(ge=-(2**63), le=MAX_INT64)]
"""Any integer that a column or a database can hold."""

Count = Annotated[int, Meta(ge=0, le=MAX_INT64)]
"""A number of things, or an index that counts from 0."""

Seq = Annotated[int, Meta(ge=1, le=MAX_INT64)]
"""Number of a durable message; the first of a stream is 1."""
