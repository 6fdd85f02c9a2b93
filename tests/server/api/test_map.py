from __future__ import annotations

from tests.support.made_segments import MIB, segment
from tests.support.recorded_map import GivenOwners, MapOfLooks
from tests.support.server_app import ServerApp
from vramscope_protocol.messages import MapWanted
from vramscope_server.maps.maps import WATCH_S

PATH = "/api/v1/runs/train/map"
HERE = 0x7F0000000000


def test_the_map_as_of_the_last_frame(server: ServerApp) -> None:
    source = MapOfLooks(GivenOwners({HERE: (1, "fc.weight")}))
    with server.agent() as agent:
        agent.map_frame(source.frame([segment(HERE, "a1 f2")], step=7))
        agent.map_frame(source.frame([segment(HERE, "a1 a2")], step=8))
        agent.samples()
        agent.wait_acked()
        found = server.get(PATH)
    assert (found["rank"], found["base"], found["step"], found["is_step_end"]) == (0, 0, 8, True)
    assert found["segments"]["address"] == [HERE]
    assert found["segments"]["blocks"] == [2]
    assert found["blocks"]["size"] == [MIB, 2 * MIB]
    assert found["blocks"]["state"] == [1, 1]
    assert found["texts"][found["blocks"]["owner"][0]] == "fc.weight"


def test_a_page_that_follows_gets_everything_and_then_what_changes(server: ServerApp) -> None:
    source = MapOfLooks()
    with server.agent() as agent, server.live() as page:
        page.ask("subscribe_run", run="train", fields=[], ranks=[], map=0)
        assert agent.wait_map_wanted() == MapWanted(WATCH_S, full=True)
        agent.map_frame(source.frame([segment(HERE, "a1"), segment(HERE + 4 * MIB, "a2")]))
        whole = page.wait_event("map")
        agent.map_frame(source.frame([segment(HERE, "f1"), segment(HERE + 4 * MIB, "a2")]))
        delta = page.wait_event("map")
    assert (whole["base"], len(whole["segments"]["address"])) == (0, 2)
    assert (delta["base"], delta["segments"]["address"]) == (whole["number"], [HERE])


def test_what_to_do_where_there_is_no_map(server: ServerApp) -> None:
    with server.agent() as agent:
        agent.samples()
        agent.wait_acked()
        error = server.get_error(PATH, 404, rank=3)
        assert error["code"] == "not_found"
        assert error["message"] == (
            "no memory map of rank 3 yet: the command watch_map asks its agent for one"
        )
        server.get_error(PATH, 422, rank=-1)
    server.get_error("/api/v1/runs/other/map", 404)
