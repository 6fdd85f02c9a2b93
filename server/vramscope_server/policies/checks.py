"""Whether a policy may be made: its command, that command's parameters and ranks, its words."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

from vramscope_protocol.command_table import check_params, command_spec
from vramscope_protocol.commands import CommandSpec
from vramscope_protocol.errors import BAD_REQUEST, VramscopeError
from vramscope_protocol.user_commands import PREFIX
from vramscope_server.policies.definition import Action, Definition, SeriesCondition

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Characters that are not seen, or that make a line look like another one."""


def check_definition(definition: Definition) -> None:
    """Refuse what could never be done, or not without a word that is missing.

    Raises:
        VramscopeError: ``bad_request``, with the place, what was expected and what came.
    """
    for place, text in _texts(definition):
        if not text.strip() or any(unicodedata.category(char) in _UNSEEN for char in text):
            raise _wrong(place, "letters, digits, signs and spaces", f"{text[:80]!a}")
    spec = spec_of(definition.then)
    if spec is None:
        return  # what the job declares itself is known when a job is there
    check_params(spec, definition.then.params, dry_run=False)
    if spec.whole_run and definition.then.ranks != "all":
        raise _wrong("then.ranks", f"'all', {spec.name} is for a whole run", definition.then.ranks)
    if spec.changes_training and not definition.allow_training:
        raise _wrong("allow_training", f"true, {spec.name} changes training", "false")


def spec_of(action: Action) -> CommandSpec | None:
    """What is declared of the command; None: the job itself does.

    Raises:
        VramscopeError: ``bad_request``: there is no such command.
    """
    return None if action.command.startswith(PREFIX) else command_spec(action.command)


def _texts(definition: Definition) -> Iterator[tuple[str, str]]:
    yield "name", definition.name
    if definition.run is not None:
        yield "run", definition.run
    when = definition.when
    if isinstance(when, SeriesCondition):
        yield "when.series", when.series
    elif when.finding is not None:
        yield "when.finding", when.finding
    yield "then.command", definition.then.command


def _wrong(place: str, expected: str, got: object) -> VramscopeError:
    return VramscopeError(BAD_REQUEST, f"policy: {place}: expected {expected}, got {got}")
