"""The account of a device from stored rows: the right rows, named parts, and unknown if unknown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.scripted_agent import ScriptedAgent
from tests.support.server_app import ServerApp
from vramscope_analysis.waterfall import PARTS
from vramscope_protocol.account import ProcessMemory
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.errors import NOT_FOUND, VramscopeError
from vramscope_server.device_account import DeviceAccounts, NamedParts, _number

RUN = "0123456789ab"
SAMPLE = {
    "device.total_bytes": 1000,
    "device.used_bytes": 700,
    "device.free_bytes": 290,
    "device.process_bytes": 620,
    "device.other_bytes": 60,
    "reserved_bytes.all.current": 500,
    "active_bytes.all.current": 410,
    "allocated_bytes.all.current": 400,
    "cache.returnable_bytes": 40,
    "cache.stranded_bytes": 30,
    "cache.private_pool_bytes": 5,
}
STEP = {
    "reserved_bytes.all.current": 500,
    "active_bytes.all.current": 410,
    "allocated_bytes.all.current": 400,
    "step.peak_reserved_bytes": 560,
    "step.peak_active_bytes": 530,
    "step.peak_allocated_bytes": 520,
    "step.peak_part": 2,
    "category.parameters_bytes": 100,
    "category.gradients_bytes": 90,
    "category.optimizer_state_bytes": 150,
    "category.buffers_bytes": 10,
    "category.gradients_kept_bytes": 0,
}


def row(values: dict[str, int], **changed: int) -> dict[str, list[int]]:
    return {name: [value] for name, value in {**values, **changed}.items()}


def report(agent: ScriptedAgent) -> None:
    """Two steps with a sample before and after each."""
    for step in (1, 2):
        agent.samples(1, step=step - 1, **row(SAMPLE))
        agent.steps(1, step=step, **row(STEP))
    agent.samples(1, step=2, **row(SAMPLE, **{"device.free_bytes": 190, "device.used_bytes": 800}))
    agent.wait_acked()


def accounts(server: ServerApp) -> DeviceAccounts:
    return DeviceAccounts(server.context.store)


def assert_sums(parts: dict[str, Any]) -> None:
    for whole, children in PARTS.items():
        if parts[whole] is not None:
            assert sum(parts[child] or 0 for child in children) == parts[whole]


def test_a_step_is_divided_at_its_end_and_at_its_peak(server: ServerApp) -> None:
    with server.agent() as agent:
        report(agent)
        found = accounts(server).at_step(RUN, 0, 2)
    assert (found["step"], found["life"], found["peak_part"]) == (2, 0, 2)
    end, peak = found["end"]["bytes"], found["peak"]["bytes"]
    for parts in (end, peak):
        assert_sums(parts)
        assert parts["device"] == 1000
    assert (end["allocated"], peak["allocated"]) == (400, 520)
    assert (end["gradients"], end["not_split"]) == (90, 0)
    assert (peak["gradients"], peak["not_split"]) == (0, 90)
    # The state of the step before was there already; the sample is the one before the step's end.
    assert peak["optimizer_state"] == 150
    assert (end["free"], end["outside"], end["returnable"]) == (290, 120, 40)


def test_of_the_first_step_the_state_before_is_not_known(server: ServerApp) -> None:
    with server.agent() as agent:
        agent.steps(1, step=1, **row(STEP))
        agent.wait_acked()
        found = accounts(server).at_step(RUN, 0, 1)
    assert found["peak"]["bytes"]["optimizer_state"] == 0
    assert found["peak"]["bytes"]["not_split"] == 90 + 150
    assert found["end"]["bytes"]["optimizer_state"] == 150
    # There is no sample, so nothing is known but PyTorch's side.
    assert found["sample_time_ns"] is None
    assert found["end"]["bytes"]["device"] == 500


def test_the_newest_step_and_the_newest_sample(server: ServerApp) -> None:
    with server.agent() as agent:
        report(agent)
        reader = accounts(server)
        step = reader.at_last_step(RUN, 0, 3)  # one more was heard of than is stored
        sample = reader.at_last_sample(RUN, 0)
        with_step = reader.at_last_sample(RUN, 0, 3)
        assert reader.at_last_step(RUN, 0, None) is None
        assert reader.at_last_step(RUN, 7, 3) is None
    assert step is not None
    assert step["step"] == 2
    parts = sample["instant"]["bytes"]
    assert_sums(parts)
    assert (parts["free"], parts["unknown"]) == (190, 120)
    assert parts["parameters"] is None
    assert parts["not_split"] == 400
    # Between two steps gradients may be there or not.
    assert with_step["instant"]["bytes"]["parameters"] == 100
    assert with_step["instant"]["bytes"]["not_split"] == 90


def test_unknown_values_and_old_agents_stay_unknown(server: ServerApp) -> None:
    unknown = {name: UNKNOWN for name in STEP if name.startswith(("category.", "step."))}
    old = {
        name: value for name, value in STEP.items() if not name.startswith(("category.", "step"))
    }
    with server.agent() as agent:
        agent.steps(1, step=1, **row({**STEP, **unknown}))
        agent.steps(1, step=2, **row(old))
        agent.wait_acked()
        found = [accounts(server).at_step(RUN, 0, step) for step in (1, 2)]
    for each in found:
        assert each["peak_part"] is None
        assert each["peak"]["bytes"]["reserved"] is None
        assert each["end"]["bytes"]["parameters"] is None
        assert each["end"]["bytes"]["not_split"] == 400


def test_a_step_that_is_not_there_is_not_found(server: ServerApp) -> None:
    with server.agent() as agent:
        report(agent)
        with pytest.raises(VramscopeError) as raised:
            accounts(server).at_step(RUN, 0, 99)
    assert raised.value.code == NOT_FOUND


def test_a_run_without_samples_has_no_account(server: ServerApp) -> None:
    with server.agent():
        sample = accounts(server).at_last_sample(RUN, 0)
    assert sample["time_ns"] is None
    assert set(sample["instant"]["bytes"].values()) == {None}


def test_parts_have_the_names_that_the_agent_told_last(server: ServerApp) -> None:
    with server.agent() as agent:
        report(agent)
        other = [{"pid": 77, "command": "serve.py", "bytes": 50}]
        agent.event("processes", processes=other)
        agent.event("outside", parts=[{"name": "CUDA context", "bytes": 100, "how": "first"}])
        agent.wait_acked()
        found = accounts(server).at_last_sample(RUN, 0)["instant"]
    assert found["other_processes"] == [
        {"pid": 77, "command": "serve.py", "bytes": 50},
        {"pid": None, "command": "", "bytes": 10},
    ]
    assert found["outside"] == [
        {"name": "CUDA context", "bytes": 100, "how": "first"},
        {"name": "", "bytes": 20, "how": ""},
    ]


def test_what_another_version_tells_in_its_own_way_is_left_out(server: ServerApp) -> None:
    with server.agent() as agent:
        report(agent)
        agent.event("processes", processes=[{"pid": "many"}])
        agent.event("outside", parts="all of it")
        agent.wait_acked()
        found = accounts(server).at_last_sample(RUN, 0)["instant"]
    assert found["other_processes"] == [{"pid": None, "command": "", "bytes": 60}]
    assert found["outside"] == [{"name": "", "bytes": 120, "how": ""}]


def test_names_never_hold_more_than_their_part() -> None:
    parts = {**dict.fromkeys(("device", *(c for all_ in PARTS.values() for c in all_)))}
    parts["other_processes"] = 60
    named = NamedParts([ProcessMemory(1, bytes=50), ProcessMemory(2, bytes=50)], [])
    shares = named.of(parts)
    assert [each["bytes"] for each in shares["other_processes"]] == [50, 10]
    assert shares["outside"] == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e300, UNKNOWN])
def test_what_can_be_no_number_of_bytes_is_not_known(value: float) -> None:
    assert _number(value) is None
    assert _number(7.0) == 7
