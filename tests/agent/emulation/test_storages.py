from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from vramscope.emulation.storages import StorageMirror

pytestmark = pytest.mark.torch

MIB = 1 << 20


@pytest.fixture
def mirror() -> StorageMirror:
    from vramscope.emulation.storages import StorageMirror
    from vramscope_analysis.allocator import CachingAllocator

    return StorageMirror(CachingAllocator(64 * MIB))


def see(mirror: StorageMirror, *tensors: Any) -> Any:
    return mirror.see(tensors, {}, None)


def counts(mirror: StorageMirror) -> tuple[int, int]:
    with mirror.model() as model:
        allocation = model.memory_stats()["allocation"]["all"]
    return allocation["current"], allocation["allocated"]


def test_a_storage_is_counted_once_however_often_it_is_seen(mirror: StorageMirror) -> None:
    tensor = torch.ones(10)

    see(mirror, tensor, tensor.view(2, 5))
    see(mirror, [tensor], (tensor, None, 3))

    assert counts(mirror) == (1, 1)


def test_arguments_keywords_and_results_are_looked_at(mirror: StorageMirror) -> None:
    first, second, third = torch.ones(1), torch.ones(1), torch.ones(1)

    mirror.see((first,), {"scale": second, "dim": 1}, [third])

    assert counts(mirror) == (3, 3)


def test_a_death_reaches_the_model_with_the_next_read(mirror: StorageMirror) -> None:
    see(mirror, torch.ones(10))

    assert counts(mirror) == (0, 1)


def test_addresses_in_use_again_are_new_storages(mirror: StorageMirror) -> None:
    for _ in range(100):
        see(mirror, torch.ones(10))

    assert counts(mirror) == (0, 100)


def test_a_death_that_is_still_on_its_way_does_not_hide_the_next_storage(
    mirror: StorageMirror,
) -> None:
    first, second = torch.ones(10), torch.ones(20)
    see(mirror, first)
    (ref,) = mirror._refs.values()
    # The second storage where the first was, its death not yet in the queue.
    ref.key = second.untyped_storage()._cdata
    mirror._refs = {ref.key: ref}

    see(mirror, second)
    assert counts(mirror) == (1, 2)
    del first
    assert counts(mirror) == (1, 2)
    del second
    assert counts(mirror) == (0, 2)


def test_what_does_not_fit_is_returned_and_not_counted(mirror: StorageMirror) -> None:
    tensor = torch.empty(100 * MIB, dtype=torch.uint8)

    refused = see(mirror, torch.ones(1), tensor)

    assert refused.requested_bytes == 100 * MIB
    assert refused.__traceback__ is None
    del tensor
    gc.collect()
    assert counts(mirror) == (0, 1)


def test_a_storage_that_cannot_grow_keeps_its_block(mirror: StorageMirror) -> None:
    tensor = torch.empty(40 * MIB, dtype=torch.uint8)
    see(mirror, tensor)
    tensor.untyped_storage().resize_(50 * MIB)

    assert see(mirror, tensor).requested_bytes == 50 * MIB
    assert counts(mirror) == (1, 1)
    del tensor
    assert counts(mirror) == (0, 1)


def test_operations_inside_a_read_wait_for_their_next_use(mirror: StorageMirror) -> None:
    tensor = torch.ones(10)
    with mirror.model() as model:
        see(mirror, tensor)  # what a finalizer of the job would do, run by the collector in here
        assert model.reserved_bytes == 0

    see(mirror, tensor)

    assert counts(mirror) == (1, 1)


def test_no_other_thread_reads_in_the_middle_of_an_allocation() -> None:
    from vramscope.emulation.storages import StorageMirror
    from vramscope_analysis.allocator import CachingAllocator

    acquired: list[bool] = []

    def in_the_middle(*_event: object) -> None:
        thread = threading.Thread(
            target=lambda: acquired.append(watched._lock.acquire(blocking=False))
        )
        thread.start()
        thread.join()

    watched = StorageMirror(CachingAllocator(64 * MIB, on_event=in_the_middle))
    see(watched, torch.ones(10))

    assert counts(watched) == (0, 1)
    assert acquired
    assert not any(acquired)


def test_dead_shared_storages_are_found_without_word_from_python(mirror: StorageMirror) -> None:
    for count in (1, 2):
        see(mirror, torch.ones(10).share_memory_())
        mirror._dead.clear()  # as in torch 2.4, where a weak reference in C++ keeps the object

        with mirror.model() as model:
            allocation = model.memory_stats()["allocation"]["all"]
        assert (allocation["current"], allocation["allocated"]) == (0, count)


def test_a_change_in_the_middle_of_an_operation_waits_for_its_end() -> None:
    from vramscope.emulation.storages import StorageMirror
    from vramscope_analysis.allocator import CachingAllocator

    reserved: list[int] = []
    is_watching: list[bool] = []

    def in_the_middle(action: str, *_event: object) -> None:
        if action == "alloc" and is_watching:
            # What a finalizer of the job may do, run by the garbage collector in here.
            watched.change(CachingAllocator.empty_cache)
            with watched.model() as model:
                reserved.append(model.reserved_bytes)

    watched = StorageMirror(CachingAllocator(64 * MIB, on_event=in_the_middle))
    kept = torch.ones(10)
    with watched.model() as model:
        model.free(model.malloc(30 * MIB))

    is_watching.append(True)
    see(watched, kept)

    assert reserved == [32 * MIB]
    with watched.model() as model:
        assert model.reserved_bytes == 2 * MIB


