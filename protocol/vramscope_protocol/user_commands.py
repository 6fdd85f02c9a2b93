"""Commands that the job itself declares: what a form needs to know, and the check of its values."""

from __future__ import annotations

import math
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field

from vramscope_protocol.commands import Place, Right
from vramscope_protocol.errors import BAD_REQUEST, VramscopeError

PREFIX: Final = "user."
"""Begins the name of each, so that none can take the place of a built-in command."""
MAX_COMMANDS: Final = 64
MAX_PARAMS: Final = 16

ParamKind = Literal["int", "float", "str", "bool", "choice"]
_TYPES: Final[dict[str, type]] = {"int": int, "str": str, "bool": bool, "choice": str}
_MAX_TEXT: Final = 1000


class UserParam(Struct, omit_defaults=True):
    """One value of a form."""

    name: Annotated[str, Meta(max_length=64)]
    kind: ParamKind
    default: int | float | str | bool | None = None
    """None: it has to be given."""
    choices: list[str] = field(default_factory=list[str])
    least: float | None = None
    most: float | None = None


class UserCommand(Struct, omit_defaults=True):
    """One command that a job declares with ``vramscope.command``."""

    name: Annotated[str, Meta(max_length=80)]
    """With the prefix."""
    summary: Annotated[str, Meta(max_length=400)] = ""
    right: Right = "control"
    place: Place = "step boundary"
    same_step: bool = False
    changes_training: bool = False
    """A person confirms it once more."""
    params: Annotated[list[UserParam], Meta(max_length=MAX_PARAMS)] = field(
        default_factory=list[UserParam]
    )


def check_user_params(command: UserCommand, params: dict[str, Any]) -> dict[str, Any]:
    """The values that a command gets: what was given, checked, and the defaults.

    Raises:
        VramscopeError: ``bad_request``, with what was expected and what came.
    """
    declared = {param.name: param for param in command.params}
    unknown = sorted(params.keys() - declared.keys())
    if unknown:
        known = ", ".join(declared) or "none"
        raise VramscopeError(
            BAD_REQUEST,
            f"parameters of {command.name}: expected some of: {known}; got {unknown[0]!r}",
        )
    return {name: _value(command.name, param, params) for name, param in declared.items()}


def _value(command: str, param: UserParam, params: dict[str, Any]) -> Any:
    if param.name not in params:
        if param.default is None:
            raise _wrong(command, param, "a value", "none")
        return param.default
    value = params[param.name]
    if param.kind == "float":
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value):
            raise _wrong(command, param, "a number", value)
        value = float(value)
    elif type(value) is not _TYPES[param.kind]:
        raise _wrong(command, param, param.kind, value)
    if param.kind == "choice" and value not in param.choices:
        raise _wrong(command, param, f"one of {', '.join(param.choices)}", value)
    if isinstance(value, str) and len(value) > _MAX_TEXT:
        raise _wrong(command, param, f"at most {_MAX_TEXT} characters", len(value))
    if param.least is not None and not isinstance(value, str) and value < param.least:
        raise _wrong(command, param, f"at least {param.least:g}", value)
    if param.most is not None and not isinstance(value, str) and value > param.most:
        raise _wrong(command, param, f"at most {param.most:g}", value)
    return value


def _wrong(command: str, param: UserParam, expected: str, got: object) -> VramscopeError:
    text = f"parameters of {command}: {param.name}: expected {expected}, got {str(got)[:80]!r}"
    return VramscopeError(BAD_REQUEST, text)
