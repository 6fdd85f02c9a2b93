"""The first word stands for all ranks; a store that fails or hangs costs nobody more than said."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_store import FakeStore
from vramscope.commands.agreement import Agreement, job_store

KEY = "vramscope/c1/7"


def test_the_first_word_stands_for_everyone() -> None:
    store = FakeStore()
    one, other = Agreement(lambda: store), Agreement(lambda: store)
    assert other.look(KEY) is None
    assert one.settle(KEY, "run") == "run"
    assert other.look(KEY) == "run"
    assert other.settle(KEY, "drop") == "run"
    assert other.settle("vramscope/c1/9", "drop") == "drop"


def test_of_many_who_propose_at_once_all_hear_the_same() -> None:
    store = FakeStore()
    words: list[str | None] = []
    barrier = threading.Barrier(8)

    def propose(number: int) -> None:
        barrier.wait(5)
        words.append(Agreement(lambda: store).settle(KEY, "run" if number % 2 else "drop"))

    threads = [threading.Thread(target=propose, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert len(words) == 8
    assert words in (["run"] * 8, ["drop"] * 8)


def test_without_a_store_there_is_no_word() -> None:
    agreement = Agreement(lambda: None)
    assert agreement.settle(KEY, "run") is None
    assert agreement.look(KEY) is None


def test_a_store_that_raises_is_none() -> None:
    store = FakeStore()
    store.error = RuntimeError("Connection reset by peer")
    agreement = Agreement(lambda: store)
    assert agreement.settle(KEY, "run") is None
    assert agreement.look(KEY) is None
    store.error = None
    assert agreement.settle(KEY, "run") == "run"


def test_a_store_that_hangs_is_waited_for_once_and_asked_no_more() -> None:
    store = FakeStore()
    store.hang()
    agreement = Agreement(lambda: store, ask_s=0.2)
    begun_s = time.monotonic()
    assert agreement.settle(KEY, "run") is None
    assert 0.15 < time.monotonic() - begun_s < 1.5
    agreement.tell(KEY, "drop")
    assert agreement.look(KEY) is None
    assert store.asked == 1
    store.recover()
    # What was asked first was asked: its word is there after all.
    assert agreement.settle(KEY, "drop", 5.0) == "run"


def test_telling_waits_for_no_answer() -> None:
    store = FakeStore()
    store.hang()
    agreement = Agreement(lambda: store, ask_s=5.0)
    begun_s = time.monotonic()
    agreement.tell(KEY, "drop")
    assert time.monotonic() - begun_s < 1.0
    store.recover()
    assert agreement.settle(KEY, "run") == "drop"


def test_a_process_that_can_start_no_thread_has_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    store = FakeStore()
    agreement = Agreement(lambda: store)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        assert agreement.settle(KEY, "run") is None
    assert agreement.settle(KEY, "run") == "run"


def test_an_answer_that_is_no_word_is_none() -> None:
    store = FakeStore()
    store.words[KEY] = "perhaps"
    assert Agreement(lambda: store).settle(KEY, "run") is None


def test_a_job_without_a_process_group_has_no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch.distributed.distributed_c10d", raising=False)
    assert job_store() is None


def hash_store(folder: Path) -> Any:
    import torch.distributed as dist

    return dist.HashStore()


def file_store(folder: Path) -> Any:
    import torch.distributed as dist

    return dist.FileStore(str(folder / "store"), 1)


def tcp_store(folder: Path) -> Any:
    import torch.distributed as dist

    return dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def store_of_mpi(folder: Path) -> Any:
    import torch.distributed as dist

    return dist.Store()


@pytest.mark.torch
@pytest.mark.parametrize("make", [hash_store, file_store, tcp_store])
def test_the_stores_of_torch_keep_the_first_word(
    make: Callable[[Path], Any], tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    import torch.distributed as dist

    store = dist.PrefixStore("default_pg", make(tmp_path))
    agreement = Agreement(lambda: store)
    assert agreement.look(KEY) is None
    assert agreement.settle(KEY, "drop") == "drop"
    assert agreement.settle(KEY, "run") == "drop"
    assert agreement.look(KEY) == "drop"


@pytest.mark.torch
def test_the_store_of_mpi_has_no_word(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert Agreement(lambda: store_of_mpi(tmp_path)).settle(KEY, "run") is None


@pytest.mark.torch
def test_the_store_of_the_process_group_is_the_one(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    import torch.distributed as dist

    assert job_store() is None
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    try:
        assert Agreement().settle(KEY, "run") == "run"
        assert Agreement().look(KEY) == "run"
    finally:
        dist.destroy_process_group()
    assert Agreement().look(KEY) is None
