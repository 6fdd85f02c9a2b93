from __future__ import annotations

from tests.support.fake_streams import stream_record
from vramscope_server.registry.lives import (
    MAX_SHOWN,
    is_same_process,
    kinds,
    life_offset,
    lives_payload,
    step_offsets,
)
from vramscope_server.store.runs import StreamRecord


def life(
    number: int,
    process: str = "",
    steps: tuple[int, int] | None = None,
    *,
    end_reason: str | None = None,
    restart_count: int = 0,
) -> StreamRecord:
    """A life with the first and the last step that it had."""
    record = stream_record(f"stream-{number}", number)
    record.info.life = process
    record.info.restart_count = restart_count
    record.end_reason = end_reason
    if steps is not None:
        record.summary.first_step, record.summary.step = steps
    return record


def test_a_process_is_known_by_its_name_and_without_one_by_host_and_number() -> None:
    one, other = life(1, "p").info, life(2, "q").info
    assert is_same_process(one, life(3, "p").info)
    assert not is_same_process(one, other)  # the number of a process is used again
    unnamed = life(4).info
    assert is_same_process(unnamed, other)
    unnamed.pid += 1
    assert not is_same_process(unnamed, other)


def test_how_each_life_began() -> None:
    lives = [
        life(1, "p"),
        life(2, "p"),
        life(3, "q", end_reason="detach"),
        life(4, "r", end_reason="detach"),
        life(5, "s", restart_count=1),
    ]
    assert kinds(lives) == ["start", "attach", "restart", "handover", "restart"]
    assert kinds([]) == []


def test_steps_that_begin_anew_go_on_after_the_last_one() -> None:
    assert step_offsets([life(1, "p", (1, 412)), life(2, "q", (1, 80)), life(3, "r")]) == [
        0,
        412,
        492,
    ]


def test_steps_of_a_checkpoint_that_were_done_before_are_kept_apart() -> None:
    assert step_offsets([life(1, "p", (1, 412)), life(2, "q", (401, 500))]) == [0, 12]


def test_steps_that_go_on_keep_their_numbers() -> None:
    assert step_offsets([life(1, "p", (1, 412)), life(2, "p", (500, 520))]) == [0, 0]


def test_a_life_without_a_step_moves_nothing() -> None:
    assert step_offsets([life(1, "p"), life(2, "q", (1, 10)), life(3, "q"), life(4, "r")]) == [
        0,
        0,
        10,
        10,
    ]


def test_one_life_among_the_others() -> None:
    lives = [life(1, "p", (1, 5)), life(2, "q", (1, 9))]
    assert life_offset(lives, "stream-2") == (1, 5)


def test_the_api_names_the_newest_with_their_own_numbers() -> None:
    lives = [life(number, f"p{number}", (1, 2)) for number in range(1, MAX_SHOWN + 4)]
    lives[-1].info.started_ns = 77
    shown = lives_payload(lives)
    assert [one["life"] for one in shown] == list(range(3, MAX_SHOWN + 3))
    assert shown[0]["kind"] == "restart"  # not "start": there were others before it
    assert (shown[-1]["process"], shown[-1]["started_ns"]) == (f"p{MAX_SHOWN + 3}", 77)
    assert shown[-1]["step_offset"] == 2 * (MAX_SHOWN + 2)
