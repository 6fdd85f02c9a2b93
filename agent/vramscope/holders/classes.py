"""Classes of foreign objects, asked of ``type`` and never of the object: a proxy would lie."""

from __future__ import annotations

from typing import Any, Final, cast

PLAIN_DICT: Final[Any] = dict
"""Its methods, called on an instance of a class that has others of these names."""


def class_of(value: object) -> Any:
    """Never ``__class__``: a proxy answers with that of another object."""
    return type(value)


def class_name(value: object) -> str:
    """Name of an object's class."""
    return str(type(value).__name__)


def attributes_of(value: object) -> dict[str, Any]:
    """The dictionary of an object's attributes, an empty one if it has none."""
    try:
        attributes: Any = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return cast("dict[str, Any]", attributes) if type(attributes) is dict else {}
