"""What a policy may say, and that what is wrong is told with what was expected."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.made_policies import WHEN, definition, policy_body
from vramscope_protocol.errors import VramscopeError
from vramscope_server.policies.definition import FindingCondition, SeriesCondition, read_definition

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "length >= 1"),
    ({"name": "x" * 81}, "length <= 80"),
    ({"every_s": 1}, ">= 10"),
    ({"every_s": 1e9}, "<= 604800"),
    ({"mode": "perhaps"}, "Invalid enum value 'perhaps' - at `$.mode`"),
    ({"whenever": 1}, "unknown field `whenever`"),
    ({"when": {}}, "when: expected series or finding, got neither"),
    ({"when": WHEN | {"op": "=="}}, "Invalid enum value '==' - at `$.when.op`"),
    ({"when": WHEN | {"value": "much"}}, "Expected `float`, got `str` - at `$.when.value`"),
    ({"when": WHEN | {"value": float("nan")}}, "when.value: expected a finite number, got nan"),
    ({"when": WHEN | {"ranks": "most"}}, "at `$.when.ranks`"),
    ({"when": {"finding": "leak", "severity": "bad"}}, "at `$.when.severity`"),
    ({"hold": {}}, "for: expected either seconds or steps, got {}"),
    ({"hold": {"seconds": 1, "steps": 1}}, "for: expected either seconds or steps, got both"),
    ({"hold": {"steps": 0}}, ">= 1"),
    ({"hold": {"seconds": -1}}, ">= 0"),
    ({"then": {}}, "missing required field `command`"),
    ({"then": {"command": "x", "ranks": "some"}}, "at `$.then.ranks`"),
    ({"then": {"command": "x", "ranks": []}}, "length >= 1"),
    ({"then": {"command": "x", "ranks": [-1]}}, ">= 0"),
    ({"is_on": "yes"}, "Expected `bool`, got `str`"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_what_is_wrong_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(VramscopeError) as caught:
        read_definition(policy_body(**changes))
    assert caught.value.code == "bad_request"
    assert message in caught.value.message


@pytest.mark.parametrize("body", [None, [], "policy", 5, {}])
def test_what_is_no_policy_at_all(body: Any) -> None:
    with pytest.raises(VramscopeError, match="policy: "):
        read_definition(body)


def test_it_is_off_and_only_logs_unless_somebody_says_otherwise() -> None:
    found, is_on = read_definition(policy_body())
    assert (is_on, found.mode, found.allow_training) == (False, "dry_run", False)
    assert isinstance(found.when, SeriesCondition)
    assert (found.run, found.hold, found.when.ranks, found.then.ranks) == (None, None, "any", "all")


def test_what_is_shown_can_be_read_again() -> None:
    for changes in (
        {},
        {"hold": {"seconds": 2.5}, "run": "train", "mode": "act", "allow_training": True},
        {"when": {"finding": None, "severity": "critical", "confirmed": False}},
        {"hold": {"steps": 7}, "then": {"command": "user.x", "params": {"a": 1}, "ranks": [0, 2]}},
    ):
        found = definition(**changes)
        stored = msgspec.json.encode(found.as_dict())
        assert read_definition(msgspec.json.decode(stored))[0] == found


def test_a_condition_over_findings() -> None:
    found = definition(when={"finding": "leak"})
    assert found.when == FindingCondition("leak", "warning", True)


def test_which_runs_it_is_for() -> None:
    assert definition().is_for("0123", "train")
    named = definition(run="train")
    assert named.is_for("0123", "train")
    assert not named.is_for("0123", "other")
    assert definition(run="0123").is_for("0123", "other")
