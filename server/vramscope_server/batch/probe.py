"""A few steps with another batch size on one run, by ordinary commands: there, a look, and back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from vramscope_analysis.batch.probe_plan import ProbePlan
from vramscope_protocol.errors import VramscopeError
from vramscope_server.commands.record import CommandRecord
from vramscope_server.commands.request import CommandRequest, Issuer

COMMAND: Final = "set_batch_size"
WATCH_S: Final = 180.0
"""After so long the size goes back, whether enough steps were seen or not."""

_POLL_S: Final = 0.25
_DEADLINE_S: Final = 60.0
_FROM: Final = re.compile(r"probe-[0-9a-f]{12}-from-(\d+)x(\d+)-(\d)")

ProbeState = Literal["checking", "changing", "watching", "going_back", "done", "failed"]


class Asking(Protocol):
    """Carries commands."""

    async def submit(self, run: str, request: CommandRequest, issuer: Issuer) -> CommandRecord:
        """Accept a command and hand it to every rank that is connected."""
        ...


@dataclass
class Probe:
    """One probe and how far it is.

    Args:
        id: of it; its commands have ids that begin with it.
        run_id: the run.
        plan: what it does.
        issuer: who has consented.
    """

    id: str
    run_id: str
    plan: ProbePlan
    issuer: Issuer
    state: ProbeState = "checking"
    text: str = ""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when somebody has seen enough."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens."""
        return self.state in ("done", "failed")

    def payload(self) -> dict[str, Any]:
        """As the API gives it out."""
        return {
            "id": self.id,
            "state": self.state,
            "text": self.text,
            "batch_size": self.plan.batch,
            "back": self.plan.back,
        }

    async def run(self, asking: Asking, is_seen: Callable[[], Awaitable[bool]]) -> None:
        """Do all of it.

        Args:
            asking: carries the commands.
            is_seen: whether enough steps of that size were seen.
        """
        try:
            checked = await self._ask(asking, self.plan.params, "check", dry_run=True)
            if checked.state != "done":
                self._fail(checked, "Nothing was changed.")
                return
            self.state = "changing"
            changed = await self._ask(asking, self.plan.params, there_id(self))
            if changed.state != "done":
                self._fail(changed, "")
                return
            await self._watch(is_seen)
            await self.go_back(asking)
        except VramscopeError as error:
            self.state, self.text = "failed", error.message

    async def go_back(self, asking: Asking) -> None:
        """Set the size back."""
        self.state, self.text = "going_back", ""
        back = await self._ask(asking, self.plan.back_params, "back")
        if back.state == "done":
            self.state = "done"
        else:
            self._fail(back, f"The batch size is still {self.plan.batch}: set it back by hand.")

    async def _watch(self, is_seen: Callable[[], Awaitable[bool]]) -> None:
        self.state = "watching"
        loop = asyncio.get_running_loop()
        until_s = loop.time() + WATCH_S
        while loop.time() < until_s and not self.ended.is_set():
            if await is_seen():
                return
            try:
                await asyncio.wait_for(self.ended.wait(), 4 * _POLL_S)
            except asyncio.TimeoutError:
                continue

    async def _ask(
        self, asking: Asking, params: dict[str, Any], what: str, *, dry_run: bool = False
    ) -> CommandRecord:
        name = what if what.startswith(self.id) else f"{self.id}-{what}"
        request = CommandRequest(COMMAND, "all", params, dry_run, _DEADLINE_S, name)
        record = await asking.submit(self.run_id, request, self.issuer)
        while not record.is_final:  # its deadline is the coordinator's business
            await asyncio.sleep(_POLL_S)
        return record

    def _fail(self, record: CommandRecord, otherwise: str) -> None:
        messages = [answer.receipt.message for answer in record.answers.values()]
        said = next((message for message in messages if message), f"It {record.state}.")
        self.state = "failed"
        self.text = said if otherwise in said else f"{said} {otherwise}"


def there_id(probe: Probe) -> str:
    """Id of the command that changes the size: it says what has to be set back."""
    plan = probe.plan
    return f"{probe.id}-from-{plan.back}x{plan.back_passes or 0}-{int(plan.changes_global_batch)}"


def left_behind(command: dict[str, Any]) -> tuple[str, ProbePlan] | None:
    """The probe that a stored command belongs to, if it has changed the size.

    Args:
        command: as the store has it.
    """
    found = _FROM.fullmatch(command["id"])
    if found is None or command["state"] != "done" or command["name"] != COMMAND:
        return None
    back, passes, changes = (int(part) for part in found.groups())
    params = command["params"]
    plan = ProbePlan(
        params["batch_size"], params.get("accumulation"), back, passes or None, bool(changes)
    )
    return command["id"].split("-from-")[0], plan
