from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.fake_server import FakeServer
from vramscope.config import load_config
from vramscope.delivery import Delivery
from vramscope.identity.identity import identify
from vramscope.notices import Notices
from vramscope.registration import registration
from vramscope.transport.address import parse_address
from vramscope.transport.transport import Target
from vramscope_protocol.messages import Event, Goodbye, Register


def make(server: FakeServer, tmp_path: Path) -> Delivery:
    config = load_config({}, spool_dir=str(tmp_path / "spool"))

    def register(delivery: Delivery) -> Register:
        return registration(
            delivery.identity,
            config,
            devices=[],
            software={},
            commands=[],
            first_seq=delivery.outbox.first_seq,
        )

    return Delivery(
        config,
        identify(script="train.py", environ={}),
        Notices(),
        find_target=lambda: Target(parse_address(server.url), server.token),
        register=register,
        submit=lambda command: None,
        welcomed=lambda target: None,
    )


@pytest.mark.parametrize("is_there", [True, False])
def test_what_is_left_is_delivered_with_the_goodbye_or_it_is_told(
    tmp_path: Path, is_there: bool
) -> None:
    with FakeServer() as server:
        if not is_there:
            server.stop()
        delivery = make(server, tmp_path)
        delivery.transport.start()
        delivery.outbox.put(Event(0, 1, "left"))
        total_s = 10.0
        closed = delivery.close(Goodbye(0, 1, "detach"), total_s, time.monotonic() + total_s)
        assert closed is is_there
    assert len(server.of_type(Event)) == len(server.of_type(Goodbye)) == int(is_there)


def test_who_abandons_it_says_nothing(tmp_path: Path) -> None:
    with FakeServer() as server:
        delivery = make(server, tmp_path)
        delivery.outbox.put(Event(0, 1, "left"))
        delivery.abandon()
        assert server.connections == 0
