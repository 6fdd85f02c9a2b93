"""A function's own signature makes the form, and what cannot be one is refused in words."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import msgspec
import pytest

from vramscope.commands.user_form import DeclarationError, form_of
from vramscope_protocol.user_commands import UserCommand, UserParam


def save(
    tag: str,
    keep: Annotated[int, (1, 9)] = 3,
    share: float = 1,
    *,
    quick: bool = False,
    kind: Literal["whole", "weights"] = "whole",
) -> None:
    """Save a checkpoint, e.g. before
    something risky. Only rank 0 does.

    More about it.
    """


def test_parameters_defaults_and_the_first_sentence_make_the_form() -> None:
    assert form_of(save) == UserCommand(
        name="user.save",
        summary="Save a checkpoint, e.g. before something risky.",
        params=[
            UserParam("tag", "str"),
            UserParam("keep", "int", 3, least=1, most=9),
            UserParam("share", "float", 1.0),
            UserParam("quick", "bool", False),
            UserParam("kind", "choice", "whole", ["whole", "weights"]),
        ],
    )


def test_another_name_and_where_it_runs() -> None:
    form = form_of(lambda: None, "look", right="view", place="agent thread")
    assert (form.name, form.right, form.place) == ("user.look", "view", "agent thread")
    assert form.summary == ""
    assert form_of(save, same_step=True).same_step
    assert form_of(save, changes_training=True).changes_training
    assert not form.changes_training


@pytest.mark.parametrize(
    ("annotation", "least", "most"),
    [
        (Annotated[int, msgspec.Meta(ge=2, le=5)], 2, 5),
        (Annotated[int, msgspec.Meta(gt=2, lt=5)], 3, 4),
        (Annotated[float, msgspec.Meta(ge=0.5)], 0.5, None),
        (Annotated[int, (None, 7), "a word"], None, 7),
        (int, None, None),
    ],
)
def test_bounds(annotation: Any, least: float | None, most: float | None) -> None:
    def function(x: Any) -> None: ...

    function.__annotations__["x"] = annotation
    (param,) = form_of(function).params
    assert (param.least, param.most) == (least, most)


def test_a_default_says_the_type_where_nothing_else_does() -> None:
    def function(a=1, b="x", c=True, d=0.5): ...  # type: ignore[no-untyped-def]

    assert [param.kind for param in form_of(function).params] == ["int", "str", "bool", "float"]


def test_methods_and_partials_are_functions() -> None:
    class Trainer:
        def save(self, tag: str = "x") -> None: ...

    assert [param.name for param in form_of(Trainer().save).params] == ["tag"]
    assert form_of(functools.partial(save, "x"), "now").name == "user.now"


def untyped(x): ...  # type: ignore[no-untyped-def]
def lists(x: list[int]) -> None: ...
def nothing(x: int | None = None) -> None: ...
def numbers(x: Literal[1, 2]) -> None: ...
def many(*x: int) -> None: ...
def by_place(x: int, /) -> None: ...
def wrong_default(x: Annotated[int, (1, 4)] = 9) -> None: ...
def wrong_type(x: int = "a") -> None: ...  # type: ignore[assignment]
def huge(x: int = 1 << 70) -> None: ...
def unknown(x: NoSuchType) -> None: ...  # type: ignore[name-defined]  # noqa: F821
async def later() -> None: ...
def pieces() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (untyped, "untyped: x: expected int, float, str, bool or Literal of texts, got no type"),
        (lists, "got list"),
        (nothing, "nothing: x: expected a default that is not None"),
        (numbers, "expected int, float, str, bool or Literal of texts"),
        (many, "parameters that can be given by name"),
        (by_place, "parameters that can be given by name"),
        (wrong_default, "x: expected at most 4, got '9'"),
        (wrong_type, "x: expected int, got 'a'"),
        (huge, "huge: x: expected 64 bits"),
        (unknown, "unknown: its parameters cannot be read"),
        (later, "expected a plain function"),
        (pieces, "expected a plain function"),
        (5, "expected a function, got 5"),
    ],
)
def test_what_cannot_be_a_command_is_refused(function: Any, message: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        form_of(function)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"name": "a b"},
        {"name": "x" * 61},
        {"name": "\udc80"},
        {"right": "root"},
        {"place": "anywhere"},
        {"same_step": True, "place": "agent thread"},
        {"changes_training": True, "right": "view"},
        {"changes_training": "yes"},
    ],
)
def test_so_is_what_the_server_could_not_read(options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        form_of(save, **options)


def test_texts_that_no_encoding_has_are_refused() -> None:
    def function(x: str = "\udc80") -> None: ...

    with pytest.raises(DeclarationError):
        form_of(function)


def test_no_more_parameters_than_a_form_may_have() -> None:
    def function() -> None: ...

    code = f"def function({', '.join(f'p{i}=1' for i in range(17))}): pass"
    names: dict[str, Callable[..., None]] = {}
    exec(code, names)
    with pytest.raises(DeclarationError, match="at most 16 parameters, got 17"):
        form_of(names["function"])
