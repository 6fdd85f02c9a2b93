from __future__ import annotations

from msgspec.structs import asdict, fields

from vramscope.config import load_config
from vramscope.identity.identity import identify
from vramscope.identity.secrets import run_secret, seat_secret
from vramscope.registration import registration
from vramscope_protocol.messages import DeviceInfo
from vramscope_protocol.user_commands import UserCommand

ELASTIC = {
    "RANK": "1",
    "WORLD_SIZE": "2",
    "LOCAL_RANK": "1",
    "GROUP_RANK": "0",
    "TORCHELASTIC_RUN_ID": "x",
    "TORCHELASTIC_RESTART_COUNT": "2",
    "TORCHELASTIC_MAX_RESTARTS": "3",
    "SLURM_JOB_ID": "9",
}


def test_everything_that_is_known_of_a_rank_is_told() -> None:
    identity = identify("a run", script="/x/train.py", environ=ELASTIC)
    message = registration(
        identity,
        load_config({}, emulate=True, allow="observe"),
        devices=[DeviceInfo(0, "Fake")],
        software={"torch": "2.9"},
        commands=["stats"],
        first_seq=7,
        steps_from_start=True,
        user_commands=[UserCommand("user.save")],
    )
    assert (message.stream, message.first_seq) == (identity.stream, 7)
    assert (message.run.name, message.run.script, message.run.emulated) == (
        "a run",
        "train.py",
        True,
    )
    rank = asdict(message.rank)
    shared = {field.name for field in fields(identity)} & rank.keys() - {"software"}
    assert {name: rank[name] for name in shared} == {
        name: getattr(identity, name) for name in shared
    }
    assert (message.rank.restart_count, message.rank.max_restarts) == (2, 3)
    assert (message.rank.launcher, message.rank.job) == ("torchrun", "slurm 9")
    assert (message.rank.allow, message.rank.commands) == ("observe", ["stats"])
    assert message.rank.steps_from_start
    assert [each.name for each in message.rank.user_commands] == ["user.save"]
    assert message.run_secret == run_secret(identity.run_name, identity.key)
    assert message.seat_secret == seat_secret()
    assert all(value not in (None, "", [], {}) for value in rank.values())
