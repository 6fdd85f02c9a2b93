"""Stored snapshots are opened, put in and deleted, and those who look are told."""

from __future__ import annotations

import asyncio
import gzip
import io
import pickle
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.history_rig import made_snapshot
from tests.support.streams import open_store
from vramscope_analysis.snapshot import read_snapshot
from vramscope_protocol.errors import BAD_REQUEST, CONFLICT, NOT_FOUND, VramscopeError
from vramscope_server.settings import Limits
from vramscope_server.snapshots.files import SnapshotFiles
from vramscope_server.store import snapshots

T = TypeVar("T")
RAW = pickle.dumps(made_snapshot(50), protocol=4)


class Bench:
    """Files on a store of their own, and what was told."""

    def __init__(self, folder: Path, **limits: int) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.store = open_store(folder)
        self.connected = True
        self.files = SnapshotFiles(
            self.store, self, lambda uid: self.connected, Limits(**limits), lambda: 9
        )

    def publish_snapshot(self, run_id: str, snapshot: dict[str, Any]) -> None:
        self.told.append((run_id, snapshot))

    def put(self, data: bytes, run: str | None = "r1", name: str = "a.pickle") -> dict[str, Any]:
        return run_now(self.files.put(io.BytesIO(data), run_id=run, rank=0, name=name, who="me"))


def run_now(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.store.close()


def code(error: pytest.ExceptionInfo[VramscopeError]) -> str:
    return error.value.code


@pytest.mark.parametrize("packed", [False, True])
def test_what_a_person_puts_in_comes_out_the_same(bench: Bench, packed: bool) -> None:
    stored = bench.put(gzip.compress(RAW) if packed else RAW)
    assert (stored["state"], stored["origin"], stored["issued_by"]) == ("complete", "upload", "me")
    assert stored["raw_bytes"] == len(RAW)
    assert b"".join(bench.files.unpacked(stored["id"], len(RAW))) == RAW
    with bench.files.open_now(stored["id"]) as file:
        assert file.fileno() > 0
        read_snapshot(file)
    assert run_now(bench.files.of_run("r1")) == [stored]
    assert run_now(bench.files.run_of(stored["id"])) == "r1"
    assert bench.told[-1] == ("r1", stored)


@pytest.mark.parametrize(
    "data", [b"", b"hello", pickle.dumps(print), gzip.compress(b"hello", mtime=0), RAW[:100]]
)
def test_what_is_no_snapshot_is_refused(bench: Bench, data: bytes) -> None:
    with pytest.raises(VramscopeError) as error:
        bench.put(data)
    assert code(error) == BAD_REQUEST
    assert error.value.message.startswith("a.pickle: ")
    assert run_now(bench.files.of_run("r1")) == []


def test_one_that_is_too_large_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, snapshot_raw_bytes=100)
    with pytest.raises(VramscopeError, match="unpacks to more than 100 bytes"):
        bench.put(RAW)
    bench.store.close()


def test_without_room_it_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, snapshot_total_bytes=10)
    with pytest.raises(VramscopeError, match="no room") as error:
        bench.put(RAW)
    assert code(error) == CONFLICT
    bench.store.close()


def test_one_of_no_run_tells_nobody(bench: Bench) -> None:
    stored = bench.put(RAW, run=None)
    assert run_now(bench.files.run_of(stored["id"])) is None
    assert bench.told == []


def test_a_deleted_one_is_gone_with_its_parts(bench: Bench) -> None:
    identity = bench.put(RAW)["id"]
    run_now(bench.files.delete(identity))
    assert bench.told[-1][1]["state"] == "deleted"
    for ask in (bench.files.get, bench.files.run_of, bench.files.delete):
        with pytest.raises(VramscopeError) as error:
            run_now(ask(identity))
        assert code(error) == NOT_FOUND
    with pytest.raises(VramscopeError):
        bench.files.open_now(identity)
    assert bench.store.read_now(lambda c: snapshots.part(c, identity, 0)) is None


def test_what_has_not_arrived_cannot_be_opened(bench: Bench) -> None:
    stored = bench.put(RAW)
    row = {**stored, "id": "half", "stream": "a", "wire_bytes": 10}
    for name in ("received_bytes", "state", "reason"):
        del row[name]
    bench.store.write_now(lambda c: snapshots.add(c, row))
    with pytest.raises(VramscopeError, match="has not arrived yet: 0 of 10 bytes") as error:
        bench.files.open_now("half")
    assert code(error) == CONFLICT
    assert run_now(bench.files.get("half"))["state"] == "receiving"
    bench.connected = False
    assert run_now(bench.files.get("half"))["state"] == "incomplete"
    bench.store.write_now(lambda c: snapshots.finish(c, "half", snapshots.FAILED, "damaged"))
    with pytest.raises(VramscopeError, match="did not arrive: damaged"):
        bench.files.open_now("half")


def test_what_a_killed_server_left_is_deleted_at_the_start(bench: Bench) -> None:
    identity = bench.put(RAW)["id"]
    bench.store.write_now(lambda c: snapshots.remove(c, identity))
    run_now(bench.files.start())
    assert bench.store.read_now(lambda c: snapshots.part(c, identity, 0)) is None


def test_it_is_told_now_and_then_how_much_has_come(bench: Bench) -> None:
    stored = bench.put(RAW)
    bench.told.clear()
    part_bytes = 256 << 10
    for number in range(1, 65):
        bench.files.progressed({**stored, "received_bytes": number * part_bytes})
    assert len(bench.told) == 4
