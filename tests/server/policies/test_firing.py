"""What a policy does is asked for like any command, written down, and counted when it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.made_policies import finding_record
from tests.support.policy_rig import PolicyRig, with_rig
from vramscope_protocol.commands import CommandState
from vramscope_protocol.errors import VramscopeError
from vramscope_server.store import policies


async def fire(rig: PolicyRig, times: int = 1) -> None:
    """Let time pass until it acts, so many times."""
    for _ in range(times):
        rig.now_s += 100
        await rig.seconds(3)


async def firings(rig: PolicyRig) -> list[Any]:
    """Newest first."""
    (policy,) = rig.book.all()
    return await rig.store.read(lambda c: policies.list_firings(c, policy.id, 99))


def test_it_asks_in_its_own_name_and_keeps_why(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        policy = await rig.policy(then={"command": "empty_cache", "ranks": [1]})
        await fire(rig)
        assert rig.asked == [("empty_cache", [1], False)]
        (issuer,) = rig.coordinator.issuers
        assert (issuer.principal.name, issuer.origin) == ("tidy up", "policy")
        assert issuer.principal.scopes == {"view", "control"}
        assert "agent" not in issuer.principal.scopes
        (firing,) = await firings(rig)
        assert firing.state == "waiting"
        assert firing.command_id == rig.coordinator.records[0].id
        assert firing.why == "reserved_bytes.all.current was 7.0 GiB on 2 ranks, above 6.0 GiB"
        await rig.answer("done")
        (firing,) = await firings(rig)
        assert (firing.state, firing.result) == ("done", "empty_cache done on rank 1")
        assert (policy.fired, policy.failures) == (1, 0)

    with_rig(tmp_path, act)


@pytest.mark.parametrize("consents", [True, False])
def test_what_the_job_says_of_its_own_command_counts_against_its_consent(
    tmp_path: Path, consents: bool
) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy(then={"command": "user.anew"}, allow_training=consents)
        await fire(rig)
        assert [each.may_change_training for each in rig.coordinator.requests] == [consents]

    with_rig(tmp_path, act)


def test_dry_run_mode_does_the_dry_run_of_the_command(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy(mode="dry_run")
        await fire(rig)
        assert rig.asked == [("empty_cache", [0, 1], True)]

    with_rig(tmp_path, act)


@pytest.mark.parametrize("command", ["gc_collect", "user.flush"])
def test_dry_run_mode_only_logs_where_there_is_none(tmp_path: Path, command: str) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy(mode="dry_run", then={"command": command, "ranks": "matching"})
        await fire(rig)
        assert rig.asked == []
        (firing,) = await firings(rig)
        assert (firing.state, firing.command_id) == ("logged", None)
        assert firing.result == f"would have run {command}"
        (row,) = await rig.audit()
        assert (row["who"], row["origin"], row["dry_run"]) == ("tidy up", "policy", True)
        assert (row["run"], row["name"], row["ranks"]) == ("r1", command, [0, 1])
        assert row["result"].startswith(f"would have run {command}: reserved_bytes")

    with_rig(tmp_path, act)


def test_what_the_server_refuses_is_in_the_audit_log(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        policy = await rig.policy()
        rig.coordinator.refuses = VramscopeError("conflict", "rank 1 is lost")
        await fire(rig)
        (firing,) = await firings(rig)
        assert (firing.state, firing.result) == ("refused", "rank 1 is lost")
        (row,) = await rig.audit()
        assert (row["who"], row["result"]) == ("tidy up", "refused: rank 1 is lost")
        assert (row["dry_run"], row["ranks"]) == (False, "all")
        assert policy.failures == 1
        rig.coordinator.refuses = VramscopeError("rate_limited", "wait")
        await fire(rig)
        assert policy.failures == 1  # that says nothing about the command

    with_rig(tmp_path, act)


def test_three_failures_in_a_row_switch_it_off(tmp_path: Path) -> None:
    answers: list[CommandState] = ["failed", "refused", "done", "expired", "failed"]

    async def act(rig: PolicyRig) -> None:
        policy = await rig.policy()
        for answer in answers:
            await fire(rig)
            await rig.answer(answer, "it broke")
        assert policy.failures == 2
        assert rig.book.get(policy.id).is_on
        await fire(rig)
        await rig.answer("refused", "it broke")
        assert not rig.book.get(policy.id).is_on
        assert policy.off_reason == (
            "empty_cache failed 3 times in a row: empty_cache refused on 2 ranks: it broke"
        )
        count = len(rig.asked)
        await fire(rig, 2)
        assert len(rig.asked) == count
        assert (await rig.audit())[0]["result"] == policy.off_reason

    with_rig(tmp_path, act)


def test_an_answer_to_what_was_changed_meanwhile_does_not_count(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        from tests.support.made_policies import policy_body
        from tests.support.policy_rig import ME

        policy = await rig.policy()
        await fire(rig)
        rig.now_s += 1
        changed = await rig.book.change(policy.id, policy_body(is_on=True), ME)
        await rig.answer("failed", "it broke")
        assert changed.failures == 0
        (firing,) = await firings(rig)
        assert firing.state == "failed"

    with_rig(tmp_path, act)


def test_a_finding_of_the_whole_run_is_on_all_ranks(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy(
            when={"finding": None}, then={"command": "gc_collect", "ranks": "matching"}
        )
        rig.findings = [finding_record(ranks=())]
        await fire(rig)
        assert rig.asked == [("gc_collect", [0, 1], False)]

    with_rig(tmp_path, act)


def test_what_cannot_be_written_down_is_not_done(tmp_path: Path) -> None:
    async def act(rig: PolicyRig) -> None:
        await rig.policy()
        write = rig.store.write

        async def refuse(_function: Any) -> None:
            raise VramscopeError("internal", "the disk is full")

        rig.store.write = refuse  # type: ignore[assignment]
        await rig.seconds(1)
        with pytest.raises(VramscopeError, match="disk is full"):
            await rig.seconds(1)
        assert rig.asked == []
        rig.store.write = write  # type: ignore[method-assign]
        await rig.seconds(1)  # tried again at once
        assert len(rig.asked) == 1

    with_rig(tmp_path, act)


def test_one_that_was_never_sent_before_the_server_ended(tmp_path: Path) -> None:
    async def before(rig: PolicyRig) -> None:
        await rig.policy()
        await fire(rig)  # nobody wrote down that the command was accepted

    with_rig(tmp_path, before)

    async def after(rig: PolicyRig) -> None:
        (firing,) = await firings(rig)
        assert (firing.state, firing.result) == ("refused", "the server ended first")
        assert rig.book.all()[0].failures == 0

    with_rig(tmp_path, after)
