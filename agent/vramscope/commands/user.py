"""The commands that the job declares with ``vramscope.command``: their table, and their calls.

A declaration stays when the agent goes: functions are declared once, while their modules are
imported, and the agent may come later, or come again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from vramscope.commands.call import Call
from vramscope.commands.plain_answer import plain_answer
from vramscope.commands.user_form import DeclarationError, form_of
from vramscope.guard import Attempt, guarded, summary
from vramscope.notices import write_line
from vramscope_protocol.commands import CommandSpec, Receipt
from vramscope_protocol.errors import BAD_REQUEST, VramscopeError
from vramscope_protocol.messages import Command
from vramscope_protocol.user_commands import MAX_COMMANDS, UserCommand, check_user_params


class _Declared(NamedTuple):
    form: UserCommand
    function: Callable[..., Any]


class UserCommands:
    """A table of declared commands. Any thread."""

    def __init__(self) -> None:
        self._declared: dict[str, _Declared] = {}

    def declare(self, function: Callable[..., Any], form: UserCommand) -> None:
        """Take a command; one of the same name is replaced.

        Raises:
            DeclarationError: there are too many.
        """
        if form.name not in self._declared and len(self._declared) >= MAX_COMMANDS:
            raise DeclarationError(f"{form.name}: {MAX_COMMANDS} commands are declared already")
        self._declared[form.name] = _Declared(form, function)

    def forms(self) -> list[UserCommand]:
        """Every declared command, in the order of declaration."""
        return [each.form for each in list(self._declared.values())]

    def names(self) -> list[str]:
        """Their names, with the prefix."""
        return list(self._declared)

    def spec(self, name: str) -> CommandSpec:
        """The declaration of one, as built-in commands have it.

        Raises:
            VramscopeError: ``bad_request``, with the names that exist.
        """
        form = self._find(name).form
        return CommandSpec(
            form.name,
            form.right,
            form.place,
            form.summary,
            same_step=form.same_step,
            changes_training=form.changes_training,
        )

    def check(self, command: Command) -> dict[str, Any]:
        """The values for its call.

        Raises:
            VramscopeError: ``bad_request``, with what is wrong.
        """
        form = self._find(command.name).form
        if command.dry_run:
            raise VramscopeError(BAD_REQUEST, f"{form.name} has no dry run")
        return check_user_params(form, command.params)

    def run(self, name: str, call: Call) -> Receipt:
        """Call the function of the job.

        Raises:
            Exception: whatever it raises.
        """
        form, function = self._find(name)
        try:
            value = function(**call.params)
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - it would end the job
            return Receipt("failed", message=f"{form.name} raised {summary(error)}; it was kept")
        answer: Any = None
        is_itself = False
        with Attempt() as attempt:
            answer, is_itself = plain_answer(value)
        message = f"{form.name} has run."
        if attempt.error is not None:
            message += f" Its answer cannot be shown: {summary(attempt.error)}"
        elif not is_itself:
            message += " Its answer is shown in Python's words: it is no plain data, or too long."
        return Receipt("done", message=message, result=answer)

    def _find(self, name: str) -> _Declared:
        found = self._declared.get(name)
        if found is None:
            known = ", ".join(self._declared) or "none"
            raise VramscopeError(BAD_REQUEST, f"no command named {name!r}; this job has: {known}")
        return found


DECLARED = UserCommands()
"""Those of this process."""


def declare(function: Any, name: Any, **options: Any) -> None:
    """Declare a function of the job as a command; says why in one line where that cannot be."""
    with guarded("user command"):
        try:
            DECLARED.declare(function, form_of(function, name, **options))
        except DeclarationError as error:
            write_line(f"no command of the job: {error}")
