from __future__ import annotations

import pytest

from vramscope.attaching.outcome import Answer, AttachError, decode_answer


def test_an_answer_needs_no_more_than_whether_it_worked() -> None:
    answer = decode_answer(b'{"ok": false, "message": "no", "of_a_later_release": 1}')
    assert answer == Answer(ok=False, message="no")
    assert Answer(ok=True).final


@pytest.mark.parametrize("data", [b"", b"[]", b'{"ok": 1}', b'{"ok": true, "rank": "0"}', b"\xff"])
def test_anything_else_is_none(data: bytes) -> None:
    assert decode_answer(data) is None


def test_an_error_keeps_a_word_for_programs_and_lines_for_a_person() -> None:
    error = AttachError("given up", "blocked", "  File x, line 1")
    assert (str(error), error.kind, error.detail) == ("given up", "blocked", "  File x, line 1")
