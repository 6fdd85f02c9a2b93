"""What browser and server say to each other on ``/ws/live``: JSON text frames.

The client numbers its requests; the server answers each with one ``result`` of the same id. A
subscription is named by the id of its request, and its ``event`` frames carry that id until
``unsubscribe``. Payloads are those of the REST API, so that fetch-then-follow is one code path.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct, field

from vramscope_protocol.errors import BAD_MESSAGE, TOO_LARGE, ProtocolError

MAX_REQUEST_BYTES: Final = 1 << 14


class Request(Struct, tag_field="type"):
    """Base of what the browser sends."""

    id: int


class SubscribeRuns(Request, tag="subscribe_runs"):
    """Follow the list of runs. Events: ``{"kind": "runs", "runs": [run, ...]}``."""


class SubscribeRun(Request, tag="subscribe_run"):
    """Follow one run: its state, events, commands, and the named series of the named ranks.

    Events by ``kind``: ``run``, ``samples``, ``steps``, ``event``, ``command``, ``status``,
    ``finding``, ``snapshot``, and ``map`` for the rank whose memory map is followed: first all of
    it, then what changes.
    """

    run: str
    fields: list[str]
    ranks: list[int] | None = None
    map: int | None = None


class Unsubscribe(Request, tag="unsubscribe"):
    """End the subscription that request ``subscription`` started."""

    subscription: int


class Ping(Request, tag="ping"):
    """Answered by a result: proves that the server still answers."""


class LiveHello(Struct, tag_field="type", tag="hello"):
    """First frame of the server on a connection."""

    protocol: int
    scopes: list[str]
    server_time_ns: int
    software: str = ""
    features: list[str] = field(default_factory=list[str])


class ErrorBody(Struct, omit_defaults=True):
    """The one shape of an error, here and in REST."""

    code: str
    message: str
    detail: dict[str, Any] = field(default_factory=dict[str, Any])


class Result(Struct, tag_field="type", tag="result", omit_defaults=True):
    """Answer to one request."""

    id: int
    ok: bool
    error: ErrorBody | None = None


LiveRequest = SubscribeRuns | SubscribeRun | Unsubscribe | Ping

_decoder: msgspec.json.Decoder[LiveRequest] = msgspec.json.Decoder(LiveRequest)
_encoder = msgspec.json.Encoder()


def decode_live_request(frame: str | bytes) -> LiveRequest:
    """Decode one request of a browser.

    Raises:
        ProtocolError: ``too_large`` or ``bad_message``.
    """
    if len(frame) > MAX_REQUEST_BYTES:
        raise ProtocolError(
            TOO_LARGE, f"expected a request of at most {MAX_REQUEST_BYTES} bytes, got {len(frame)}"
        )
    try:
        return _decoder.decode(frame)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ProtocolError(BAD_MESSAGE, f"not a request: {error}") from None


def encode_live(message: LiveHello | Result) -> bytes:
    """One JSON frame."""
    return _encoder.encode(message)


def encode_event_payload(payload: Any) -> bytes:
    """Encode an event once, whoever gets it."""
    return _encoder.encode(payload)


def event_frame(subscription: int, payload: bytes) -> bytes:
    """Address an encoded payload to one subscription."""
    return b'{"type":"event","id":%d,"event":%b}' % (subscription, payload)
