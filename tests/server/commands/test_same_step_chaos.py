"""Four ranks and a server to which anything happens at any time: all end on the same side."""

from __future__ import annotations

import asyncio
import random

from tests.support.command_world import World
from tests.support.pretended_ranks import JobStore, PretendedRank
from tests.support.same_step_scenes import RANKS
from vramscope_protocol.commands import FINAL_STATES
from vramscope_protocol.messages import Command, CommandUpdate, Decision
from vramscope_server.registry.step_pace import RankPace
from vramscope_server.settings import Limits
from vramscope_server.store.store import Store

SEEDS = 30
EVENTS = 40
LIMITS = Limits(
    command_prepare_s=0.1,
    command_grace_s=0.05,
    command_run_s=0.05,
    command_restart_s=0.05,
    command_burst=1000,
)
HAPPENINGS = (
    *["hear"] * 10,
    *["speak"] * 10,
    *["go on"] * 5,
    *["a moment"] * 3,
    *["cut", "back", "back"],
    "lose patience",
    "start again",
    "kill the server",
)


class Play:
    """One job, and the servers that it has one after the other."""

    def __init__(self, store: Store, seed: int) -> None:
        self.dice = random.Random(seed)
        self.store = store
        self.command_id = f"c{seed}"
        self.job: JobStore = {}
        self.ranks = [PretendedRank(number, self.job, self._said) for number in RANKS]
        self.world = self._new_world()

    def _new_world(self) -> World:
        world = World(self.store, LIMITS, connected=(), ranks=len(RANKS))
        world.carrier.send_command = self._send_command  # type: ignore[method-assign]  # to these ranks
        world.carrier.send_decision = self._send_decision  # type: ignore[method-assign]  # to these ranks
        return world

    def _send_command(self, run_id: str, rank: int, command: Command) -> bool:
        return self._send(rank, command)

    def _send_decision(self, run_id: str, rank: int, decision: Decision) -> bool:
        return self._send(rank, decision)

    def _send(self, rank: int, message: Command | Decision) -> bool:
        if self.ranks[rank].connected:
            self.ranks[rank].inbox.append(message)
        return self.ranks[rank].connected

    def _said(self, rank: int, update: CommandUpdate) -> None:
        self.world.coordinator.command_update("r1", rank, update)

    def connect(self, rank: PretendedRank) -> None:
        """Let a rank be there for the server."""
        rank.connected = True
        self.world.carrier.connected.add(rank.number)
        self.world.carrier.lives[rank.number] = f"{rank.number}-{rank.life}"
        self.world.coordinator.rank_connected("r1", rank.number)

    def cut(self, rank: PretendedRank) -> None:
        """Lose its connection, with what was on the way to it."""
        rank.connected = False
        rank.inbox.clear()
        self.world.carrier.connected.discard(rank.number)
        self.world.coordinator.rank_disconnected("r1", rank.number)

    async def kill_server(self) -> None:
        """Let another one take its place; what it had only in memory is lost."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for rank in self.ranks:
            rank.connected = False
            rank.inbox.clear()
        self.world = self._new_world()
        await self.world.coordinator.start()

    async def happen(self, what: str) -> None:
        """Let one thing happen, mostly to one rank."""
        rank = self.dice.choice(self.ranks)
        if what == "hear":
            rank.hear()
        elif what == "speak":
            rank.speak()
        elif what == "go on":
            rank.go_on(self.dice.choice((1, 5, 40)))
            self.world.runs.pace[rank.number] = RankPace(rank.step, 10.0, 0.0)
        elif what == "a moment":
            await asyncio.sleep(self.dice.choice((0.0, 0.002, 0.02)))
        elif what == "cut" and rank.connected:
            self.cut(rank)
        elif what == "back" and not rank.connected:
            self.connect(rank)
        elif what == "lose patience":
            rank.lose_patience()
        elif what == "start again":
            self.cut(rank)
            rank.start_again()
        elif what == "kill the server":
            await self.kill_server()

    async def go_well(self) -> None:
        """Let nothing be in the way any more, until the server has nothing to wait for."""
        for rank in self.ranks:
            if not rank.connected:
                self.connect(rank)

        def is_over() -> bool:
            for rank in self.ranks:
                rank.hear()
                rank.go_on(1)
                rank.speak()
            if self.world.stored(self.command_id)["state"] not in FINAL_STATES:
                return False
            for rank in self.ranks:
                if not rank.inbox:  # a server that came later does not know of it any more
                    rank.lose_patience()
                    rank.speak()
            return not any(rank.prepared for rank in self.ranks)

        await self.world.until(is_over)

    async def run(self) -> None:
        """Everything that happens."""
        await self.world.coordinator.start()
        for rank in self.ranks:
            self.connect(rank)
        await self.world.submit(id=self.command_id, name="empty_cache", ranks="all", deadline_s=5)
        for _ in range(EVENTS):
            await self.happen(self.dice.choice(HAPPENINGS))
            await asyncio.sleep(0)
        await self.go_well()
        await self.world.coordinator.stop()


def check(play: Play) -> str:
    """Whether the ranks agree, with each other and with what was stored; what was decided."""
    stored = play.world.stored(play.command_id)["agreement"]
    ran = [rank.ran for rank in play.ranks]
    steps = {step for each in ran for _command, step in each}
    assert len(steps) <= 1, f"run at several steps: {ran}"
    assert all(len(each) <= 1 for each in ran), f"run twice: {ran}"
    for step in steps:
        assert (stored["decision"], stored["at_step"]) == ("run", step)
        asked = (play.command_id, step)
        assert all(asked in rank.got_ready for rank in play.ranks), "run before all were ready"
        # One that died before the step has not run it; nobody has decided otherwise.
        assert play.job[asked] == "run"
        without = [rank for rank in play.ranks if not rank.ran]
        assert all(rank.life for rank in without), f"only some of the ranks ran it: {ran}"
    return f"{stored['decision']}, {'run' if steps else 'nothing done'}"


def test_whatever_happens_all_ranks_end_on_the_same_side(store: Store) -> None:
    seen: set[str] = set()
    for seed in range(SEEDS):
        play = Play(store, seed)
        try:
            asyncio.run(play.run())
            seen.add(check(play))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    # The happenings are such that both come about.
    assert {"run, run", "drop, nothing done"} <= seen
