"""The limit of a container or a job, under both versions of control groups."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vramscope.collectors.cgroup import REPEATED, CgroupMemory, MemoryCgroup
from vramscope.collectors.proc_text import ProcText
from vramscope_protocol.columns import UNKNOWN


class Machine:
    """A made-up /proc/self and /sys/fs/cgroup."""

    def __init__(self, folder: Path) -> None:
        self.proc = folder / "proc"
        self.mount = folder / "cgroup"
        self.proc.mkdir()
        self.mount.mkdir()

    def v2(self, path: str, root: str = "/") -> None:
        self._write(
            f"0::{path}\n", f"30 23 0:26 {root} {self.mount} rw - cgroup2 cgroup2 rw,nsdelegate\n"
        )

    def v1(self, path: str, root: str = "/") -> None:
        self._write(
            f"11:cpu,cpuacct:/x\n8:memory:{path}\n1:name=systemd:/y\n",
            f"30 23 0:26 {root} {self.mount} rw shared:9 - cgroup cgroup rw,memory\n",
        )

    def group(self, path: str, **files: str) -> None:
        folder = self.mount / path.strip("/")
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / f"memory.{name}").write_text(text + "\n")

    def cgroup(self) -> MemoryCgroup:
        return MemoryCgroup(ProcText(), str(self.proc))

    def read(self) -> CgroupMemory:
        return self.cgroup().read()

    def _write(self, cgroup: str, mountinfo: str) -> None:
        (self.proc / "cgroup").write_text(cgroup)
        other = "29 23 0:25 / /proc rw - proc proc rw\nshort line\n"
        (self.proc / "mountinfo").write_text(other + mountinfo)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_v2_limit_and_use_of_its_own_group(machine: Machine) -> None:
    machine.v2("/job")
    machine.group("/job", max="4096", current="1024")
    assert machine.read() == (4096, 1024)


def test_v2_the_lowest_limit_above_counts_with_its_own_use(machine: Machine) -> None:
    machine.v2("/slurm/job_1/step_0")
    machine.group("/slurm", max="max", current="9000")
    machine.group("/slurm/job_1", max="2048", current="2000")
    machine.group("/slurm/job_1/step_0", max="4096", current="1024")
    assert machine.read() == (2048, 2000)


def test_no_limit_anywhere_is_unknown_and_not_a_number(machine: Machine) -> None:
    machine.v2("/job")
    machine.group("/job", max="max", current="1024")
    assert machine.read() == (UNKNOWN, UNKNOWN)


def test_v2_in_a_container_with_a_namespace_of_its_own(machine: Machine) -> None:
    machine.v2("/")
    machine.group("/", max="8192", current="100")
    assert machine.read() == (8192, 100)


@pytest.mark.parametrize("path", ["/docker/abc", "/docker/abc/inner", "/../other"])
def test_in_a_container_that_sees_a_part_of_the_hierarchy(machine: Machine, path: str) -> None:
    machine.v2(path, root="/docker/abc")
    machine.group("/", max="8192", current="100")
    assert machine.read() == (8192, 100)


def test_v1_limit_and_use(machine: Machine) -> None:
    machine.v1("/slurm/uid_0/job_1")
    machine.group("/slurm/uid_0", limit_in_bytes="9223372036854771712")
    machine.group("/slurm/uid_0/job_1", limit_in_bytes="65536", usage_in_bytes="4096")
    assert machine.read() == (65536, 4096)


def test_v1_without_a_limit_is_unknown(machine: Machine) -> None:
    machine.v1("/job")
    machine.group("/job", limit_in_bytes="9223372036854771712", usage_in_bytes="1")
    assert machine.read() == (UNKNOWN, UNKNOWN)


def test_a_use_that_is_not_there_leaves_the_limit_known(machine: Machine) -> None:
    machine.v2("/job")
    machine.group("/job", max="4096")
    assert machine.read() == (4096, UNKNOWN)


def test_a_process_that_is_moved_is_found_again(machine: Machine) -> None:
    machine.v2("/first")
    machine.group("/first", max="4096", current="1")
    machine.group("/second", max="2048", current="2")
    cgroup = machine.cgroup()
    assert cgroup.read() == (4096, 1)
    machine.v2("/second")
    machine.group("/first", current="3")
    assert [cgroup.read() for _ in range(REPEATED)] == [(4096, 3)] * REPEATED
    assert cgroup.read() == (2048, 2)


def test_a_system_without_control_groups_is_unknown(tmp_path: Path) -> None:
    assert MemoryCgroup(ProcText(), str(tmp_path)).read() == (UNKNOWN, UNKNOWN)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_this_process_can_be_asked() -> None:
    limit_bytes, used_bytes = MemoryCgroup(ProcText()).read()
    assert limit_bytes == UNKNOWN or limit_bytes > 1 << 20
    assert used_bytes == UNKNOWN or used_bytes > 0
