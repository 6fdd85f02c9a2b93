from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch")

if TYPE_CHECKING:
    from vramscope.emulation.history import History

pytestmark = pytest.mark.torch

POOL = (0, 0)
FREES = ("free_requested", "free_completed")


def recording(context: str = "ALL", max_entries: int = 100, **options: Any) -> History:
    from vramscope.emulation.history import Context, History, HistoryRequest

    history = History()
    history.start(HistoryRequest(Context[context], max_entries, **options))
    return history


def request(context: str, max_entries: int, **options: Any) -> Any:
    from vramscope.emulation.history import Context, HistoryRequest

    return HistoryRequest(Context[context], max_entries, **options)


def actions(history: History) -> list[tuple[str, int]]:
    return [entry[:2] for entry in history.recorded().entries]


def with_stack(history: History) -> set[str]:
    """Actions whose entries have stacks."""
    return {entry[0] for entry in history.recorded().entries if entry[6] is not None}


def one_life(history: History) -> None:
    history.event("segment_alloc", 4096, 2 << 20, 0, POOL)
    history.event("alloc", 4096, 100, 0, POOL)
    history.event("free_requested", 4096, 100, 0, POOL)
    history.event("free_completed", 4096, 100, 0, POOL)
    history.event("segment_free", 4096, 2 << 20, 0, POOL)


def test_nothing_is_kept_before_the_start_and_after_the_stop() -> None:
    from vramscope.emulation.history import History

    history = History()
    one_life(history)
    assert actions(history) == []

    history.start(request("NEVER", 10))
    one_life(history)
    assert len(actions(history)) == 5
    history.stop()
    one_life(history)

    assert actions(history) == []
    assert not history.is_recording


def test_an_entry_has_what_the_allocator_said_and_the_time() -> None:
    history = recording("NEVER")
    before_us = time.time_ns() // 1000
    history.event("alloc", 4096, 100, 7, (1, 2))

    (entry,) = history.recorded().entries
    action, address, size_bytes, stream, time_us, pool_id, stack, metadata = entry
    assert (action, address, size_bytes, stream, pool_id) == ("alloc", 4096, 100, 7, (1, 2))
    assert (stack, metadata) == (None, "")
    assert before_us <= time_us <= time.time_ns() // 1000


def test_the_ring_keeps_the_newest_entries() -> None:
    history = recording("NEVER", max_entries=3)
    for address in range(5):
        history.event("alloc", address, 1, 0, POOL)

    assert actions(history) == [("alloc", 2), ("alloc", 3), ("alloc", 4)]


def test_a_second_start_keeps_what_is_there_unless_it_clears() -> None:
    history = recording("NEVER", max_entries=3)
    for address in range(3):
        history.event("alloc", address, 1, 0, POOL)

    history.start(request("NEVER", 2))
    assert actions(history) == [("alloc", 1), ("alloc", 2)]
    history.start(request("NEVER", 2, clear=True))
    assert actions(history) == []


def test_no_job_can_ask_for_a_ring_without_end() -> None:
    from vramscope.emulation.history import MAX_ENTRIES

    history = recording("NEVER", max_entries=1 << 62)

    assert history._entries.maxlen == history._annotations.maxlen == MAX_ENTRIES


@pytest.mark.parametrize(
    ("context", "in_entries", "on_blocks"),
    [
        ("NEVER", {}, False),
        ("STATE", {}, True),
        ("ALLOC", {"segment_alloc", "alloc", *FREES, "segment_free"}, True),
        ("ALL", {"segment_alloc", "alloc", *FREES, "segment_free"}, True),
    ],
)
def test_stacks_are_where_the_context_says(
    context: str, in_entries: set[str], on_blocks: bool
) -> None:
    history = recording(context)
    history.event("segment_alloc", 4096, 2 << 20, 0, POOL)
    history.event("alloc", 4096, 100, 0, POOL)
    recorded = history.recorded()
    assert (4096 in recorded.block_stacks) is on_blocks
    assert (4096 in recorded.segment_stacks) is on_blocks

    history.event("free_requested", 4096, 100, 0, POOL)
    history.event("free_completed", 4096, 100, 0, POOL)
    history.event("segment_free", 4096, 2 << 20, 0, POOL)

    assert with_stack(history) == set(in_entries)
    recorded = history.recorded()
    assert not recorded.block_stacks
    assert not recorded.segment_stacks


