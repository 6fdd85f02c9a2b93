"""Files that must be refused: with the right words, in bounded time and memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bad_snapshots import BadFile, bad_files
from vramscope_analysis.snapshot import SnapshotError, read_snapshot

# All of them in a process that may grow by 1.5 GiB, which says the name of each it survived.
READ_ALL = """
import resource
from tests.support.bad_snapshots import bad_files
from vramscope_analysis.snapshot import SnapshotError, read_snapshot
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 29),) * 2)
for bad in bad_files():
    try:
        read_snapshot(bad.data)
    except SnapshotError as error:
        print(bad.name)
"""


def test_there_are_many_and_their_names_differ() -> None:
    names = [bad.name for bad in bad_files()]
    assert len(names) >= 100
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("bad", list(bad_files()), ids=lambda bad: bad.name)
def test_it_is_refused_with_the_right_words(
    bad: BadFile, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SnapshotError, match=bad.words) as raised:
        read_snapshot(bad.data)
    assert len(str(raised.value)) < 300
    assert capsys.readouterr() == ("", "")


def test_none_takes_much_memory() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL], cwd=root, capture_output=True, text=True, timeout=100
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [bad.name for bad in bad_files()]
