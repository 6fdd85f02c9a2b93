from __future__ import annotations

import inspect
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch


def read(*args: Any, **options: Any) -> Any:
    """What a call would ask for, with the names and defaults of this torch."""
    from vramscope.emulation.history_request import read_request

    memory = torch.cuda.memory
    legacy = args and isinstance(args[0], bool)
    function = memory._record_memory_history_legacy if legacy else memory._record_memory_history
    bound = inspect.signature(function).bind(*args, **options)
    bound.apply_defaults()
    return read_request(bound.arguments)


def test_the_defaults_record_everything_with_all_stacks() -> None:
    from vramscope.emulation.history import Context

    request = read()

    assert (request.context, request.max_entries) == (Context.ALL, sys.maxsize)
    assert (request.clear, request.skip_actions) == (False, ())


def test_none_records_nothing() -> None:
    assert read(None) is None
    assert read(enabled=None, context="all") is None
    assert read(False) is None


@pytest.mark.parametrize(
    ("context", "name"), [(None, "NEVER"), ("state", "STATE"), ("alloc", "ALLOC"), ("all", "ALL")]
)
def test_contexts(context: str | None, name: str) -> None:
    from vramscope.emulation.history import Context

    assert read("all", context, "python", 5).context is Context[name]


def test_the_state_alone_has_a_ring_of_one() -> None:
    assert read("state", max_entries=1000).max_entries == 1
    assert read("all", max_entries=1000).max_entries == 1000


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "STATE"),
        ({"record_context": False}, "NEVER"),
        ({"trace_alloc_record_context": True}, "ALLOC"),
        ({"record_context": False, "trace_alloc_record_context": True}, "ALLOC"),
    ],
)
def test_the_old_form_with_a_bool(options: dict[str, Any], name: str) -> None:
    from vramscope.emulation.history import Context

    request = read(True, trace_alloc_max_entries=77, **options)

    assert (request.context, request.max_entries) == (Context[name], 77)


def test_newer_options_are_read_where_this_torch_has_them() -> None:
    known = inspect.signature(torch.cuda.memory._record_memory_history).parameters
    if "clear_history" in known:
        assert read(clear_history=True).clear
    if "skip_actions" in known:
        assert read(skip_actions=["oom"]).skip_actions == ("oom",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"enabled": "yes"}, "expected state to be one of None, 'state', 'all', got 'yes'"),
        ({"context": "free"}, "expected context to be one of None, 'state', 'alloc', 'all'"),
        ({"stacks": "c++"}, "expected stacks to be one of 'python', 'all'"),
    ],
)
def test_other_words_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        read(**arguments)
