"""What could never be done is refused when the policy is made."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.made_policies import WHEN, definition
from vramscope_protocol.errors import VramscopeError
from vramscope_server.policies.checks import check_definition, spec_of

RESIZE = {"command": "set_batch_size", "params": {"batch_size": 8}}

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"then": {"command": "format_disk"}}, "no command named 'format_disk'"),
    ({"then": {"command": "gc_collect", "params": {"x": 1}}}, "parameters of gc_collect"),
    ({"then": {"command": "set_batch_size"}}, "parameters of set_batch_size"),
    ({"then": RESIZE}, "allow_training: expected true, set_batch_size changes training, got false"),
    (
        {"then": RESIZE | {"ranks": [0]}, "allow_training": True},
        "then.ranks: expected 'all', set_batch_size is for a whole run, got [0]",
    ),
    ({"then": {"command": "resume", "ranks": "matching"}}, "then.ranks: expected 'all'"),
    ({"name": "own\u202eer"}, "name: expected letters, digits, signs and spaces"),
    ({"name": "a\x00b"}, "got 'a\\x00b'"),
    ({"name": "  "}, "name: expected"),
    ({"run": "a\nb"}, "run: expected"),
    ({"when": WHEN | {"series": "a\x1b[2J"}}, "when.series: expected"),
    ({"when": {"finding": "\x7f"}}, "when.finding: expected"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(VramscopeError) as caught:
        check_definition(definition(**changes))
    assert caught.value.code == "bad_request"
    assert message in caught.value.message


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Räume auf: 清理 ✓"},
        {"then": RESIZE, "allow_training": True},
        {"then": {"command": "user.flush", "params": {"how": "hard"}, "ranks": "matching"}},
        {"then": {"command": "oom_report"}},
    ],
)
def test_accepted(changes: dict[str, Any]) -> None:
    check_definition(definition(**changes))


def test_only_what_the_job_declares_itself_has_no_declaration_here() -> None:
    spec = spec_of(definition().then)
    assert spec is not None
    assert spec.name == "empty_cache"
    assert spec_of(definition(then={"command": "user.flush"}).then) is None
