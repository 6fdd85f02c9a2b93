"""Has several ranks run a command at the end of the same step, or none of them.

The ranks are asked to get ready for a step that is still to come. When all are, the decision is
committed to the store and sent; when one is not, nothing is done anywhere. What follows from what
the ranks say is decided in ``agreement_round.py``; here is the way to them and the waiting.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Final

from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.messages import CommandUpdate
from vramscope_server.commands.agreement import Agreement
from vramscope_server.commands.agreement_round import AgreementRound, Verdict
from vramscope_server.commands.counterparts import CommandCarrier, RunDirectory
from vramscope_server.commands.ledger import Ledger
from vramscope_server.commands.messenger import Messenger
from vramscope_server.commands.readiness import is_ready, why_never
from vramscope_server.commands.record import CommandRecord
from vramscope_server.commands.step_choice import choose_step
from vramscope_server.commands.turns import Turn, Turns, is_under_way
from vramscope_server.commands.verdict import answer_dropped, answer_gone
from vramscope_server.settings import Limits

_logger = logging.getLogger("vramscope.commands")

_ATTEMPTS: Final = 4
"""Steps that are tried, each farther ahead than the one before."""
_PACE_S: Final = 1.5
_LOOK_S: Final = 0.1
_RETRY_S: Final = 0.5
_STOP_S: Final = 2.0


class SameStep:
    """The commands that wait for an agreement. Lives on the event loop; only storing is awaited.

    Args:
        changed: called when answers of a command have changed.
    """

    def __init__(
        self,
        ledger: Ledger,
        registry: RunDirectory,
        carrier: CommandCarrier,
        limits: Limits,
        clock_ns: Callable[[], int],
        changed: Callable[[CommandRecord], None],
    ) -> None:
        self._ledger = ledger
        self._registry = registry
        self._carrier = carrier
        self._messenger = Messenger(carrier, limits, clock_ns)
        self._limits = limits
        self._clock_ns = clock_ns
        self._changed = changed
        self._turns = Turns()
        self._rounds: dict[str, AgreementRound] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, record: CommandRecord) -> None:
        """Ask the ranks as soon as all are there and no other command of the run is under way."""
        turn = self._turns.add(record)
        self._start(record, self._agree(turn))

    def take_up(self, record: CommandRecord) -> None:
        """Go on with a command of before the server was started."""
        agreement = _agreement(record)
        if agreement.run is not None:
            if is_under_way(record):  # it is told to each rank that connects
                self._turns.add(record)
        elif agreement.at_step is None:
            self.begin(record)  # no rank has heard of it
        else:
            turn = self._turns.add(record)
            why = "The server was started again before it was decided."
            self._start(record, self._decide(turn, Verdict("drop", why)))

    async def stop(self) -> None:
        """Let no rank wait for a server that is going away: what is undecided is dropped."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        verdict = Verdict("drop", "The server was stopped before it was decided.")
        waiting = [turn for turn in self._turns if _is_asked(turn.record)]
        drops = [asyncio.ensure_future(self._decide(turn, verdict)) for turn in waiting]
        if drops:
            await asyncio.wait(drops, timeout=_STOP_S)
            for drop in drops:  # what is left to the next server
                drop.cancel()
            await asyncio.wait(drops)

    def take(self, record: CommandRecord, rank: int, update: CommandUpdate) -> None:
        """A rank says something of a command."""
        if record.id in self._rounds:
            self._rounds[record.id].take(rank, update)
            self._turns.wake(record)

    def rank_connected(self, record: CommandRecord, rank: int) -> None:
        """Tell a rank again what it may have missed; another process cannot go on for it."""
        agreement = _agreement(record)
        asked = record.lives.get(rank)
        if asked is not None and asked != self._carrier.life(record.run_id, rank):
            if agreement.run is not False:
                self.rank_gone(record, rank, "was started again")
        elif agreement.run is not None:
            self._messenger.tell_decision(record, (rank,))
        elif record.id in self._rounds:
            self._ask_rank(record, rank)
        self._turns.wake(record)

    def rank_gone(self, record: CommandRecord, rank: int, what: str) -> None:
        """A rank will not answer: ``what`` has become of it, such as "has ended"."""
        if _agreement(record).run is None:
            self._turns.object(record, f"Rank {rank} {what}.")
        elif answer_gone(record, rank, what, self._clock_ns()):
            self._changed(record)

    def settled(self, record: CommandRecord) -> None:
        """Answers have changed: the next command of the run may have its turn."""
        self._turns.settled(record)

    # ------------------------------------------------------------------- from asking to deciding

    def _start(self, record: CommandRecord, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=f"vramscope-same-step-{record.id}")
        self._tasks[record.id] = task
        task.add_done_callback(lambda done: self._ended(record, done))

    def _ended(self, record: CommandRecord, task: asyncio.Task[None]) -> None:
        self._tasks.pop(record.id, None)
        self._rounds.pop(record.id, None)
        if not task.cancelled() and task.exception() is not None:
            # A mistake of ours: the ranks drop it after a while, and it keeps no other one waiting.
            _logger.error("the command %s was given up", record.id, exc_info=task.exception())
            self._turns.leave(record)

    async def _agree(self, turn: Turn) -> None:
        await self._decide(turn, await self._agreed(turn))

    async def _agreed(self, turn: Turn) -> Verdict:
        """Try one step after the other until all ranks are ready for one, or it cannot be."""
        over: set[int] = set()
        for attempt in range(_ATTEMPTS):
            if attempt:
                over |= self._begin_again(turn.record)
                await self._until_paced(turn)
            verdict = await self._until_ready(turn)
            verdict = verdict or await self._ask(turn, attempt, over)
            if verdict.what != "again":
                return verdict
        return Verdict("drop", f"The step was over on some rank each of {_ATTEMPTS} times.")

    async def _until_ready(self, turn: Turn) -> Verdict | None:
        """Wait for the ranks and for the commands before this one; why it cannot be."""
        record = turn.record
        while True:
            able = {rank: self._carrier.can_prepare(record.run_id, rank) for rank in record.ranks}
            before = self._turns.before(turn)
            if turn.obstacle:
                return Verdict("drop", turn.obstacle)
            verdict = why_never(record, able, before, self._clock_ns())
            if verdict is not None or is_ready(able, before):
                return verdict
            await self._wait(turn, record.deadline_ns)

    async def _until_paced(self, turn: Turn) -> None:
        """Give ranks of which no pace is known, as after a start of the server, time to tell it."""
        until_ns = self._clock_ns() + int(_PACE_S * 1e9)
        while not turn.obstacle and (now_ns := self._clock_ns()) < until_ns:
            paces = self._registry.paces(turn.record.run_id)
            if all(rank in paces and paces[rank].rate_hz for rank in turn.record.ranks):
                return
            await self._wait(turn, min(until_ns, now_ns + int(_LOOK_S * 1e9)))

    async def _ask(self, turn: Turn, attempt: int, over: Collection[int]) -> Verdict:
        """Ask all ranks to get ready for a step; what follows from their words."""
        record, agreement = turn.record, _agreement(turn.record)
        now_ns = self._clock_ns()
        paces = self._registry.paces(record.run_id)
        choice = choose_step(
            [paces[rank] for rank in record.ranks if rank in paces],
            (record.deadline_ns - now_ns) / 1e9,
            attempt,
            over,
        )
        if choice is None:
            return Verdict("drop", "The ranks tell of steps that cannot be.")
        try:
            await self._ledger.note_step(record.id, choice.step)
        except VramscopeError as error:
            return Verdict("drop", f"The step could not be stored: {error.message}.")
        now_ns = self._clock_ns()
        until_ns = min(now_ns + int(self._limits.command_prepare_s * 1e9), record.deadline_ns)
        round_ = self._rounds[record.id] = AgreementRound(choice.step, record.ranks, until_ns)
        agreement.at_step = choice.step
        record.due_ns = now_ns + int(choice.due_s * 1e9)
        for rank in record.ranks:
            self._ask_rank(record, rank)
        self._changed(record)
        while not turn.obstacle:
            verdict = round_.verdict(self._clock_ns())
            if verdict is not None:
                return verdict
            await self._wait(turn, round_.until_ns)
        return Verdict("drop", turn.obstacle)

    def _ask_rank(self, record: CommandRecord, rank: int) -> None:
        """Send the command to the process that is connected now, or when one connects."""
        life = self._carrier.life(record.run_id, rank)
        if life is not None:
            record.lives[rank] = life
            self._messenger.send(record, rank)

    def _begin_again(self, record: CommandRecord) -> set[int]:
        """Take the step back that was over on some rank; the steps that those had reached."""
        round_ = self._rounds.pop(record.id)
        self._messenger.take_back(record, round_.at_step)
        for answer in record.answers.values():
            answer.state = "queued"  # it was ready for the step that is over
        return set(round_.over.values())

    async def _decide(self, turn: Turn, verdict: Verdict) -> None:
        """Commit the decision, then tell it. What was committed before stands."""
        run, reason = verdict.what == "run", verdict.reason
        record, agreement = turn.record, _agreement(turn.record)
        round_ = self._rounds.get(record.id)
        while True:
            wanted = Agreement(agreement.at_step, run, reason, self._clock_ns())
            try:
                decided = await self._ledger.decide(record.id, wanted)
                break
            except VramscopeError as error:
                _logger.error("a decision could not be stored: %s", error.message)
            await asyncio.sleep(_RETRY_S)
            if run and round_ is not None and self._clock_ns() >= round_.until_ns:
                # The ranks do not wait for ever. What may have been stored meanwhile still stands.
                run, reason = False, "It could not be stored in time that it is to be run."
        record.agreement = decided
        self._rounds.pop(record.id, None)
        self._messenger.tell_decision(record, record.ranks)
        if not decided.run:
            answer_dropped(record, verdict.silent, self._clock_ns())
        self._changed(record)

    async def _wait(self, turn: Turn, until_ns: int) -> None:
        """Until something is heard, or until a time."""
        left_s = max(0.0, (until_ns - self._clock_ns()) / 1e9)
        # Not wait_for(): before Python 3.12 it may swallow that the task is cancelled.
        timer = asyncio.get_running_loop().call_later(left_s, turn.wake.set)
        try:
            await turn.wake.wait()
        finally:
            timer.cancel()
            turn.wake.clear()


def _agreement(record: CommandRecord) -> Agreement:
    if record.agreement is None:
        raise RuntimeError(f"expected a command that ranks agree on, got {record.name}")
    return record.agreement


def _is_asked(record: CommandRecord) -> bool:
    agreement = _agreement(record)
    return agreement.run is None and agreement.at_step is not None
