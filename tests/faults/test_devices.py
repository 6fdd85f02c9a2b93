"""Several devices in one process, several processes on one device, and CUDA that is not up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_machine import CUDA, driver_environment, last_device, start_watched
from tests.support.fake_server import FakeServer
from tests.support.job_process import finish
from tests.support.same_job import write_script
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import Register

TWO = [{"uuid": "GPU-uuid-0"}, {"uuid": "GPU-uuid-1"}]

DRIVES_TWO = f"""{CUDA}
import vramscope
fake = fake_cuda(2, current=1)
fake.stats = [nested_stats(reserved_bytes=111), nested_stats(reserved_bytes=222)]
for number in range(60):
    vramscope.step()
    time.sleep(0.03)
"""

# Another maker's device, which the job sets up after a while.
DRIVES_XPU = f"""{CUDA}
import vramscope
from tests.support.fake_backends import FakeBackend
fake = FakeBackend("xpu", own=True)
sys.modules["torch"] = fake.torch
for number in range(40):
    fake.is_up = number >= 10
    vramscope.step()
    time.sleep(0.03)
"""

SHARES_ONE = f"""{CUDA}
import pathlib, vramscope
mine = int(sys.argv[1])
folder = pathlib.Path(os.environ["FAKE_NVML_PROCESSES"], "GPU-uuid-0")
folder.mkdir(parents=True, exist_ok=True)
(folder / str(os.getpid())).write_text(str(mine))
fake = fake_cuda(1)
fake.stats = [nested_stats(reserved_bytes=mine // 2)]
while len(list(folder.iterdir())) < 2:
    time.sleep(0.01)
for number in range(30):
    vramscope.step()
    time.sleep(0.1)
"""

# Everything of CUDA that would start it, or touch it in a child, is written down.
NOT_UP = f"""{CUDA}
import vramscope
fake = fake_cuda(1)
fake.initialized = False
touched = []
cuda, c_module = sys.modules["torch.cuda"], sys.modules["torch"]._C
for owner in (cuda, c_module):
    for name, function in list(vars(owner).items()):
        if name in ("is_initialized", "_current_graph_task_id") or not callable(function):
            continue
        if not isinstance(function, type):
            setattr(owner, name, lambda *a, name=name, **o: touched.append(name))
for number in range(15):
    vramscope.step()
    time.sleep(0.1)
before = list(touched)
pid = os.fork()
if pid == 0:
    fake.initialized = True  # in a child that inherits CUDA it looks as if it were up
    vramscope.step()
    with vramscope.phase("eval"):
        time.sleep(0.5)
    os._exit(len(touched) - len(before))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), before)
"""


def reserved(row: dict[str, Any]) -> int:
    return int(row["reserved_bytes.all.current"])


def test_a_process_that_drives_two_devices_is_one_rank_with_the_device_it_trains_on(
    tmp_path: Path,
) -> None:
    with FakeServer() as server:
        script = write_script(tmp_path, DRIVES_TWO)
        code, _, errors = finish(start_watched(script, server, driver_environment(TWO)))
        assert code == 0, errors
        rows = list(server.rows("step"))
        assert [row["step"] for row in rows] == list(range(1, 61))
        assert {reserved(row) for row in rows} == {222}
        device = last_device(server)
        assert device is not None
        assert (device.index, device.uuid) == (1, "GPU-uuid-1")
        assert len({r.stream for r in server.of_type(Register)}) == 1
        last = list(server.rows("sample"))[-1]
        assert last["reserved_bytes.all.current"] == 222
        assert last["reserved_bytes.all.current@0"] == 111
        assert last["device.total_bytes@0"] == 1000


def test_another_makers_device_is_left_alone_until_the_job_has_set_it_up(tmp_path: Path) -> None:
    with FakeServer() as server:
        script = write_script(tmp_path, DRIVES_XPU)
        errors = {"nvmlInit": "NVMLError_LibraryNotFound"}
        code, _, written = finish(start_watched(script, server, driver_environment((), errors)))
        assert code == 0, written  # the fake fails where it is asked too early
        rows = list(server.rows("step"))
        assert reserved(rows[0]) == UNKNOWN
        assert reserved(rows[-1]) == 9
        device = last_device(server)
        assert device is not None
        assert (device.backend, device.name, device.total_bytes) == ("xpu", "Card 1", 64 << 30)
        assert list(server.rows("sample"))[-1]["device.total_bytes"] == 64 << 30
        status = server.status
        assert status is not None
        assert status.guard_errors == 0


@pytest.mark.parametrize("are_ranks", [True, False])
def test_processes_that_share_a_device_have_numbers_of_their_own(
    are_ranks: bool, tmp_path: Path
) -> None:
    device = {"uuid": "GPU-uuid-0", "total": 10_000, "used": 1000, "free": 9000}
    sizes = (400, 600)
    with FakeServer() as first, FakeServer() as second:
        jobs = []
        for number, server in enumerate((first, second)):
            script = write_script(tmp_path, SHARES_ONE.replace("sys.argv[1]", str(sizes[number])))
            script = script.rename(tmp_path / f"train{number}.py")
            place = {"RANK": str(number), "WORLD_SIZE": "2", "VRAMSCOPE_LAUNCH_ID": "shared"}
            found = driver_environment(
                [device],
                {},
                FAKE_NVML_PROCESSES=str(tmp_path / "processes"),
                **(place if are_ranks else {}),
            )
            jobs.append(start_watched(script, server, found, "one" if are_ranks else str(number)))
        for job in jobs:
            code, _, errors = finish(job)
            assert code == 0, errors
        registers = [server.of_type(Register)[-1] for server in (first, second)]
        for number, server in enumerate((first, second)):
            last = list(server.rows("sample"))[-1]
            assert last["device.process_bytes"] == sizes[number]
            assert last["device.other_bytes"] == sizes[1 - number]
            assert last["device.used_bytes"] == 1000
            assert reserved(last) == sizes[number] // 2
    assert [r.rank.rank for r in registers] == ([0, 1] if are_ranks else [0, 0])
    assert len({r.run.id for r in registers}) == (1 if are_ranks else 2)


def test_cuda_that_is_not_up_is_not_started_and_not_touched_in_a_child(tmp_path: Path) -> None:
    with FakeServer() as server:
        script = write_script(tmp_path, NOT_UP)
        code, output, errors = finish(start_watched(script, server, driver_environment(TWO)))
        assert (code, output) == (0, "0 []\n"), errors
        samples = list(server.rows("sample"))
        assert len(samples) > 5
        assert {reserved(row) for row in samples} == {UNKNOWN}
        assert samples[-1]["device.total_bytes"] == 1000
