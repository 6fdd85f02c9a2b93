"""JSON of reports: what is no JSON, too deep, or cannot be said."""

from __future__ import annotations

import json

import msgspec
import pytest

from vramscope_server.ooms.report_json import MAX_DEPTH, read_json


def test_it_is_read_as_it_is() -> None:
    report = {"id": "o1", "a": [1, 2.5, None, True, {"b": "\u00e9"}]}
    assert read_json(json.dumps(report).encode()) == report
    assert read_json(b"[1]") == {}


def test_halves_of_characters_are_replaced() -> None:
    told = read_json(json.dumps({"a\udce9": ["b\udce9"]}).encode())
    assert told == {"a?": ["b?"]}
    assert msgspec.json.encode(told)


@pytest.mark.parametrize("levels", [MAX_DEPTH, 990, 100_000])
def test_what_is_too_deep_is_refused(levels: int) -> None:
    with pytest.raises(ValueError, match="expected a report"):
        read_json(b'{"a":' + b"[" * levels + b"]" * levels + b"}")
