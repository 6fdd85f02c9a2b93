"""What browser and server say to each other."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vramscope_protocol.errors import BAD_MESSAGE, TOO_LARGE, ProtocolError
from vramscope_protocol.live import (
    MAX_REQUEST_BYTES,
    ErrorBody,
    LiveHello,
    LiveRequest,
    Ping,
    Result,
    SubscribeRun,
    SubscribeRuns,
    Unsubscribe,
    decode_live_request,
    encode_event_payload,
    encode_live,
    event_frame,
)


@pytest.mark.parametrize(
    ("frame", "request_"),
    [
        ('{"type":"subscribe_runs","id":1}', SubscribeRuns(1)),
        (
            '{"type":"subscribe_run","id":2,"run":"a1","fields":["step"]}',
            SubscribeRun(2, "a1", ["step"]),
        ),
        (
            b'{"type":"subscribe_run","id":3,"run":"a1","fields":[],"ranks":[0,7],"new":1}',
            SubscribeRun(3, "a1", [], [0, 7]),
        ),
        ('{"type":"unsubscribe","id":4,"subscription":2}', Unsubscribe(4, 2)),
        ('{"id":5,"type":"ping"}', Ping(5)),
    ],
)
def test_requests(frame: str | bytes, request_: LiveRequest) -> None:
    assert decode_live_request(frame) == request_


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "[]",
        '{"type":"ping"}',
        '{"type":"ping","id":"1"}',
        '{"type":"from_the_future","id":1}',
        '{"type":"ping","id":' + "9" * 5000 + "}",
        '{"type":"ping","id":1,"x":' + "[" * 15_000,
        '{"type":"ping","id":1,"x":"\ud800"}',
        b'{"type":"subscribe_run","id":1,"fields":[],"run":"\xff"}',
    ],
)
def test_malformed_request_is_refused(frame: str | bytes) -> None:
    with pytest.raises(ProtocolError, match="not a request") as refused:
        decode_live_request(frame)
    assert refused.value.code == BAD_MESSAGE


def test_oversized_request_is_refused() -> None:
    with pytest.raises(ProtocolError, match="at most 16384 bytes, got 16385") as refused:
        decode_live_request("x" * (MAX_REQUEST_BYTES + 1))
    assert refused.value.code == TOO_LARGE


@given(st.text(max_size=100) | st.binary(max_size=100))
def test_garbage_raises_nothing_but_protocol_errors(frame: str | bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_live_request(frame)


def test_hello_and_results() -> None:
    hello = json.loads(encode_live(LiveHello(1, ["view"], 123, "vramscope 0.1")))
    assert hello == {
        "type": "hello",
        "protocol": 1,
        "scopes": ["view"],
        "server_time_ns": 123,
        "software": "vramscope 0.1",
        "features": [],
    }
    assert json.loads(encode_live(Result(4, True))) == {"type": "result", "id": 4, "ok": True}
    failed = Result(5, False, ErrorBody("not_found", "no run named 'x'"))
    assert json.loads(encode_live(failed)) == {
        "type": "result",
        "id": 5,
        "ok": False,
        "error": {"code": "not_found", "message": "no run named 'x'", "detail": {}},
    }


def test_event_is_encoded_once_and_addressed_to_each() -> None:
    payload = encode_event_payload({"kind": "samples", "columns": {"x": [1, math.nan, None]}})
    frames = [json.loads(event_frame(subscription, payload)) for subscription in (1, 2)]
    event = {"kind": "samples", "columns": {"x": [1, None, None]}}
    assert frames == [{"type": "event", "id": i, "event": event} for i in (1, 2)]