def names(history: History, action: str) -> list[str | None]:
    """Innermost function on the stack of each entry of an action."""
    from vramscope.emulation.stacks import FrameLists

    frames = FrameLists()
    return [
        None if entry[6] is None else frames.frames(entry[6])[0]["name"]
        for entry in history.recorded().entries
        if entry[0] == action
    ]


def test_a_free_has_the_stack_of_the_death_or_else_that_of_the_allocation() -> None:
    history = recording("ALL")

    def death() -> Any:
        return history.gather_at_free()

    def allocate() -> None:
        history.event("alloc", 4096, 100, 0, POOL)

    allocate()
    history.stack_of_free = death()
    history.event("free_requested", 4096, 100, 0, POOL)
    history.stack_of_free = None
    history.event("free_completed", 4096, 100, 0, POOL)
    history.event("free_requested", 8192, 100, 0, POOL)  # allocated before the recording

    assert names(history, "free_requested") == ["death", None]
    assert names(history, "free_completed") == ["allocate"]
    history.start(request("ALLOC", 10))
    assert history.gather_at_free() is None


@pytest.mark.parametrize(("context", "asked"), [("ALLOC", "take"), ("ALL", "release")])
def test_what_an_allocation_gives_back_has_its_stack_and_what_was_asked_for_another(
    context: str, asked: str
) -> None:
    history = recording(context)

    def take() -> None:
        history.event("segment_alloc", 4096, 2 << 20, 0, POOL)

    def release() -> None:
        history.event("segment_free", 4096, 2 << 20, 0, POOL)

    take()
    release()
    take()
    history.is_asked = True
    release()

    assert names(history, "segment_free") == ["release", asked]


def test_a_block_that_is_still_pending_keeps_its_stack() -> None:
    history = recording("STATE")
    history.event("alloc", 4096, 100, 0, POOL)
    history.event("free_requested", 4096, 100, 0, POOL)

    assert 4096 in history.recorded().block_stacks


def test_stacks_of_mapped_pages_go_with_the_pages() -> None:
    history = recording("STATE")
    history.event("segment_map", 4096, 2 << 20, 0, POOL)
    assert 4096 in history.recorded().segment_stacks

    history.event("segment_unmap", 4096, 2 << 20, 0, POOL)
    assert not history.recorded().segment_stacks


def test_skipped_actions_leave_no_entry_but_count_for_the_blocks() -> None:
    history = recording("ALL", skip_actions=("alloc", "free_completed"))
    history.event("alloc", 4096, 100, 0, POOL)
    assert 4096 in history.recorded().block_stacks
    history.event("free_requested", 4096, 100, 0, POOL)
    history.event("free_completed", 4096, 100, 0, POOL)

    assert actions(history) == [("free_requested", 4096)]
    assert not history.recorded().block_stacks


def test_stacks_of_a_former_recording_are_forgotten() -> None:
    history = recording("STATE")
    history.event("alloc", 4096, 100, 0, POOL)
    history.stop()
    history.start(request("STATE", 10))

    assert not history.recorded().block_stacks


def test_scopes_begin_and_end_like_brackets() -> None:
    history = recording("NEVER")
    history.annotate(None)  # began before the recording
    history.annotate("outer")
    history.annotate("inner")
    history.annotate(None)
    history.annotate(None)

    assert [(stage, name) for stage, name, _ in history.recorded().annotations] == [
        ("START", "outer"),
        ("START", "inner"),
        ("END", "inner"),
        ("END", "outer"),
    ]


def test_metadata_belongs_to_its_thread() -> None:
    import threading

    history = recording("NEVER")
    history.metadata.text = "mine"
    thread = threading.Thread(target=lambda: history.event("alloc", 1, 1, 0, POOL))
    thread.start()
    thread.join()
    history.event("alloc", 2, 1, 0, POOL)

    assert [entry[-1] for entry in history.recorded().entries] == ["", "mine"]


def test_without_traces_only_the_stacks_of_what_lives_are_copied() -> None:
    history = recording("ALL")
    history.event("alloc", 4096, 100, 0, POOL)
    history.annotate("scope")

    recorded = history.recorded(include_traces=False)
    assert (recorded.entries, recorded.annotations) == ((), ())
    assert 4096 in recorded.block_stacks
