from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from vramscope_protocol.errors import INTERNAL, VramscopeError
from vramscope_server.machine.training_jobs import TrainingJobs
from vramscope_server.settings import Limits

NOTES = """
import os, pathlib, sys
with pathlib.Path(sys.argv[1]).open("a") as notes:
    notes.write("x")
secret = [name for name in os.environ if name.startswith("VRAMSCOPE_")]
print('[{"pid": 7, "cwd": "%s", "secrets": %d}]' % (os.getcwd(), len(secret)))
"""


class FakeClock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def jobs_of(script: str, *arguments: str, **limits: float) -> TrainingJobs:
    command = (sys.executable, "-c", script, *arguments)
    return TrainingJobs(Limits(**limits), command)  # type: ignore[arg-type]


def failure(jobs: TrainingJobs) -> str:
    with pytest.raises(VramscopeError) as failed:
        asyncio.run(jobs.list_jobs())
    assert failed.value.code == INTERNAL
    return failed.value.message


def test_many_that_look_share_one_listing_and_it_is_given_again_while_fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VRAMSCOPE_TOKEN", "secret")
    notes = tmp_path / "notes"
    clock = FakeClock()

    async def test() -> None:
        command = (sys.executable, "-c", NOTES, str(notes))
        jobs = TrainingJobs(Limits(), command, clock)
        found = await asyncio.gather(*[jobs.list_jobs() for _ in range(5)])
        assert found[0].jobs == [{"pid": 7, "cwd": "/", "secrets": 0}]
        clock.now_s += 1.9
        again = await jobs.list_jobs()
        assert again.taken_ns == found[0].taken_ns
        assert notes.read_text() == "x"
        clock.now_s += 0.2
        assert (await jobs.list_jobs()).taken_ns > again.taken_ns
        assert notes.read_text() == "xx"

    asyncio.run(test())


def test_who_leaves_does_not_take_the_list_away_from_the_others(tmp_path: Path) -> None:
    async def test() -> None:
        jobs = TrainingJobs(Limits(), (sys.executable, "-c", NOTES, str(tmp_path / "notes")))
        leaves, stays = (asyncio.create_task(jobs.list_jobs()) for _ in range(2))
        await asyncio.sleep(0)
        leaves.cancel()
        assert (await stays).jobs[0]["pid"] == 7
        with pytest.raises(asyncio.CancelledError):
            await leaves

    asyncio.run(test())


def test_what_went_wrong_is_said() -> None:
    assert failure(jobs_of("import sys; sys.exit('no /proc here')")).endswith("no /proc here")
    assert "exit code 3" in failure(jobs_of("raise SystemExit(3)"))
    assert "expected a list" in failure(jobs_of("print('{}')"))
    assert "No such file" in failure(TrainingJobs(Limits(), ("/nowhere/python",)))
    long = jobs_of("print('x' * 4000)", machine_list_bytes=1000)
    assert "more than 1000 bytes" in failure(long)


def test_a_listing_that_hangs_is_ended(tmp_path: Path) -> None:
    script = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    pid_file = tmp_path / "pid"
    assert "no answer within 2 s" in failure(jobs_of(script, str(pid_file), machine_list_s=2))
    assert not Path(f"/proc/{pid_file.read_text()}").exists()


def test_stopping_ends_what_runs(tmp_path: Path) -> None:
    script = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    pid_file = tmp_path / "pid"

    async def test() -> None:
        jobs = jobs_of(script, str(pid_file))
        looking = asyncio.create_task(jobs.list_jobs())
        while not pid_file.exists() or not pid_file.read_text():
            await asyncio.sleep(0.01)
        await jobs.stop()
        await jobs.stop()
        with pytest.raises(asyncio.CancelledError):
            await looking

    asyncio.run(test())
    assert not Path(f"/proc/{pid_file.read_text()}").exists()
