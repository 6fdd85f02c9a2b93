"""Every reason why a process is out of reach, and what is said to help."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.made_processes import made_process
from vramscope.processes.obstacle import CAP_SYS_PTRACE, Facts, Obstacle, obstacle
from vramscope.processes.process import Ids

ADA = Ids(1000, 1000, 1000)
BOB = Ids(1001, 1001, 1001)
MAY_TRACE = 1 << CAP_SYS_PTRACE


def made_facts(**changes: Any) -> Facts:
    """What holds for user 1000 without any rights, whom the kernel has refused."""
    usual: dict[str, Any] = {
        "opens": False,
        "pid": 7,
        "uid": 1000,
        "gid": 1000,
        "is_dumpable": True,
        "command": "py -m vramscope attach 41327",
    }
    return Facts(**usual | changes)


def found(facts: Facts, **process: Any) -> Obstacle:
    """The obstacle; there has to be one."""
    answer = obstacle(made_process(**process), facts)
    assert answer is not None
    return answer


def test_what_the_kernel_allows_is_allowed_whatever_the_rules_say() -> None:
    facts = made_facts(opens=True, ptrace_scope=1)
    assert obstacle(made_process(uids=BOB), facts) is None


def test_a_zombie_is_gone() -> None:
    assert found(made_facts(opens=True), state="Z").kind == "gone"


def test_a_kernel_thread_runs_no_python() -> None:
    assert found(made_facts(opens=True), is_kernel_thread=True).kind == "kernel"


def test_nobody_attaches_to_itself() -> None:
    assert found(made_facts(opens=True, pid=41327)).kind == "self"


def test_a_tracer_is_named() -> None:
    traced = found(made_facts(opens=True), tracer_pid=812, tracer_name="gdb")
    assert traced.kind == "traced"
    assert traced.reason == "gdb (PID 812) is tracing it"
    assert "gdb (PID 812)" in traced.fix


def test_seccomp_forbids_tracing_where_memory_may_be_read() -> None:
    filtered = found(made_facts(opens=True, is_ptrace_filtered=True))
    assert filtered.kind == "seccomp"
    assert "--cap-add=SYS_PTRACE" in filtered.fix


def test_what_does_not_trace_minds_no_tracer_and_no_filter() -> None:
    traced = made_process(tracer_pid=812, tracer_name="gdb")
    facts = made_facts(opens=True, is_ptrace_filtered=True)
    assert obstacle(traced, facts, "remote_exec") is None


def test_another_user_is_named_with_the_command_for_root() -> None:
    other = found(made_facts(), uids=BOB)
    assert other.kind == "uid"
    assert "uid 1001" in other.reason
    assert "uid 1000" in other.reason
    assert other.fix == "sudo py -m vramscope attach 41327"


def test_in_a_container_there_is_no_sudo_to_point_at() -> None:
    assert "--cap-add=SYS_PTRACE" in found(made_facts(in_container=True), uids=BOB).fix


def test_one_saved_id_of_another_user_is_enough_to_refuse() -> None:
    changed = found(made_facts(), uids=Ids(1000, 1000, 0))
    assert changed.kind == "uid"
    assert changed.reason.startswith("it has changed its user (uids 0, 1000)")


def test_another_group_is_refused_too() -> None:
    assert "group 5" in found(made_facts(), gids=Ids(5, 5, 5)).reason


def test_root_without_the_capability_is_told_so() -> None:
    lacking = found(made_facts(uid=0, gid=0), uids=ADA)
    assert lacking.kind == "capability"
    assert "root lacks CAP_SYS_PTRACE" in lacking.reason


def test_a_process_that_is_not_dumpable_says_so() -> None:
    assert found(made_facts(is_dumpable=False)).kind == "dumpable"


def test_a_process_with_more_capabilities_is_out_of_reach() -> None:
    assert found(made_facts(), permitted_capabilities=1).kind == "capability"
    assert found(made_facts(capabilities=1), permitted_capabilities=1).kind == "security_module"


@pytest.mark.parametrize(
    ("scope", "is_descendant", "capabilities", "refused"),
    [
        (0, False, 0, False),
        (1, False, 0, True),
        (1, True, 0, False),
        (1, False, MAY_TRACE, False),
        (2, True, 0, True),
        (2, False, MAY_TRACE, False),
        (3, True, 0, True),
        (3, False, MAY_TRACE, True),
    ],
)
def test_yama_has_four_scopes(
    scope: int, is_descendant: bool, capabilities: int, refused: bool
) -> None:
    facts = made_facts(
        opens=None, ptrace_scope=scope, is_descendant=is_descendant, capabilities=capabilities
    )
    answer = obstacle(made_process(), facts)
    assert (answer is not None) == refused
    if answer is not None:
        assert answer.kind == "ptrace_scope"
        assert f"ptrace_scope is {scope}" in answer.reason


def test_yama_is_lifted_by_root_or_by_its_setting() -> None:
    fix = found(made_facts(ptrace_scope=1)).fix
    assert fix.startswith("sudo py -m vramscope attach 41327")
    assert "sysctl kernel.yama.ptrace_scope=0" in fix
    assert "vramscope run" in found(made_facts(ptrace_scope=3)).fix


def test_rights_end_at_the_border_of_a_user_namespace() -> None:
    facts = made_facts(uid=0, gid=0, capabilities=MAY_TRACE, in_user_namespace=True)
    assert "user namespace" in found(facts).reason


def test_an_unexplained_refusal_names_the_security_profile() -> None:
    refused = found(made_facts(security_label="docker-default (enforce)"))
    assert refused.kind == "security_module"
    assert "docker-default (enforce)" in refused.reason


def test_an_unknown_answer_without_a_rule_against_it_is_no_obstacle() -> None:
    assert obstacle(made_process(), made_facts(opens=None)) is None
