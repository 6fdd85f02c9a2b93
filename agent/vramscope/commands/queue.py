"""Commands that wait for their moment, and the states that they pass through.

Threads: the transport submits; the training thread runs what changes something, at step ends;
the sampler runs what only reads, and lets commands expire. Whoever takes a command out of the
dictionary of waiting ones owns it (``dict.pop`` is atomic), so no lock is held while one runs.
What goes on over further steps is kept the same way in ``ongoing_commands.py``, and what is to
happen at the same step on all ranks in ``prepared_commands.py``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

from msgspec import Struct, structs

from vramscope.commands.agreement import Agreement
from vramscope.commands.call import Answer, Call
from vramscope.commands.ongoing_commands import INTERRUPTED, OngoingCommands, failure
from vramscope.commands.prepared_commands import HELD_BACK, PreparedCommands, stood_text
from vramscope.guard import Attempt
from vramscope.sampling.clock import Clock
from vramscope_protocol.commands import CommandSpec, CommandState, Receipt
from vramscope_protocol.errors import BAD_REQUEST, CONFLICT, VramscopeError
from vramscope_protocol.messages import Command, CommandUpdate, Decision

MAX_WAITING: Final = 64
"""Commands that wait at most; further ones are refused."""
_REMEMBERED: Final = 1024
"""Ids kept, so that a command sent twice runs once."""
_MAX_DEADLINE_S: Final = 24 * 3600.0
_MAX_REFUSAL: Final = 500


class Handlers(Protocol):
    """Runs commands: see ``CommandHandlers``."""

    @property
    def names(self) -> list[str]:
        """Commands that can be run."""
        ...

    def spec(self, name: str) -> CommandSpec:
        """The declaration of a command; raises that there is none."""
        ...

    def check(self, command: Command) -> Any:
        """The parameters as :meth:`run` takes them; raises what is wrong with them."""
        ...

    def busy_reason(self) -> str | None:
        """Why no command may touch the device at this moment."""
        ...

    def run(self, name: str, call: Call) -> Answer:
        """Run one command, or begin it."""
        ...


class _Waiting(Struct):
    command: Command
    params: Any
    deadline_ns: int = 0
    at_boundary: bool = True
    busy_reason: str | None = None


class CommandQueue:
    """Takes commands, runs each once at its place before its deadline, and reports.

    Args:
        handlers: what runs them.
        clock: for deadlines and times.
        emit: takes each change of state; must not block.
        allow: says what may be done now: "observe" refuses what needs the control right.
        allow_commands: names that may run at all, ``None`` for no further limit.
        on_change: called on the training thread after commands that may have changed memory.
        step: the steps finished so far.
        on_coming: told the name of a command that will run at a step end, for what is in its way.
        agreement: where all ranks agree on what happens at the same step.
    """

    def __init__(
        self,
        handlers: Handlers,
        *,
        clock: Clock,
        emit: Callable[[CommandUpdate], None],
        allow: Callable[[], Literal["observe", "control"]] = lambda: "control",
        allow_commands: frozenset[str] | None = None,
        on_change: Callable[[], object] | None = None,
        step: Callable[[], int] = int,
        on_coming: Callable[[str], object] | None = None,
        agreement: Agreement | None = None,
    ) -> None:
        self._handlers = handlers
        self._clock = clock
        self._emit = emit
        self._allow = allow
        self._allow_commands = allow_commands
        self._on_change = on_change
        self._waiting: dict[str, _Waiting] = {}
        self._last_updates: OrderedDict[str, CommandUpdate] = OrderedDict()
        self._closed_because: str | None = None
        self._ongoing = OngoingCommands(clock, self._update)
        self._on_coming = on_coming
        self._prepared = PreparedCommands(
            agreement or Agreement(), step=step, tell=self._update, forget=self._forget
        )
        self.work = (self._waiting, self._ongoing, self._prepared)
        """One of them is not empty while a command waits for its moment, or goes on."""

    def accepted(self) -> list[str]:
        """Names of the commands that this rank would run."""
        return [name for name in self._handlers.names if self._prohibition(name) is None]

    def submit(self, command: Command) -> None:
        """Take a command; its fate is told through ``emit``."""
        known = self._last_updates.get(command.id)
        if known is not None and not _is_later_attempt(command, known):
            # Sent twice: the server may have missed the answer, and may ask a third time.
            self._last_updates.move_to_end(command.id)
            self._emit(structs.replace(known, seq=0))
            return
        try:
            params = self._check(command)
            if command.at_step is not None:
                self._prepared.prepare(command, params, command.at_step)
                return
        except VramscopeError as error:
            message = error.message[:_MAX_REFUSAL]  # it may quote what the server sent
            self._update(command.id, "refused", Receipt("refused", message=message))
            return
        deadline_s = min(max(0.0, command.deadline_s), _MAX_DEADLINE_S)  # NaN is 0 in this order
        self._update(command.id, "queued")
        self._waiting[command.id] = _Waiting(
            command,
            params,
            self._clock.monotonic_ns() + round(deadline_s * 1e9),
            self._is_at_boundary(command),
        )
        if self._on_coming is not None:
            self._on_coming(command.name)

    def decide(self, decision: Decision) -> None:
        """Take the server's word on a command that was prepared; the second time does nothing."""
        command = self._prepared.decide(decision)
        if command is not None and self._on_coming is not None:
            self._on_coming(command.name)

    @property
    def has_work(self) -> bool:
        """Whether a command waits for its moment, or goes on."""
        return any(self.work)

    def run_at_boundary(self, step: int) -> None:
        """Run what waits for a step end; on the training thread, right after ``step``."""
        if not self.has_work:
            return
        self._expire()
        changed = False
        if self._ongoing and self._handlers.busy_reason() is None:
            changed = self._ongoing.poll(step)
        if self._prepared:
            prepared = self._prepared.meet(step, self._handlers.busy_reason())
            if prepared is not None:
                self._execute(prepared.command, prepared.params, step, prepared.stood_s)
                changed |= not prepared.command.dry_run
        # Nothing that could hold this rank up alone, between its promise and the decision.
        held_back = HELD_BACK if self._prepared else None
        for waiting in list(self._waiting.values()):
            if not waiting.at_boundary:
                continue
            # Asked anew for each: one command may take long, and the answer is cheap.
            waiting.busy_reason = held_back or self._handlers.busy_reason()
            if waiting.busy_reason is None:
                self._run(waiting, step)
                changed |= not waiting.command.dry_run
        if changed and self._on_change is not None:
            self._on_change()

    def run_on_agent_thread(self, step: int) -> None:
        """Run what only reads and let the rest expire; on the sampler thread, once a tick."""
        if not self._waiting and not self._ongoing:
            return
        self._ongoing.poll_on_agent_thread()
        for waiting in list(self._waiting.values()):
            if not waiting.at_boundary:
                self._run(waiting, step)
        self._expire()

    def tell_progress(self, identity: str, step: int, text: str) -> None:
        """A command that runs within one step end says that it still does."""
        self._update(identity, "running", Receipt("running", step, message=text))

    def close(self, reason: str) -> None:
        """End every command, and refuse further ones: of what still waits, nothing was done."""
        self._closed_because = reason
        unrun = f"{reason} before the command could run"
        self._prepared.close(unrun)
        self._ongoing.close(reason)
        for identity in list(self._waiting):
            if self._waiting.pop(identity, None) is not None:
                receipt = Receipt("failed", message=f"{unrun}; nothing was changed")
                self._update(identity, "failed", receipt)

    def _check(self, command: Command) -> Any:
        """The parameters of a command that may run; raises why it is refused."""
        params = self._handlers.check(command)
        refusal = self._closed_because
        if refusal is None and len(self._waiting) >= MAX_WAITING:
            refusal = f"{MAX_WAITING} commands wait already"
        refusal = refusal or self._refusal(command.name)
        if refusal is not None:
            raise VramscopeError(CONFLICT, refusal)
        # Ranks stand still for it: that is no more than the command itself may do.
        if command.at_step is not None and not self._handlers.spec(command.name).same_step:
            raise VramscopeError(
                BAD_REQUEST, f"{command.name} is not run at the same step on all ranks"
            )
        return params

    def _is_at_boundary(self, command: Command) -> bool:
        return self._handlers.spec(command.name).place == "step boundary"

    def _refusal(self, name: str) -> str | None:
        if name not in self._handlers.names:
            return f"this agent cannot run {name}"
        return self._prohibition(name)

    def _prohibition(self, name: str) -> str | None:
        if self._allow() == "observe" and self._handlers.spec(name).right != "view":
            return (
                f"this agent only lets itself be observed; {name} would change the job, which "
                "--allow control or VRAMSCOPE_ALLOW=control at its start permits"
            )
        if self._allow_commands is not None and name not in self._allow_commands:
            return f"this agent's allow-list does not name {name}"
        return None

    def _run(self, waiting: _Waiting, step: int) -> None:
        # Else another thread was quicker: expired, or closed.
        if self._waiting.pop(waiting.command.id, None) is not None:
            self._execute(waiting.command, waiting.params, step)

    def _execute(self, command: Command, params: Any, step: int, stood_s: float = 0.0) -> None:
        self._update(command.id, "running")
        answer: Answer = Receipt("failed", message=INTERRUPTED)
        try:
            call = Call(params, command.dry_run, step, command.id)
            with Attempt() as attempt:
                answer = self._handlers.run(command.name, call)
            if attempt.error is not None:
                answer = Receipt("failed", message=failure(attempt.error))
        finally:
            # Also when Ctrl-C came in the middle: that goes on to the job, after the receipt.
            if isinstance(answer, Receipt):
                answer.step = step
                answer.dry_run = command.dry_run
                answer.message = " ".join(filter(None, (answer.message, stood_text(stood_s))))
                self._update(command.id, answer.state, answer)
            else:
                self._ongoing.add(command.id, answer, command.deadline_s, step)

    def _expire(self) -> None:
        self._ongoing.expire()
        now_ns = self._clock.monotonic_ns()
        for identity, waiting in list(self._waiting.items()):
            if now_ns < waiting.deadline_ns or self._waiting.pop(identity, None) is None:
                continue
            within = f"within {waiting.command.deadline_s:g} s; nothing was changed"
            text = f"expired: no optimizer step {within}"
            if waiting.busy_reason is not None:
                text = f"expired: {waiting.busy_reason} at each optimizer step {within}"
            self._update(identity, "expired", Receipt("expired", message=text))

    def _update(
        self,
        identity: str,
        state: CommandState,
        receipt: Receipt | None = None,
        at_step: int | None = None,
    ) -> None:
        update = CommandUpdate(0, identity, state, self._clock.time_ns(), receipt, at_step)
        self._last_updates[identity] = update
        self._last_updates.move_to_end(identity)
        while len(self._last_updates) > _REMEMBERED:
            self._last_updates.popitem(last=False)
        self._emit(update)

    def _forget(self, identity: str, at_step: int) -> None:
        """What was prepared for a step was dropped, and may come again for a later one."""
        known = self._last_updates.get(identity)
        if known is not None and known.at_step == at_step:
            self._last_updates.pop(identity, None)


def _is_later_attempt(command: Command, known: CommandUpdate) -> bool:
    """Whether a command comes again for another step, after one that it did not run at."""
    if command.at_step is None or known.at_step is None:
        return False
    return command.at_step > known.at_step
