"""Declared commands and the check of their parameters."""

from __future__ import annotations

import pytest
from msgspec import Struct

from vramscope_protocol.command_table import COMMANDS, check_params, command_spec
from vramscope_protocol.commands import CommandSpec
from vramscope_protocol.errors import BAD_REQUEST, VramscopeError
from vramscope_protocol.parameters import HistoryParams, NoParams


def test_the_commands_of_this_version() -> None:
    assert {name: (spec.right, spec.place, spec.dry_run) for name, spec in COMMANDS.items()} == {
        "empty_cache": ("control", "step boundary", True),
        "gc_collect": ("control", "step boundary", False),
        "empty_cache+gc_collect": ("control", "step boundary", True),
        "memory_summary": ("view", "agent thread", False),
        "stats": ("view", "agent thread", False),
        "reset_peaks": ("control", "step boundary", False),
        "snapshot": ("control", "step boundary", False),
        "profile_modules": ("control", "step boundary", False),
        "history_start": ("control", "step boundary", False),
        "history_stop": ("control", "step boundary", False),
        "history_dump": ("control", "step boundary", False),
        "explain_growth": ("view", "step boundary", False),
        "watch_map": ("view", "agent thread", False),
        "oom_report": ("view", "agent thread", False),
        "stacks": ("view", "agent thread", False),
        "set_batch_size": ("control", "step boundary", True),
        "set_accumulation": ("control", "step boundary", True),
        "set_allocator_settings": ("control", "step boundary", True),
        "set_memory_fraction": ("control", "step boundary", False),
        "clear_plan_caches": ("control", "step boundary", False),
        "clear_cublas_workspaces": ("control", "step boundary", False),
        "set_gc_thresholds": ("control", "step boundary", False),
        "set_sampling_rate": ("control", "agent thread", False),
        "pause": ("control", "step boundary", False),
        "resume": ("control", "agent thread", False),
        "stop": ("control", "step boundary", False),
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_what_changes_the_job_needs_control_and_a_boundary(name: str) -> None:
    spec = command_spec(name)
    assert spec.name == name
    # To find out what grows changes nothing, and needs all looks at the same point of a step; what
    # is paused meets no boundary; how often the agent looks is its own affair.
    if name not in ("explain_growth", "resume", "set_sampling_rate"):
        assert (spec.right == "control") == (spec.place == "step boundary")
    assert spec.summary.endswith(".")


def test_unknown_command_names_those_that_exist() -> None:
    with pytest.raises(
        VramscopeError, match=r"no command named 'format_disk'.*empty_cache"
    ) as error:
        command_spec("format_disk")
    assert error.value.code == BAD_REQUEST


def test_no_params_is_none_at_all() -> None:
    assert check_params(COMMANDS["stats"], {}, dry_run=False) == NoParams()
    with pytest.raises(VramscopeError, match=r"parameters of stats: .*unknown field `x`") as error:
        check_params(COMMANDS["stats"], {"x": 1}, dry_run=False)
    assert error.value.code == BAD_REQUEST


def test_a_recording_is_bounded_whatever_is_asked_for() -> None:
    spec = COMMANDS["history_start"]
    assert check_params(spec, {}, dry_run=False) == HistoryParams("alloc", True, None, 256, False)
    asked = {"mode": "all", "steps": 3, "max_mib": 16}
    assert check_params(spec, asked, dry_run=False) == HistoryParams("all", True, 3, 16)
    for wrong in ({"mode": "everything"}, {"steps": 0}, {"max_mib": 15}, {"max_mib": 1 << 20}):
        with pytest.raises(VramscopeError, match="parameters of history_start"):
            check_params(spec, wrong, dry_run=False)


def test_dry_run_only_where_there_is_one() -> None:
    check_params(COMMANDS["empty_cache"], {}, dry_run=True)
    with pytest.raises(VramscopeError, match="reset_peaks has no dry run"):
        check_params(COMMANDS["reset_peaks"], {}, dry_run=True)


def test_wrong_parameter_is_named() -> None:
    class Size(Struct, forbid_unknown_fields=True):
        size: int

    spec = CommandSpec("resize", "control", "step boundary", "Resize.", params=Size)
    assert check_params(spec, {"size": 4}, dry_run=False) == Size(4)
    with pytest.raises(VramscopeError, match=r"Expected `int`, got `str` - at `\$.size`"):
        check_params(spec, {"size": "4"}, dry_run=False)
    with pytest.raises(VramscopeError, match="missing required field `size`"):
        check_params(spec, {}, dry_run=False)


def test_what_acts_at_the_same_step_on_all_ranks_or_on_none() -> None:
    assert {name for name, spec in COMMANDS.items() if spec.same_step} == {
        "empty_cache",
        "empty_cache+gc_collect",
        "set_batch_size",
        "set_accumulation",
        "pause",
        "stop",
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_what_changes_training_does_so_on_the_whole_run_and_at_the_same_step(name: str) -> None:
    spec = command_spec(name)
    assert spec.changes_training <= (spec.whole_run and spec.same_step)
    assert spec.changes_training <= (spec.right == "control")
