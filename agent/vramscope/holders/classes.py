"""Classes of foreign objects, asked of ``type`` and never of the object: a proxy would lie."""

from __future__ import annotations

from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final, cast

PLAIN_DICT: Final[Any] = dict
"""Its methods, called on an instance of a class that has others of these names."""

_PLACES: Final = frozenset({GetSetDescriptorType, MemberDescriptorType})
_DEMO: Final = "vramscope.demo."


def class_of(value: object) -> Any:
    """Never ``__class__``: a proxy answers with that of another object."""
    return type(value)


def class_name(value: object) -> str:
    """Name of an object's class."""
    return str(type(value).__name__)


def attributes_of(value: object) -> dict[str, Any]:
    """The dictionary of an object's attributes, an empty one if it has none."""
    for kind in type(value).__mro__:
        place: Any = kind.__dict__.get("__dict__")
        # A class may have a property of this name, which is code of the job.
        if type(place) in _PLACES:
            try:
                attributes: Any = place.__get__(value)
            except AttributeError:
                return {}
            return cast("dict[str, Any]", attributes) if type(attributes) is dict else {}
    return {}


class OwnClasses:
    """Knows which classes are the agent's: what its objects hold is nobody's business.

    A job has some of them in its variables: what ``vramscope.attach()`` returned.
    """

    def __init__(self) -> None:
        # By id: a class may refuse to be hashed. It is held, so that the id stays its.
        self._known: dict[int, tuple[bool, Any]] = {}

    def has(self, value: object) -> bool:
        """Whether an object is of such a class."""
        kind = class_of(value)
        known = self._known.get(id(kind))
        if known is None:
            module = kind.__dict__.get("__module__")
            name = module if class_of(module) is str else ""
            is_own = name.partition(".")[0] == "vramscope" and not name.startswith(_DEMO)
            known = self._known[id(kind)] = (is_own, kind)
        return known[0]
