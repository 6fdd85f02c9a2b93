from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.made_recordings import BASE, MIB, Entry, block, entry, recording_of, segment
from vramscope_analysis.replay.past import undo as undo_module
from vramscope_analysis.replay.past.undo import Live, Undo

SEGMENT = 20 * MIB


def lifetime(address: int, size_bytes: int) -> list[Entry]:
    actions = ("alloc", "free_requested", "free_completed")
    return [entry(action, address, size_bytes) for action in actions]


def undone(entries: Sequence[Entry], *blocks: dict[str, object], position: int = 0) -> Undo:
    """What undoing leaves, if the recording ends with one segment of these blocks."""
    undo = Undo(recording_of(entries, [segment(0, blocks)] if blocks else []))
    undo.back_to(position)
    return undo


def live(undo: Undo) -> dict[int, Live]:
    return {address - BASE: block for address, block in undo.live.items()}


def test_an_alloc_undone_leaves_nothing() -> None:
    undo = undone([entry("alloc", 0, 3 * MIB)], block(3 * MIB, 3 * MIB), block(17 * MIB))
    assert live(undo) == {}
    assert not undo.contradictions


def test_a_free_undone_is_pending_first_and_then_live() -> None:
    entries = lifetime(512, 100)[1:]
    undo = undone(entries, block(SEGMENT), position=1)
    assert live(undo) == {512: Live(100, freed_at=1, size_bytes=0)}
    assert undo.pending == {BASE + 512}
    undo.back_to(0)
    assert live(undo) == {512: Live(100, freed_at=1, size_bytes=0)}
    assert not undo.pending
    assert not undo.contradictions


def test_what_no_entry_touches_is_as_the_end_shows_it() -> None:
    undo = undone(
        [entry("oom", 0, 1), entry("snapshot", 0, 0)],
        block(1024, 700),
        block(512),
        block(SEGMENT - 1536, 9000, "active_pending_free"),
    )
    assert live(undo) == {0: Live(700, 2, 1024), 1536: Live(9000, 2, SEGMENT - 1536)}
    assert undo.pending == {BASE + 1536}


def test_a_block_may_be_pending_from_before_the_start_until_after_the_end() -> None:
    before = undone([entry("free_completed", 0, 100)], block(SEGMENT))
    assert before.pending == {BASE}
    after = undone(
        [entry("free_requested", 0, 100)], block(512, 100, "active_pending_free"), block(512)
    )
    assert live(after) == {0: Live(100, 1, 512)}
    assert not after.pending
    assert not before.contradictions + after.contradictions


def test_segments_come_and_go_backwards() -> None:
    entries = [
        entry("segment_free", SEGMENT, 2 * MIB, 7),
        entry("segment_alloc", 0, SEGMENT),
    ]
    undo = undone(entries, block(SEGMENT), position=1)
    assert undo.is_empty
    undo.back_to(0)
    (held,) = undo.held()
    assert (held.address - BASE, held.size_bytes, held.stream) == (SEGMENT, 2 * MIB, 7)
    assert (held.pool_id, held.is_small, held.is_expandable) == (None, None, False)
    assert held.freed_at == 0
    assert not undo.contradictions


def test_pages_come_and_go_backwards() -> None:
    entries = [
        entry("segment_unmap", 0, 2 * MIB),
        entry("segment_map", 2 * MIB, 2 * MIB),
        entry("segment_map", 0, 2 * MIB),
    ]
    end = [segment(0, [block(4 * MIB)], is_small=True, is_expandable=True)]
    undo = Undo(recording_of(entries, end))
    undo.back_to(1)
    assert undo.is_empty
    undo.back_to(0)
    assert [(held.address - BASE, held.end - BASE) for held in undo.held()] == [(0, 2 * MIB)]
    assert not undo.contradictions


def test_only_earlier_positions_can_be_reached() -> None:
    undo = undone([entry("oom", 0, 1)] * 3, position=2)
    for position in (3, -1):
        with pytest.raises(ValueError, match=f"expected a position from 0 to 2, got {position}"):
            undo.back_to(position)


def test_entries_are_undone_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [entry("alloc", 0, 9), *lifetime(0, 9)[1:], *lifetime(512, 8)[:2]]
    end = [segment(0, [block(512), block(512, 8, "active_pending_free"), block(SEGMENT - 1024)])]
    recording = recording_of(entries, end)
    whole = Undo(recording)
    whole.back_to(1)
    monkeypatch.setattr(undo_module, "CHUNK_ENTRIES", 2)
    pieces = Undo(recording)
    for position in (4, 1):
        pieces.back_to(position)
    assert (pieces.live, pieces.pending) == (whole.live, whole.pending)
    assert live(whole) == {0: Live(9, 2, 0)}


@pytest.mark.parametrize(
    ("entries", "blocks", "kind"),
    [
        pytest.param([entry("alloc", 0, 9)], [block(SEGMENT)], "unseen_frees", id="freed"),
        pytest.param(
            [*lifetime(512, 9), *lifetime(0, 9)[:2]],
            [block(SEGMENT)],
            "unseen_frees",
            id="completed",
        ),
        pytest.param(
            lifetime(0, 9), [block(512, 9), block(512)], "unseen_allocs", id="allocated again"
        ),
        pytest.param(
            [entry("alloc", 0, 9)], [block(512, 10), block(512)], "unseen_allocs", id="replaced"
        ),
        pytest.param(
            [*lifetime(512, 9), *lifetime(0, 9)[:2]],
            [block(512, 9), block(512)],
            "unseen_allocs",
            id="completed and allocated again",
        ),
        pytest.param(
            [entry("alloc", 0, 9), entry("alloc", 0, 9)],
            [block(512, 9), block(512)],
            "impossible",
            id="handed out while live",
        ),
        pytest.param(
            [*lifetime(0, 9), *lifetime(0, 9)[1:]], [block(SEGMENT)], "impossible", id="freed twice"
        ),
        pytest.param(
            [*lifetime(512, 9), entry("alloc", 0, 9), entry("free_completed", 0, 9)],
            [block(SEGMENT)],
            "impossible",
            id="completed without a request",
        ),
        pytest.param(
            [entry("alloc", 0, 9), *lifetime(0, 10)[1:]],
            [block(SEGMENT)],
            "impossible",
            id="freed with another size",
        ),
        pytest.param(
            [entry("segment_alloc", SEGMENT, SEGMENT)],
            [block(SEGMENT)],
            "unseen_segments",
            id="segment freed",
        ),
        pytest.param(
            [entry("segment_free", 0, SEGMENT)],
            [block(SEGMENT)],
            "unseen_segments",
            id="segment allocated",
        ),
        pytest.param(
            [entry("segment_alloc", 0, 2 * MIB)],
            [block(SEGMENT)],
            "unseen_segments",
            id="segment replaced",
        ),
        pytest.param(
            [entry("segment_map", SEGMENT, SEGMENT)],
            [block(SEGMENT)],
            "unseen_segments",
            id="pages unmapped",
        ),
    ],
)
def test_disagreement_is_counted_by_its_kind(
    entries: list[Entry], blocks: list[dict[str, object]], kind: str
) -> None:
    assert undone(entries, *blocks).contradictions == {kind: 1}


def test_entries_that_the_recording_leaves_out_are_no_disagreement() -> None:
    alloc, request, completion = lifetime(0, 9)
    without_requests = undone([completion, alloc, completion], block(SEGMENT))
    without_completions = undone([request, alloc, request], block(SEGMENT))
    for undo in (without_requests, without_completions):
        assert live(undo) == {0: Live(9, 0, 0)}
        assert not undo.pending
        assert not undo.contradictions
