"""Pickles that pickle, PyTorch's viewer and its command line read."""

from __future__ import annotations

import gzip
import io
import pickle
import pickletools
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.made_snapshots import MadeSnapshot, assert_identical
from vramscope_analysis.snapshot import Snapshot, read_snapshot, write_snapshot

TRACES = Path(__file__).parents[2] / "data" / "traces"
# What the viewer's own reader of pickles knows (unpickle in MemoryViz.js, of 2.6 and later).
VIEWER_OPCODES = {
    "PROTO", "FRAME", "STOP", "MARK", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "TUPLE",
    "TUPLE1", "TUPLE2", "TUPLE3", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "MEMOIZE", "BINGET",
    "LONG_BINGET", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "SHORT_BINUNICODE",
    "BINUNICODE", "NONE", "NEWTRUE", "NEWFALSE",
}  # fmt: skip


def written(snapshot: Snapshot) -> bytes:
    file = io.BytesIO()
    write_snapshot(snapshot, file)
    return file.getvalue()


@pytest.mark.parametrize("seed", range(20))
def test_what_is_written_is_what_was_read(seed: int) -> None:
    plain = MadeSnapshot(random.Random(seed)).plain
    data = written(Snapshot.from_plain(plain))

    assert_identical(pickle.loads(data), plain)
    assert_identical(read_snapshot(data).to_plain(), plain)


def test_a_recorded_snapshot_comes_out_smaller_and_equal() -> None:
    recorded = gzip.decompress((TRACES / "oom__default.pickle.gz").read_bytes())
    data = written(read_snapshot(recorded))

    assert_identical(pickle.loads(data), pickle.loads(recorded))
    assert len(data) < len(recorded)


def test_the_viewer_knows_every_opcode() -> None:
    plain = MadeSnapshot(random.Random(3)).plain
    plain["odd"] = [-1, 2.5, "x" * 300, (1, 2, 3, 4), [[]] * 2, 2**70, None, True, {}]
    data = written(Snapshot.from_plain(plain))
    opcodes = {opcode.name for opcode, _, _ in pickletools.genops(data)}

    assert data[:2] == b"\x80\x04"
    assert opcodes <= VIEWER_OPCODES


def test_what_is_shared_is_written_once() -> None:
    laughs: list[object] = ["ha"]
    for _ in range(18):
        laughs = [laughs] * 2
    data = written(Snapshot.from_plain({"segments": [], "laughs": laughs}))

    assert len(data) < 300
    assert pickle.loads(data)["laughs"] == laughs


def test_it_is_written_in_frames_of_bounded_size() -> None:
    entries = [{"action": "alloc", "addr": at, "size": 1} for at in range(20_000)]
    data = written(Snapshot.from_plain({"segments": [], "device_traces": [entries]}))
    frames = [size for opcode, size, _ in pickletools.genops(data) if opcode.name == "FRAME"]

    assert len(frames) > 3
    assert all(isinstance(size, int) and size < 1 << 18 for size in frames)


@pytest.mark.torch
@pytest.mark.parametrize("command", ["stats", "trace", "trace_plot", "segment_plot"])
def test_pytorchs_command_line_reads_it(command: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(written(read_snapshot(TRACES / "graphs__default.pickle.gz")))
    output = [] if command in ("stats", "trace") else ["-o", str(tmp_path / "out")]
    done = python("-m", "torch.cuda._memory_viz", command, str(path), *output)

    assert done.returncode == 0, done.stderr
    assert done.stdout or (tmp_path / "out").stat().st_size


@pytest.mark.torch
@pytest.mark.parametrize("function", ["segments", "memory"])
def test_pytorchs_flame_graphs_get_the_same_lines(function: str, tmp_path: Path) -> None:
    """The command line draws them with a script that it downloads: only what that would get."""
    pytest.importorskip("torch")
    recorded = tmp_path / "recorded.pickle"
    recorded.write_bytes(gzip.decompress((TRACES / "graphs__default.pickle.gz").read_bytes()))
    ours = tmp_path / "ours.pickle"
    ours.write_bytes(written(read_snapshot(recorded)))
    lines = (
        "import pickle, sys; import torch.cuda._memory_viz as viz\n"
        f"print(viz.{function}(pickle.load(open(sys.argv[1], 'rb')), format_flamegraph=str))"
    )
    expected = python("-c", lines, str(recorded))

    assert expected.returncode == 0, expected.stderr
    assert python("-c", lines, str(ours)).stdout == expected.stdout


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=100)
