"""A run whose agent put one trap into every word that any view of the page shows."""

from __future__ import annotations

import gzip
import hashlib
import json
import pickle
import time
from typing import Any

from tests.support.history_rig import made_snapshot
from tests.support.made_ooms import asking
from tests.support.made_segments import segment
from tests.support.recorded_map import GivenOwners, MapOfLooks
from tests.support.scripted_agent import GIB, ScriptedAgent, socket_agent
from tests.support.server_process import ServerProcess
from tests.support.wire_ooms import MIB, made_report
from vramscope_protocol.account import AgentAccount, MemoryPart, ProcessMemory
from vramscope_protocol.commands import CommandState
from vramscope_protocol.messages import (
    AgentStatus,
    Command,
    DeviceInfo,
    Event,
    Field,
    FieldTable,
    Lost,
    OomBegin,
    SnapshotBegin,
)
from vramscope_protocol.user_commands import UserCommand, UserParam

BASE = 0x7F0000000000


class HostileRun:
    """An agent of a real server, all of whose words are a trap.

    Args:
        server: where it is.
        run_id: id of its run; the only word that has to be harmless.
        trap: the text.
    """

    def __init__(self, server: ServerProcess, run_id: str, trap: str) -> None:
        self.server = server
        self.path = f"/api/v1/runs/{run_id}"
        self.trap = trap
        self.snapshot, self.report = f"snap-{run_id}", f"oom-{run_id}"
        self.agent = self._agent(run_id)

    def tell(self) -> None:
        """Connect, and say everything that an agent can say."""
        trap, agent, now_ns = self.trap, self.agent, time.time_ns()
        agent.open()
        nested: dict[str, Any] = {trap: [trap, {trap: trap}]}
        agent.samples(5, step=50, user__batch_size=[4] * 5)
        agent.steps(50, user__batch_size=[4] * 50, step__peak_allocated_bytes=[GIB] * 50)
        for kind, data in (
            (trap[:400] or "mark", nested),
            ("exception", {"stack": [trap], "text": trap}),
            ("phase", {"phase": trap, "name": trap, "end_ns": now_ns, "start_ns": now_ns - 10**9}),
            ("oom", {"report": self.report, "message": trap, "part": trap, "phase": trap}),
            ("device_process", {"command": trap, "pid": 7}),
            ("settings", {"settings": trap, "before": trap, "after": trap}),
            ("device", {"device": {"name": trap}, "software": {trap: trap}}),
        ):
            agent.seq += 1
            agent.send(Event(agent.seq, now_ns, kind, 50, trap, data))
        agent.send(
            FieldTable(9, [Field("time_ns", "q"), Field("step", "q"), Field(trap, "q", trap)])
        )
        agent.send(Lost(samples={trap[:400]: 3}, steps={trap[:400]: 3}, messages={trap[:400]: 1}))
        agent.send(self._status())
        self._map()
        self._deliver_snapshot()
        self._deliver_report()
        self._answer_commands(nested)
        agent.wait_acked()

    def policy(self) -> dict[str, Any]:
        """What a person might make of words that the page has shown."""
        return {
            "name": f"when {self.trap}"[:80],
            "run": self.trap[:128],
            "when": {"series": self.trap[:200], "op": ">", "value": 1},
            "then": {"command": f"user.{self.trap}"[:80]},
            "every_s": 60,
            "is_on": True,
        }

    def _agent(self, run_id: str) -> ScriptedAgent:
        trap = self.trap
        agent = socket_agent(self.server.url, self.server.token, run_id=run_id, run=trap or "run")
        agent.run.user = agent.run.script = trap
        rank = agent.rank
        rank.host = rank.launcher = rank.job = rank.life = trap
        rank.devices = [DeviceInfo(0, trap, trap, 8 * GIB, backend=trap)]
        rank.software = {trap: trap, "vramscope": trap, "torch": trap, "cuda": trap}
        own = f"user.{trap[:70]}"
        rank.commands = [*rank.commands, own, "set_batch_size", "pause", "stop", trap]
        rank.steps_from_start = True
        rank.user_commands = [
            UserCommand(
                own,
                trap[:400],
                changes_training=True,
                params=[
                    UserParam(trap[:64], "choice", None, [trap, "b"]),
                    UserParam(f"s{trap[:60]}", "str", trap),
                ],
            )
        ]
        return agent

    def _status(self) -> AgentStatus:
        trap = self.trap
        named = {trap[:400]: 3}
        return AgentStatus(
            1.0,
            0.1,
            guard_errors=3,
            notes=[trap] * 3,
            account=AgentAccount(cpu_us=named, lost=named, errors=named),
            processes=[ProcessMemory(1, trap, GIB), ProcessMemory(4242, trap, GIB)],
            outside=[MemoryPart(trap, GIB, trap)],
        )

    def _map(self) -> None:
        owners = GivenOwners({BASE: (1, self.trap), BASE + (1 << 20): (2, self.trap)})
        frame = MapOfLooks(owners).frame([segment(BASE, "a1 a1 f1")], 50)
        frame.texts = [self.trap for _ in frame.texts]
        frame.summary = self.trap
        self.agent.map_frame(frame)

    def _deliver_snapshot(self) -> None:
        plain = made_snapshot(40, blocks=8)
        frames = [{"name": self.trap, "filename": self.trap, "line": 7}]
        for each in (*plain["segments"][0]["blocks"], *plain["device_traces"][0]):
            each["frames"] = frames
        raw = pickle.dumps(plain, protocol=4)
        packed = gzip.compress(raw, 1)
        begin = SnapshotBegin(
            self.snapshot,
            time.time_ns(),
            len(raw),
            len(packed),
            hashlib.sha256(raw).hexdigest(),
            mode="all",
            stacks=True,
            issued_by=self.trap[:500],
        )
        assert not self.agent.snapshot(begin, packed).refused

    def _deliver_report(self) -> None:
        trap = self.trap
        report = made_report(
            self.report,
            run=self.agent.run.id,
            time_ns=time.time_ns(),
            step=50,
            message=trap,
            phase=trap,
            part=trap,
            thread=trap,
            settings=trap,
            notes=[trap],
            run_name=trap,
            host=trap,
            device_name=trap,
            software={trap: trap},
            source=trap,
            threads=[asking((trap, 7, trap), ("train.py", 8, trap), name=trap)],
            by_stack=[
                {"file": trap, "line": 7, "function": trap, "bytes": 300 * MIB, "count": 3,
                 "category": trap, "tensor": trap}
            ],
            by_size=[],
            by_category={"category.parameters_bytes": 64 * MIB, trap: 64 * MIB},
            largest=[
                {"tensor": trap, "bytes": 300 * MIB, "category": trap, "held_by": [trap],
                 "holder": {"kind": trap, "chain": [trap, trap]}, "shape": trap, "dtype": trap}
            ],
            processes=[{"pid": 539, "command": trap, "bytes": GIB, "own": False}],
            outside=[{"name": trap, "bytes": 540 * MIB, "how": trap}],
        )  # fmt: skip
        data = json.dumps(report).encode()
        begin = OomBegin(
            self.report, self.agent.run.id, 0, report["time_ns"], len(data),
            hashlib.sha256(data).hexdigest(), step=50,
        )  # fmt: skip
        assert not self.agent.oom(begin, data).refused

    def _answer_commands(self, nested: dict[str, Any]) -> None:
        trap = self.trap
        for name in ("memory_summary", "stats", "empty_cache", "gc_collect"):
            posted = self.server.request("POST", f"{self.path}/commands", {"name": name})
            assert posted.status == 202, posted
            command: Command = self.agent.wait_command()
            result = trap if name == "memory_summary" else {**nested, "held_by": [{"what": trap}]}
            state: CommandState = "failed" if name == "gc_collect" else "done"
            self.agent.update(
                command, state, step=50, before=nested, after=nested, message=trap, result=result
            )
