"""Lets a policy act: writes down that it does, asks the coordinator, and waits for the answers."""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from sqlalchemy import Connection

from vramscope_protocol.command_table import COMMANDS
from vramscope_protocol.commands import FINAL_STATES
from vramscope_protocol.errors import FORBIDDEN, RATE_LIMITED, VramscopeError
from vramscope_server.auth.principal import CONTROL, VIEW, Principal
from vramscope_server.commands.record import CommandRecord, record_from_dict
from vramscope_server.commands.request import CommandRequest, Issuer
from vramscope_server.commands.summary import sentence
from vramscope_server.policies.book import PolicyBook, audit_id
from vramscope_server.policies.record import Firing, FiringState, PolicyRecord
from vramscope_server.policies.watch import Met
from vramscope_server.policies.wording import why
from vramscope_server.store import audit, policies
from vramscope_server.store.store import Store

_logger = logging.getLogger("vramscope.policies")

MOST_FAILURES: Final = 3
"""So many in a row switch a policy off."""
DEADLINE_S: Final = 120.0
"""Steps may be slow."""


class Submitting(Protocol):
    """Carries commands."""

    async def submit(self, run: str, request: CommandRequest, issuer: Issuer) -> CommandRecord:
        """Accept a command and hand it to every rank that is connected."""
        ...


class Firings:
    """What policies have begun and not yet heard of. Lives on the event loop."""

    def __init__(
        self,
        store: Store,
        book: PolicyBook,
        coordinator: Submitting,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._store = store
        self._book = book
        self._coordinator = coordinator
        self._clock_ns = clock_ns
        self._waiting: dict[str, Firing] = {}
        """By the id of the command."""
        self._answers: deque[tuple[Firing, dict[str, Any]]] = deque()

    async def start(self) -> None:
        """Take up what was waited for when the server stopped."""
        if not self._store.is_sole:
            return  # the other server hears of it
        for waiting in await self._store.read(policies.list_waiting):
            firing, state = waiting.firing, waiting.command_state
            if state is not None and state not in FINAL_STATES and firing.command_id is not None:
                self._waiting[firing.command_id] = firing
            elif state is None:
                await self._end(firing, "refused", "the server ended first", counts=False)
            else:
                ended = cast(FiringState, state)
                await self._end(firing, ended, f"{firing.command} {state}")

    def is_waiting(self, policy_id: str, run_id: str) -> bool:
        """Whether a policy still waits for what it began in a run."""
        return any(
            (firing.policy_id, firing.run_id) == (policy_id, run_id)
            for firing in self._waiting.values()
        )

    async def fire(self, policy: PolicyRecord, run_id: str, run_name: str, met: Met) -> None:
        """Do what a policy says, or in dry-run mode say what it would do.

        Raises:
            VramscopeError: ``internal``: it could not be written down, so nothing was done.
        """
        definition = policy.definition
        then, is_dry = definition.then, definition.mode == "dry_run"
        spec = COMMANDS.get(then.command)
        is_sent = not is_dry or (spec is not None and spec.dry_run)
        firing = Firing(
            policy_id=policy.id,
            run_id=run_id,
            run_name=run_name,
            time_ns=self._clock_ns(),
            mode=definition.mode,
            ranks=list(met.ranks),
            why=why(definition, met),
            command=then.command,
            params=then.params,
            command_id=uuid.uuid4().hex if is_sent else None,
            state="waiting" if is_sent else "logged",
            result="" if is_sent else f"would have run {then.command}",
        )
        # Written before anything is asked for: a server that starts again must not do it too soon.
        row = None if is_sent else _audit_row(policy, firing, f"{firing.result}: {firing.why}")
        fired = policy.fired + 1

        def write(connection: Connection) -> int:
            if row is not None:
                audit.record(connection, row)
            policies.set_counts(connection, policy.id, fired, policy.failures)
            return policies.add_firing(connection, firing)

        firing.number = await self._store.write(write)
        policy.fired = fired
        policy.last_fired_ns[run_id] = firing.time_ns
        if firing.command_id is not None:
            await self._submit(policy, firing, is_dry=is_dry)

    def take_command(self, command: dict[str, Any]) -> None:
        """A command has changed: one of ours may be over."""
        firing = self._waiting.get(command["id"])
        if firing is not None and command["state"] in FINAL_STATES:
            del self._waiting[command["id"]]
            self._answers.append((firing, command))

    async def take_answers(self) -> None:
        """Write down how commands ended.

        Raises:
            VramscopeError: ``internal``: not now; the rest waits for the next time.
        """
        while self._answers:
            firing, command = self._answers[0]
            text = sentence(record_from_dict(firing.run_id, command))
            await self._end(firing, command["state"], text)
            self._answers.popleft()

    async def _submit(self, policy: PolicyRecord, firing: Firing, *, is_dry: bool) -> None:
        then = policy.definition.then
        ranks = then.ranks
        if ranks == "matching":
            ranks = firing.ranks or "all"  # a finding may be about the run as a whole
        request = CommandRequest(
            then.command,
            list(ranks) if isinstance(ranks, list) else "all",
            dict(then.params),
            dry_run=is_dry,
            deadline_s=DEADLINE_S,
            id=firing.command_id,
            may_change_training=policy.definition.allow_training,
        )
        # All policies of a run share one measure of how often commands may be posted.
        caller = Principal(
            policy.definition.name,
            frozenset({VIEW, CONTROL}),
            fingerprint=f"policies {firing.run_id}",
        )
        assert firing.command_id is not None
        self._waiting[firing.command_id] = firing
        try:
            await self._coordinator.submit(firing.run_id, request, Issuer(caller, "policy", ""))
        except VramscopeError as error:
            self._waiting.pop(firing.command_id, None)
            if error.code != FORBIDDEN:  # which the coordinator writes down itself
                row = _audit_row(policy, firing, f"refused: {error.message}")
                await self._store.write(lambda c: audit.record(c, row))
            # Being told to wait says nothing about the command.
            counts = error.code != RATE_LIMITED
            await self._end(firing, "refused", error.message, counts=counts)

    async def _end(
        self, firing: Firing, state: FiringState, text: str, *, counts: bool = True
    ) -> None:
        await self._store.write(lambda c: policies.set_outcome(c, firing.number, state, text))
        policy = self._book.find(firing.policy_id)
        if policy is None or not counts or firing.time_ns < policy.changed_ns:
            return
        if state == "done":
            policy.failures = 0
        else:
            policy.failures += 1
        if policy.failures < MOST_FAILURES or not policy.is_on:
            await self._book.keep(policy)
            return
        reason = f"{firing.command} failed {policy.failures} times in a row: {text}"
        _logger.warning("the policy %r is switched off: %s", policy.definition.name, reason)
        await self._book.give_up(policy, reason)


def _audit_row(policy: PolicyRecord, firing: Firing, result: str) -> dict[str, Any]:
    """A line for what the coordinator never heard of, or did not take."""
    ranks = policy.definition.then.ranks
    return {
        "time_ns": firing.time_ns,
        "who": policy.definition.name,
        "origin": "policy",
        "address": "",
        "run": firing.run_id,
        "command_id": audit_id(policy.id),
        "name": firing.command,
        "ranks": firing.ranks if ranks == "matching" else ranks,
        "dry_run": firing.mode == "dry_run",
        "params": firing.params,
        "result": result,
    }