def test_a_change_during_a_read_waits_for_its_end(mirror: StorageMirror) -> None:
    from vramscope_analysis.allocator import CachingAllocator

    with mirror.model() as model:
        model.free(model.malloc(30 * MIB))
        mirror.change(CachingAllocator.empty_cache)
        assert model.reserved_bytes == 30 * MIB

    assert model.reserved_bytes == 0


def test_a_change_sees_the_dead_first(mirror: StorageMirror) -> None:
    from vramscope_analysis.allocator import CachingAllocator

    see(mirror, torch.empty(30 * MIB, dtype=torch.uint8))
    mirror.change(CachingAllocator.empty_cache)

    with mirror.model() as model:
        assert model.reserved_bytes == 0


def recorded_mirror(gathers: bool) -> tuple[StorageMirror, Any]:
    from vramscope.emulation.history import Context, History, HistoryRequest
    from vramscope.emulation.storages import StorageMirror
    from vramscope_analysis.allocator import CachingAllocator

    history = History()
    history.start(HistoryRequest(Context.ALL, 100))
    mirror = StorageMirror(CachingAllocator(64 * MIB, on_event=history.event), history)
    mirror.gather_deaths(gathers)
    return mirror, history


def frees(mirror: StorageMirror, history: Any) -> list[list[str]]:
    from vramscope.emulation.stacks import FrameLists

    with mirror.model():
        entries = history.recorded().entries
    frames = FrameLists()
    return [
        [frame["name"] for frame in frames.frames(entry[6])][:1]
        for entry in entries
        if entry[0] == "free_completed"
    ]


def test_the_history_says_where_a_storage_died() -> None:
    mirror, history = recorded_mirror(gathers=True)

    def drop(tensors: list[Any]) -> None:
        tensors.clear()

    tensors = [torch.ones(10), torch.ones(20)]
    see(mirror, tensors)
    drop(tensors)
    see(mirror, torch.ones(1))  # the deaths reach the model in here, which is not where they were

    assert frees(mirror, history)[:2] == [["drop"], ["drop"]]


def test_after_the_end_no_stack_is_taken() -> None:
    mirror, history = recorded_mirror(gathers=True)
    tensor = torch.ones(10)
    see(mirror, tensor)
    mirror.close()
    del tensor

    assert frees(mirror, history) == [["see"]]


def test_where_nobody_asks_a_free_shows_the_allocation() -> None:
    mirror, history = recorded_mirror(gathers=False)
    see(mirror, torch.ones(10))

    assert frees(mirror, history) == [["see"]]


def test_a_storage_that_grew_was_not_freed_by_a_death() -> None:
    mirror, history = recorded_mirror(gathers=True)
    see(mirror, torch.ones(10))
    tensor = torch.ones(10)
    see(mirror, tensor)
    tensor.resize_(2000)
    see(mirror, tensor)

    here = "test_a_storage_that_grew_was_not_freed_by_a_death"
    assert frees(mirror, history)[:2] == [[here], ["see"]]


def test_the_history_can_tell_what_was_asked_for() -> None:
    from vramscope_analysis.allocator import CachingAllocator

    mirror, history = recorded_mirror(gathers=False)
    asked: list[bool] = []
    see(mirror, torch.ones(10))
    mirror.change(lambda model: asked.append(history.is_asked))
    with mirror.model():
        mirror.change(lambda model: asked.append(history.is_asked))
    mirror.change(CachingAllocator.empty_cache)

    assert asked == [True, True]
    assert not history.is_asked


def test_scopes_reach_the_history() -> None:
    mirror, history = recorded_mirror(gathers=False)
    mirror.annotate("step")
    mirror.annotate(None)

    assert [each[:2] for each in history.recorded().annotations] == [
        ("START", "step"),
        ("END", "step"),
    ]


def test_a_tensor_has_a_place_once_an_operation_has_used_it() -> None:
    mirror, _ = recorded_mirror(gathers=False)
    tensor = torch.ones(1000)
    assert mirror.place_of(tensor) is None
    see(mirror, tensor)
    place = mirror.place_of(tensor[10:])
    assert place is not None
    with mirror.model() as model:
        blocks = {block["address"]: block for each in model.segments() for block in each["blocks"]}
    assert blocks[place[0]]["state"] == "active_allocated"
    assert place[1] == 4000


def test_a_place_is_not_that_of_a_storage_that_had_the_same_address_before() -> None:
    mirror, _ = recorded_mirror(gathers=False)
    for _ in range(50):
        tensor = torch.ones(1000)
        assert mirror.place_of(tensor) is None
        see(mirror, tensor)


def test_a_tensor_without_a_storage_has_no_place() -> None:
    mirror, _ = recorded_mirror(gathers=False)
    indices = torch.tensor([[0, 1]])
    sparse = torch.sparse_coo_tensor(indices, torch.ones(2), (3,), check_invariants=True)
    assert mirror.place_of(sparse) is None
