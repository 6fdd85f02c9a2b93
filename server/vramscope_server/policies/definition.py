"""What a policy says: when, for how long, what then, how often. Checked when it is read."""

from __future__ import annotations

import math
from typing import Annotated, Any, Final, Literal, TypeVar

from msgspec import Meta, Struct, ValidationError, convert, field, to_builtins

from vramscope_analysis.diagnosis.finding import Severity
from vramscope_protocol.errors import BAD_REQUEST, VramscopeError

_T = TypeVar("_T")

LEAST_EVERY_S: Final = 10.0
MOST_EVERY_S: Final = 7 * 24 * 3600.0

Mode = Literal["dry_run", "act"]
RankNumber = Annotated[int, Meta(ge=0, lt=1 << 31)]


class SeriesCondition(Struct, forbid_unknown_fields=True, frozen=True):
    """The value of a series is above or below a bound."""

    series: Annotated[str, Meta(min_length=1, max_length=200)]
    op: Literal[">", "<"]
    value: float
    ranks: Literal["any", "all"] = "any"
    """On one rank at least, or on every one."""


class FindingCondition(Struct, forbid_unknown_fields=True, frozen=True):
    """A finding holds that nobody has muted."""

    finding: Annotated[str, Meta(max_length=64)] | None
    """Its kind; none is any."""
    severity: Severity = "warning"
    """At least."""
    confirmed: bool = True
    """One that is only suspected does not count."""


class Hold(Struct, forbid_unknown_fields=True, frozen=True):
    """For how long the condition has to hold, in seconds or in steps."""

    seconds: Annotated[float, Meta(ge=0, le=86_400)] | None = None
    steps: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


class Action(Struct, forbid_unknown_fields=True, frozen=True):
    """The command that is run."""

    command: Annotated[str, Meta(min_length=1, max_length=200)]
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    ranks: (
        Literal["all", "matching"]
        | Annotated[list[RankNumber], Meta(min_length=1, max_length=4096)]
    ) = "all"
    """``matching``: those on which the condition holds."""


class _Body(Struct, forbid_unknown_fields=True):
    """A policy as it comes over the API, but for its condition, which is of one of two kinds."""

    name: Annotated[str, Meta(min_length=1, max_length=80)]
    when: dict[str, Any]
    then: Action
    every_s: Annotated[float, Meta(ge=LEAST_EVERY_S, le=MOST_EVERY_S)]
    run: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    hold: Hold | None = field(default=None, name="for")
    mode: Mode = "dry_run"
    allow_training: bool = False
    is_on: bool = False


class Definition(Struct, frozen=True):
    """A policy, in words that a person chose. ``run`` is the name or the id of one; none is all."""

    name: str
    run: str | None
    when: SeriesCondition | FindingCondition
    hold: Hold | None
    then: Action
    every_s: float
    mode: Mode
    allow_training: bool

    def as_dict(self) -> dict[str, Any]:
        """As the API has it."""
        return {
            "name": self.name,
            "run": self.run,
            "when": to_builtins(self.when),
            "for": None if self.hold is None else _given(self.hold),
            "then": to_builtins(self.then),
            "every_s": self.every_s,
            "mode": self.mode,
            "allow_training": self.allow_training,
        }

    def is_for(self, run_id: str, run_name: str) -> bool:
        """Whether it is for a run."""
        return self.run is None or self.run in (run_id, run_name)


def read_definition(body: object) -> tuple[Definition, bool]:
    """The policy that a body describes, and whether it is to be on.

    Raises:
        VramscopeError: ``bad_request``, with the place, what was expected and what came.
    """
    told = _convert(body, _Body, "$")
    when: SeriesCondition | FindingCondition
    if "series" in told.when:
        when = _convert(told.when, SeriesCondition, "$.when")
        if not math.isfinite(when.value):
            raise _wrong("when.value", "a finite number", when.value)
    elif "finding" in told.when:
        when = _convert(told.when, FindingCondition, "$.when")
    else:
        raise _wrong("when", "series or finding", ", ".join(map(str, told.when))[:80] or "neither")
    hold = told.hold
    if hold is not None and (hold.seconds is None) == (hold.steps is None):
        raise _wrong("for", "either seconds or steps", "both" if hold.seconds is not None else "{}")
    definition = Definition(
        told.name,
        told.run,
        when,
        hold,
        told.then,
        told.every_s,
        told.mode,
        told.allow_training,
    )
    return definition, told.is_on


def _given(hold: Hold) -> dict[str, float | int]:
    if hold.seconds is not None:
        return {"seconds": hold.seconds}
    assert hold.steps is not None
    return {"steps": hold.steps}


def _convert(value: object, kind: type[_T], place: str) -> _T:
    try:
        return convert(value, kind)
    except ValidationError as error:
        # msgspec says "Expected `int`, got `str` - at `$.for.steps`".
        text, at, path = str(error).partition("`$")
        raise VramscopeError(BAD_REQUEST, f"policy: {text}{at and f'`{place}'}{path}") from None


def _wrong(place: str, expected: str, got: object) -> VramscopeError:
    return VramscopeError(BAD_REQUEST, f"policy: {place}: expected {expected}, got {got}")
