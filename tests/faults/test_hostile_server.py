"""A server that means harm: the agent does no more than its allow-list says, the job goes on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.support.fake_server import Behaviour, FakeServer
from tests.support.same_job import run_both, write_script
from vramscope_protocol.codec import encode
from vramscope_protocol.command_table import COMMANDS
from vramscope_protocol.commands import FINAL_STATES
from vramscope_protocol.messages import Command, CommandUpdate, Decision, Register

EXTRA_S = 2.5
"""Start of the agent, and an end that waits for delivery, together."""
STEPS = 40
FAR = 2**63 - 1
BAD_TEXT = "\x00\x1b[2J\u202eevil<script>\ud7ff" * 3


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_script(tmp_path_factory.mktemp("job"), steps=STEPS)


def attacked(script: Path, frames: Iterable[bytes], *options: str) -> FakeServer:
    """The server, after a job that it sent this to, and that nobody could tell from a bare one."""
    with FakeServer(Behaviour(after_welcome=list(frames))) as server:
        outcome = run_both(script, server.url, server.token, options)
        server.wait_for(lambda s: s.goodbye is not None)
    assert outcome.extra_s < EXTRA_S
    steps = [row["step"] for row in server.rows("step")]
    assert steps == list(range(1, STEPS + 1))
    return server


def commands(names: Iterable[str], **options: Any) -> list[bytes]:
    """One command of each name; its id is the name."""
    return [encode(Command(name, name, **options)) for name in names]


def ends(server: FakeServer) -> dict[str, str]:
    """How each command ended: by id."""
    return {
        update.id: update.state
        for update in server.of_type(CommandUpdate)
        if update.state in FINAL_STATES
    }


def message(server: FakeServer, identity: str) -> str:
    """What the receipt of a command says."""
    (update,) = [
        each
        for each in server.of_type(CommandUpdate)
        if each.id == identity and each.receipt is not None
    ]
    assert update.receipt is not None
    return update.receipt.message


def begun(server: FakeServer) -> set[str]:
    """Commands that got farther than being refused."""
    return {each.id for each in server.of_type(CommandUpdate) if each.state != "refused"}


def test_one_that_is_only_observed_is_not_changed(script: Path) -> None:
    control = [name for name, spec in COMMANDS.items() if spec.right == "control"]
    params: dict[str, dict[str, Any]] = {
        "set_batch_size": {"batch_size": 1},
        "set_accumulation": {"accumulation": 64},
        "set_allocator_settings": {"settings": "max_split_size_mb:21"},
        "set_memory_fraction": {"fraction": 0.01},
        "set_sampling_rate": {"rate_hz": 100},
        "set_gc_thresholds": {"enabled": False},
    }
    frames = [encode(Command(name, name, params.get(name, {}))) for name in control]
    # At a step, at once decided: a job must not even stand still for what is not allowed.
    for name in control:
        frames.append(encode(Command(f"{name}@", name, params.get(name, {}), at_step=3)))
        frames.append(encode(Decision(f"{name}@", 3, run=True)))
    server = attacked(script, frames, "--allow", "observe")
    (register,) = server.of_type(Register)
    assert not set(register.rank.commands) & set(control)
    assert begun(server) == set()
    assert ends(server) == dict.fromkeys([*control, *(f"{name}@" for name in control)], "refused")


def test_only_the_named_commands_run(script: Path) -> None:
    names = ["stacks", "stop", "pause", "gc_collect", "set_sampling_rate"]
    frames = commands(names, params={}) + commands(["user.delete_everything", "format_disk", ""])
    server = attacked(script, frames, "--allow", "stacks")
    assert ends(server).pop("stacks") == "done"
    assert begun(server) == {"stacks"}
    assert "allow-list does not name stop" in message(server, "stop")


def test_view_is_no_way_to_have_a_job_stand_still(script: Path) -> None:
    view = [name for name, spec in COMMANDS.items() if spec.right == "view"]
    frames = commands(view, at_step=5, hold_s=1e9)
    server = attacked(script, frames, "--allow", "observe")
    assert begun(server) == set()
    assert set(ends(server)) == set(view)


def test_unknown_commands_and_wrong_parameters(script: Path) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("format_disk", {}),
        (BAD_TEXT, {}),
        ("set_sampling_rate", {"rate_hz": "fast"}),
        ("set_sampling_rate", {"rate_hz": math.nan}),
        ("set_sampling_rate", {"rate_hz": math.inf}),
        ("set_gc_thresholds", {"thresholds": [-1]}),
        ("set_memory_fraction", {"fraction": 1e308}),
        ("set_allocator_settings", {"settings": "a" * 2000}),
        ("set_batch_size", {"batch_size": 2**63 - 1}),
        ("profile_modules", {"steps": 10**9}),
        ("stop", {"now": True}),
        ("pause", {"max_s": 1e9}),
        ("user.x", {BAD_TEXT: BAD_TEXT}),
        ("stats", {"a": {"b": [None] * 1000}}),
    ]
    frames = [encode(Command(f"c{i}", *each)) for i, each in enumerate(wrong)]
    server = attacked(script, frames)
    assert ends(server) == {f"c{i}": "refused" for i in range(len(wrong))}
    assert begun(server) == set()
    assert all(len(message(server, f"c{i}")) <= 500 for i in range(len(wrong)))


def test_numbers_that_no_clock_and_no_job_has(script: Path) -> None:
    times = (math.nan, math.inf, -1e308, 1e308)
    frames = [
        encode(Command(f"t{i}", "gc_collect", deadline_s=each)) for i, each in enumerate(times)
    ]
    for i, at_step in enumerate((-(2**63), -1, 0, FAR)):
        frames.append(encode(Command(f"s{i}", "empty_cache", at_step=at_step, hold_s=math.inf)))
    frames += [encode(Decision(f"s{i}", FAR, run=True)) for i in range(2)]
    frames += [encode(Command("hold", "empty_cache", at_step=4, hold_s=math.nan))]
    server = attacked(script, frames, "--exit-timeout-s", "1")
    assert set(ends(server)) >= {"t0", "t1", "t2", "t3", "s0", "s1", "s2"}
    assert not {update.id for update in server.of_type(CommandUpdate) if update.state == "done"} & {
        "s0", "s1", "s2", "s3", "hold",
    }  # fmt: skip


def test_decisions_about_what_nobody_asked(script: Path) -> None:
    frames = [
        encode(Decision(identity, at_step, run=run, reason=BAD_TEXT * 100))
        for identity in ("", "never", "x" * 128)
        for at_step in (-(2**63), 0, 5, FAR)
        for run in (True, False)
    ]
    server = attacked(script, frames * 20)
    assert server.of_type(CommandUpdate) == []


def test_thousands_of_commands(script: Path) -> None:
    command = partial(Command, name="gc_collect", deadline_s=0.01)
    with FakeServer(
        Behaviour(after_welcome=[encode(command(f"c{i}")) for i in range(4000)])
    ) as server:
        outcome = run_both(script, server.url, server.token, ("--exit-timeout-s", "1"))
        updates = server.of_type(CommandUpdate)
    assert outcome.extra_s < EXTRA_S
    # It hangs up on more than 500 messages a second, and of what comes slower only so many wait.
    done = {(each.id, each.time_ns) for each in updates if each.state == "done"}
    # After a reconnect it hears the same ids again, and answers what it knows of them.
    assert len(done) == len({identity for identity, _ in done}) < 1000


def test_parameters_as_large_as_a_message_may_be(script: Path) -> None:
    large = {"x": "y" * 900_000}
    deep: Any = None
    for _ in range(60):
        deep = [deep]
    frames = [encode(Command(f"c{i}", "stats", large)) for i in range(20)]
    frames.append(encode(Command("deep", "stats", {"x": deep})))
    server = attacked(script, frames, "--exit-timeout-s", "1")
    assert set(ends(server).values()) == {"refused"}
    assert all(len(message(server, f"c{i}")) <= 500 for i in range(20))


@contextmanager
def flooded(server: FakeServer, frames: list[Command]) -> Iterator[None]:
    """Sends these again and again as long as somebody is there."""
    ended = False

    def flood() -> None:
        while not ended:
            try:
                for command in frames:
                    server.send(command)
            except Exception:  # the job has gone
                continue

    thread = Thread(target=flood)
    thread.start()
    try:
        yield
    finally:
        ended = True
        thread.join(30)


def test_a_flood_that_does_not_end(script: Path) -> None:
    with FakeServer() as server:
        with flooded(server, [Command(f"c{i}", "stop") for i in range(50)]):
            outcome = run_both(script, server.url, server.token, ("--allow", "observe",
                               "--exit-timeout-s", "1"))  # fmt: skip
        assert begun(server) == set()
    assert outcome.extra_s < EXTRA_S + 2  # it shares its processor with the flood


def test_it_cannot_be_told_that_it_may_more(script: Path) -> None:
    """Neither a second welcome nor anything else that a server can say widens the allow-list."""
    frames = [encode(Command("a", "set_allow", {"allow": "control"}))]
    frames += commands(["stop", "gc_collect"], issued_by="root", params={})
    server = attacked(script, frames, "--allow", "observe")
    assert begun(server) == set()
