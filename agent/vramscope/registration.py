"""What a server is told when a stream opens: the run, the rank and what it has."""

from __future__ import annotations

from typing import NamedTuple

from vramscope.config import Allow, Config
from vramscope.identity.identity import Identity
from vramscope.identity.secrets import run_secret, seat_secret
from vramscope_protocol.messages import DeviceInfo, RankInfo, Register, RunInfo
from vramscope_protocol.user_commands import UserCommand


class Facts(NamedTuple):
    """What a registration tells that may change later: then it is told anew."""

    devices: list[DeviceInfo]
    software: dict[str, str]
    steps_from_start: bool
    commands: list[str]
    user_commands: list[UserCommand]
    allow: Allow


def registration(
    identity: Identity,
    config: Config,
    *,
    devices: list[DeviceInfo],
    software: dict[str, str],
    commands: list[str],
    first_seq: int,
    steps_from_start: bool = False,
    user_commands: list[UserCommand] | None = None,
    allow: Allow | None = None,
) -> Register:
    """The first message of a stream.

    Args:
        identity: who the stream is of.
        config: options of the agent.
        devices: what the process uses, as far as it is known.
        software: versions by name.
        commands: names of the commands that would be run.
        first_seq: lowest sequence number that can still be sent.
        steps_from_start: whether a step is the same step on all ranks of which this is true.
        user_commands: what the job declares.
        allow: what the server may do, where that is not what the options say.
    """
    run = RunInfo(
        id=identity.run_id,
        name=identity.run_name,
        world_size=identity.world_size,
        emulated=config.emulate,
        user=identity.user,
        script=identity.script,
    )
    rank = RankInfo(
        rank=identity.rank,
        host=identity.host,
        pid=identity.pid,
        local_rank=identity.local_rank,
        started_ns=identity.started_ns,
        devices=devices,
        software=software,
        allow=allow or config.allow,
        commands=commands,
        user_commands=user_commands or [],
        steps_from_start=steps_from_start,
        life=identity.life,
        process_started_ns=identity.process_started_ns,
        restart_count=identity.restart_count,
        max_restarts=identity.max_restarts,
        node_rank=identity.node_rank,
        launcher=identity.launcher,
        job=identity.job,
    )
    return Register(
        identity.stream,
        run,
        rank,
        first_seq,
        run_secret=run_secret(identity.run_name, identity.key),
        seat_secret=seat_secret(),
    )
