from __future__ import annotations

from tests.server.test_device_account import report
from tests.support.server_app import ServerApp
from vramscope_analysis.waterfall import DEFINITIONS, PARTS

PATH = "/api/v1/runs/train/waterfall"


def test_without_a_step_it_is_the_newest_step_and_the_newest_sample(server: ServerApp) -> None:
    with server.agent() as agent:
        report(agent)
        found = server.get(PATH)
    assert found["step"]["step"] == 2
    assert found["step"]["end"]["bytes"]["allocated"] == 400
    assert found["step"]["peak"]["bytes"]["allocated"] == 520
    assert found["sample"]["instant"]["bytes"]["device"] == 1000
    assert set(found["definitions"]) == set(DEFINITIONS) == set(found["sample"]["instant"]["bytes"])
    assert {whole: tuple(parts) for whole, parts in found["parts"].items()} == PARTS


def test_a_step_may_be_asked_for(server: ServerApp) -> None:
    with server.agent() as agent:
        report(agent)
        found = server.get(PATH, step=1, rank=0)
        error = server.get_error(PATH, 404, step=77)
    assert found["step"]["step"] == 1
    assert found["sample"] is None
    assert error["message"] == "no step 77 of rank 0"


def test_a_run_that_has_only_begun_has_nothing_to_divide(server: ServerApp) -> None:
    with server.agent():
        found = server.get(PATH)
        other = server.get(PATH, rank=5)
        server.get_error("/api/v1/runs/nothing/waterfall", 404)
    assert found["step"] is None
    assert found["sample"]["instant"]["bytes"]["device"] is None
    assert other["sample"]["time_ns"] is None


def test_numbers_that_no_database_can_look_for_are_refused(server: ServerApp) -> None:
    with server.agent():
        server.get_error(PATH, 422, rank=2**63)
        server.get_error(PATH, 422, step=2**63)
