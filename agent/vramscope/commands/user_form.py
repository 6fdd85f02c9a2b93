"""The form of a command that the job declares, from its function: parameters, defaults, bounds."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, cast, get_args, get_origin

import msgspec

from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.integers import MAX_INT64
from vramscope_protocol.user_commands import (
    MAX_PARAMS,
    PREFIX,
    ParamKind,
    UserCommand,
    UserParam,
    check_user_params,
)

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,59}")
_KINDS: Final[dict[Any, ParamKind]] = {int: "int", float: "float", str: "str", bool: "bool"}
_EXPECTED: Final = "int, float, str, bool or Literal of texts"
_MAX_SUMMARY: Final = 400


class DeclarationError(ValueError):
    """A function cannot be a command; the message is one line: what was expected, what came."""


def form_of(
    function: Callable[..., Any],
    name: str | None = None,
    *,
    right: str = "control",
    place: str = "step boundary",
    same_step: bool = False,
    changes_training: bool = False,
) -> UserCommand:
    """What a form needs to know of a function.

    Args:
        function: what is to be called; its annotations and defaults make the form.
        name: what the command is called, without the prefix; the function's own by default.
        right: who may ask for it.
        place: where it runs.
        same_step: whether it runs at the end of the same step on all ranks.
        changes_training: whether a person confirms it once more.

    Raises:
        DeclarationError: it cannot be a command.
    """
    if not callable(function):
        raise DeclarationError(f"expected a function, got {_shown(function)}")
    called = name if name is not None else getattr(function, "__name__", None)
    if not isinstance(called, str) or not _NAME.fullmatch(called):
        raise DeclarationError(
            "expected a name of at most 60 letters, digits, '_', '-' or '.', that a letter "
            f"begins, got {_shown(called)}"
        )
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise DeclarationError(
            f"{called}: expected a plain function, got one that is to be waited for"
        )
    if same_step and place != "step boundary":
        raise DeclarationError(f"{called}: same_step is for commands at a step boundary")
    if changes_training and right == "view":
        raise DeclarationError(f"{called}: changes_training is for who has the right to control")
    params = [_param(called, each) for each in _parameters(called, function)]
    if len(params) > MAX_PARAMS:
        raise DeclarationError(
            f"{called}: expected at most {MAX_PARAMS} parameters, got {len(params)}"
        )
    plain: dict[str, Any] = {
        "name": PREFIX + called,
        "summary": _summary(function),
        "right": right,
        "place": place,
        "same_step": same_step,
        "changes_training": changes_training,
        "params": params,
    }
    try:
        # As the server will read it: what it would stumble over, the job hears of now.
        command = msgspec.msgpack.decode(msgspec.msgpack.encode(plain), type=UserCommand)
        defaults = {each.name: each.default for each in params if each.default is not None}
        needed = [each for each in command.params if each.name in defaults]
        check_user_params(msgspec.structs.replace(command, params=needed), defaults)
    except (msgspec.MsgspecError, VramscopeError, TypeError, ValueError, OverflowError) as error:
        text = error.message if isinstance(error, VramscopeError) else str(error)
        raise DeclarationError(f"{called}: {text}") from None
    return command


def _parameters(called: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        signature = inspect.signature(function, eval_str=True)
    except Exception as error:  # noqa: BLE001 - annotations are code of the job
        text = f"{type(error).__name__}: {error}"
        raise DeclarationError(f"{called}: its parameters cannot be read ({text})") from None
    parameters = list(signature.parameters.values())
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise DeclarationError(
                f"{called}: expected parameters that can be given by name, got {parameter}"
            )
    return parameters


def _param(called: str, parameter: inspect.Parameter) -> UserParam:
    annotation: Any = parameter.annotation
    metadata: list[Any] = []
    if get_origin(annotation) is Annotated:
        annotation, *metadata = get_args(annotation)
    if parameter.default is None:
        # In a form, no value is one that is still to be given.
        raise DeclarationError(f"{called}: {parameter.name}: expected a default that is not None")
    default = None if parameter.default is parameter.empty else parameter.default
    if annotation is parameter.empty and default is not None:
        annotation = cast(Any, type(default))
    param = UserParam(parameter.name, _kind(called, parameter.name, annotation))
    if param.kind == "choice":
        param.choices = list(get_args(annotation))
    if param.kind == "float" and type(default) is int:
        default = float(default)
    param.default = default
    if isinstance(default, int) and abs(default) > MAX_INT64:
        raise DeclarationError(f"{called}: {parameter.name}: expected 64 bits, got {default}")
    if param.kind in ("int", "float"):
        for each in metadata:
            _bound(param, each)
    return param


def _kind(called: str, name: str, annotation: Any) -> ParamKind:
    if get_origin(annotation) is Literal:
        choices = get_args(annotation)
        if all(isinstance(each, str) for each in choices):
            return "choice"
    elif isinstance(annotation, type) and annotation in _KINDS:
        return _KINDS[annotation]
    got = "no type" if annotation is inspect.Parameter.empty else _shown(annotation)
    raise DeclarationError(f"{called}: {name}: expected {_EXPECTED}, got {got}")


def _bound(param: UserParam, metadata: Any) -> None:
    """Take the bounds of a pair (least, most), or of what names them as msgspec.Meta does."""
    least = [param.least, _finite(getattr(metadata, "ge", None))]
    most = [param.most, _finite(getattr(metadata, "le", None))]
    if isinstance(metadata, tuple):
        pair: list[Any] = list(metadata)  # pyright: ignore[reportUnknownArgumentType]  # of the job
        least.append(_finite(pair[0]) if len(pair) == 2 else None)
        most.append(_finite(pair[1]) if len(pair) == 2 else None)
    is_whole = param.kind == "int"
    above = _finite(getattr(cast(Any, metadata), "gt", None))
    if above is not None:
        least.append(math.floor(above) + 1 if is_whole else math.nextafter(above, math.inf))
    below = _finite(getattr(cast(Any, metadata), "lt", None))
    if below is not None:
        most.append(math.ceil(below) - 1 if is_whole else math.nextafter(below, -math.inf))
    param.least = max((each for each in least if each is not None), default=None)
    param.most = min((each for each in most if each is not None), default=None)


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) <= MAX_INT64 else None


def _summary(function: Callable[..., Any]) -> str:
    """The first sentence of its docstring, on one line."""
    paragraph = (inspect.getdoc(function) or "").strip().partition("\n\n")[0]
    words = " ".join("".join(c if c.isprintable() else " " for c in paragraph).split())
    sentence = re.match(r".*?[.!?](?=\s+[A-Z]|$)", words)
    return (sentence[0] if sentence else words)[:_MAX_SUMMARY]


def _shown(value: Any) -> str:
    if isinstance(value, type):
        return value.__name__
    return repr(value)[:80]
