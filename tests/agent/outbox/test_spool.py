from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.file_limit import largest_file
from vramscope.outbox.entry import OTHER, SAMPLES, STEPS, Entry
from vramscope.outbox.losses import Losses
from vramscope.outbox.spool import Spool, remove_stale_spools


def entry(seq: int, kind: int = SAMPLES, rows: int = 1, size: int = 1000) -> Entry:
    return Entry(seq, kind, rows, 5, bytes([seq % 256]) * size)


@pytest.fixture
def losses() -> Losses:
    return Losses()


@pytest.fixture
def spool(tmp_path: Path, losses: Losses) -> Iterator[Spool]:
    spool = Spool(str(tmp_path / "spools"), "one", 1 << 20, losses)
    yield spool
    spool.remove()


def take_all(spool: Spool) -> list[Entry]:
    entries: list[Entry] = []
    while (taken := spool.take()) is not None:
        entries.append(taken)
    return entries


def segments(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "spools" / "one").glob("*.segment"))


def test_entries_come_back_whole_and_in_order(spool: Spool) -> None:
    entries = [entry(1), entry(2, STEPS, 7), entry(3, OTHER), entry(400, SAMPLES, 4000, 100_000)]
    for given in entries:
        spool.append(given)
    assert take_all(spool) == entries
    assert spool.is_empty
    assert spool.size_bytes == 0


def test_taking_and_appending_may_alternate(spool: Spool) -> None:
    for seq in range(1, 50):
        spool.append(entry(2 * seq))
        spool.append(entry(2 * seq + 1))
        taken = spool.take()
        assert taken is not None
        assert taken.seq == seq + 1
    assert [e.seq for e in take_all(spool)] == list(range(51, 100))


def test_files_are_private_and_gone_once_taken(tmp_path: Path, spool: Spool) -> None:
    spool.append(entry(1))
    for folder in (tmp_path / "spools", tmp_path / "spools" / "one"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in segments(tmp_path)] == [0o600]
    take_all(spool)
    assert segments(tmp_path) == []
    spool.remove()
    assert list((tmp_path / "spools").iterdir()) == []


def test_the_bound_holds_and_what_goes_is_counted(tmp_path: Path, losses: Losses) -> None:
    spool = Spool(str(tmp_path / "spools"), "one", 20_000, losses)
    for seq in range(1, 101):
        spool.append(entry(seq, (SAMPLES, STEPS, OTHER)[seq % 3], rows=1))
        assert spool.size_bytes <= 20_000
        assert sum(path.stat().st_size for path in segments(tmp_path)) == spool.size_bytes
    left = [e.seq for e in take_all(spool)]
    assert left[-1] == 100
    assert left == list(range(left[0], 101))
    lost = losses.message()
    assert sum(lost.samples.values()) + sum(lost.steps.values()) + sum(lost.messages.values()) == (
        left[0] - 1
    )
    assert set(lost.samples) == set(lost.steps) == set(lost.messages) == {"spool_full"}
    assert lost.last_dropped_seq == left[0] - 1
    spool.remove()


def test_a_full_disk_loses_only_what_is_being_written(tmp_path: Path, spool: Spool) -> None:
    spool.append(entry(1))
    with largest_file(1500), pytest.raises(OSError, match="too large"):
        spool.append(entry(2))
    assert segments(tmp_path)[0].stat().st_size > spool.size_bytes  # the torn record is there
    spool.append(entry(3))
    assert [e.seq for e in take_all(spool)] == [1, 3]


def test_a_disk_that_is_full_from_the_start_leaves_nothing_behind(
    tmp_path: Path, spool: Spool
) -> None:
    with largest_file(0), pytest.raises(OSError, match="too large"):
        spool.append(entry(1))
    assert spool.is_empty
    assert segments(tmp_path) == []
    spool.append(entry(2))
    assert [e.seq for e in take_all(spool)] == [2]


def test_a_folder_that_vanishes_costs_what_was_in_it_and_no_more(
    tmp_path: Path, spool: Spool, losses: Losses
) -> None:
    spool.append(entry(1, rows=3))
    spool.append(entry(2, STEPS, rows=4))
    subprocess.run(["rm", "-rf", str(tmp_path / "spools")], check=True)
    spool.append(entry(3))
    assert [e.seq for e in take_all(spool)] == [3]
    lost = losses.message()
    assert (lost.samples, lost.steps) == ({"spool_unreadable": 3}, {"spool_unreadable": 4})
    assert lost.last_dropped_seq == 2


@pytest.mark.parametrize("damage", ["flipped", "cut"])
def test_a_damaged_segment_is_read_up_to_the_damage(
    tmp_path: Path, spool: Spool, losses: Losses, damage: str
) -> None:
    for seq in (1, 2, 3):
        spool.append(entry(seq))
    (path,) = segments(tmp_path)
    body = path.read_bytes()
    at = len(body) // 2
    path.write_bytes(body[:at] if damage == "cut" else body[:at] + b"\xff" + body[at + 1 :])
    assert [e.seq for e in take_all(spool)] == [1]
    assert losses.message().samples == {"spool_unreadable": 2}
    spool.append(entry(4))
    assert [e.seq for e in take_all(spool)] == [4]


def test_a_damaged_length_does_not_ask_for_memory(
    tmp_path: Path, spool: Spool, losses: Losses
) -> None:
    spool.append(entry(1))
    (path,) = segments(tmp_path)
    path.write_bytes(b"\xff\xff\xff\xff" + path.read_bytes()[4:])
    assert take_all(spool) == []
    assert losses.message().samples == {"spool_unreadable": 1}


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, losses: Losses) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    for name in ("open", "link"):
        with pytest.raises(PermissionError, match="mode 0700"):
            Spool(str(tmp_path / name), "one", 1000, losses).append(entry(1))


def test_what_a_killed_process_left_is_removed_and_the_living_is_not(
    tmp_path: Path, spool: Spool
) -> None:
    spool.append(entry(1))
    leave_behind = (
        "import os, sys; from vramscope.outbox.spool import Spool;"
        "from vramscope.outbox.losses import Losses;"
        "from vramscope.outbox.entry import Entry;"
        "s = Spool(sys.argv[1], 'killed', 1000, Losses()); s.append(Entry(1, 0, 1, 1, b'x'));"
        "os.kill(os.getpid(), 9)"
    )
    parent = tmp_path / "spools"
    subprocess.run([sys.executable, "-c", leave_behind, str(parent)], check=False)
    assert (parent / "killed").exists()
    (parent / "being-made").mkdir()
    assert remove_stale_spools(str(parent)) == 1
    assert sorted(path.name for path in parent.iterdir()) == ["being-made", "one"]
    os.utime(parent / "being-made", (0, 0))
    assert remove_stale_spools(str(parent)) == 1
    assert [e.seq for e in take_all(spool)] == [1]


def test_a_child_that_forgets_leaves_the_owner_its_spool(tmp_path: Path, spool: Spool) -> None:
    spool.append(entry(1))
    pid = os.fork()
    if pid == 0:
        spool.forget()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert remove_stale_spools(str(tmp_path / "spools")) == 0
    assert [e.seq for e in take_all(spool)] == [1]
