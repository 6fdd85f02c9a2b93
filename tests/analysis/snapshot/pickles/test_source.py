from __future__ import annotations

import gzip
import io
import mmap
from pathlib import Path

import pytest

from vramscope_analysis.snapshot import Limits, SnapshotError
from vramscope_analysis.snapshot.pickles.source import check_pickle, open_source, source_name

PICKLE = b"\x80\x04}."


def test_a_file_on_disk_is_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a.pickle"
    path.write_bytes(PICKLE)
    data = open_source(path, Limits())

    assert isinstance(data, mmap.mmap)
    assert data[:] == PICKLE


def test_a_file_that_was_read_from_goes_on_from_there(tmp_path: Path) -> None:
    path = tmp_path / "a.pickle"
    path.write_bytes(b"head" + PICKLE)
    with path.open("rb") as file:
        file.read(4)
        assert open_source(file, Limits()) == PICKLE
    assert open_source(io.BytesIO(PICKLE), Limits()) == PICKLE


def test_gzip_is_unpacked_member_by_member() -> None:
    zipped = gzip.compress(PICKLE[:2]) + gzip.compress(PICKLE[2:])
    assert open_source(zipped, Limits()) == PICKLE


def test_gzip_of_ordinary_data_is_not_refused_for_its_ratio() -> None:
    data = PICKLE + bytes(60 << 20)
    assert len(open_source(gzip.compress(data, 1), Limits(gzip_ratio=2))) == len(data)


def test_what_follows_gzip_is_left_out() -> None:
    assert open_source(gzip.compress(PICKLE) + b"\0\0\0", Limits()) == PICKLE


def test_sizes_are_bounded_before_anything_is_read() -> None:
    with pytest.raises(SnapshotError, match="the file has 4 bytes"):
        open_source(PICKLE, Limits(file_bytes=3))
    with pytest.raises(SnapshotError, match="unpacks to too many bytes"):
        open_source(gzip.compress(PICKLE * 100), Limits(file_bytes=300))


def test_names_are_those_that_the_caller_used(tmp_path: Path) -> None:
    assert source_name("a/b.pickle") == "a/b.pickle"
    assert source_name(Path("c.pickle")) == "c.pickle"
    assert source_name(b"") == "snapshot"
    assert source_name(io.BytesIO()) == "snapshot"


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_protocols(protocol: int) -> None:
    check_pickle(bytes([0x80, protocol]))
    with pytest.raises(SnapshotError, match="protocol 2 to 5, got"):
        check_pickle(bytes([0x80, protocol + 4]))
