"""Bytes to messages and back: limits first, garbage refused, the unknown ignored."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vramscope_protocol import codec
from vramscope_protocol.codec import decode_agent_message, decode_server_message, encode
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import BAD_MESSAGE, TOO_LARGE, ProtocolError
from vramscope_protocol.messages import (
    Ack,
    AgentMessage,
    AgentStatus,
    Auth,
    Batch,
    Command,
    CommandUpdate,
    Decision,
    DeviceInfo,
    Error,
    Event,
    Field,
    FieldTable,
    Goodbye,
    Hello,
    Lost,
    MapFrame,
    MapWanted,
    OomBegin,
    RankInfo,
    Register,
    RunInfo,
    ServerMessage,
    SnapshotAck,
    SnapshotBegin,
    SnapshotChunk,
    Welcome,
)

AGENT_MESSAGES: tuple[AgentMessage, ...] = (
    Hello(1, ["commands"], "vramscope 0.1"),
    Auth("secret"),
    Register(
        "5f0c",
        RunInfo("a1b2", "demo", 2, emulated=True, user="me", script="train.py"),
        RankInfo(1, "host", 42, devices=[DeviceInfo(0, "NVIDIA H200", "GPU-1", 150 << 30)]),
        first_seq=3,
    ),
    FieldTable(0, [Field("time_ns", "q", "ns"), Field("step", "q")]),
    Batch(1, "sample", 0, 0, 2, b"q" + bytes(16) + b"q" + bytes(16)),
    Event(2, 5, "attach", 7, "attached", {"pid": 1, "nested": {"a": [1.5, None, "x"]}}),
    CommandUpdate(3, "c1", "done", 6, Receipt("done", 7, {"r": 2}, {"r": 1}, 1, 0.25, "freed")),
    Lost({"outbox_full": 3}, {}, {"spool_full": 1}, 9),
    AgentStatus(10.0, 0.0004, 100, 0, 0, ["NVML not found"]),
    MapFrame(2, 1, 5, 7, is_step_end=True, rate_hz=2.0, gone=[512], texts=["fc.weight"]),
    SnapshotBegin("s1", 9, 300, 100, "ab" * 32, step=7, mode="all", steps=[(6, 5), (7, 9)]),
    SnapshotChunk("s1", 100, b"\x1f\x8b"),
    OomBegin("o1", "run1", 3, 9, 100, "ab" * 32, step=7, linked_to="o0"),
    Goodbye(4, 8, "exit", 0),
)
SERVER_MESSAGES: tuple[ServerMessage, ...] = (
    Welcome(1, 12, ["steps"], "vramscope 0.1"),
    Ack(12),
    Command("c1", "empty_cache", {}, True, 30.0, "me"),
    Decision("c1", 40, run=False, reason="rank 3 refused"),
    SnapshotAck("s1", 100, "no room"),
    MapWanted(60.0, full=True),
    Error("auth_failed", "expected a token", {"hint": "see the first line"}),
)
DECODERS: tuple[Callable[[bytes], object], ...] = (decode_agent_message, decode_server_message)


@pytest.mark.parametrize("message", AGENT_MESSAGES, ids=lambda m: type(m).__name__)
def test_agent_messages_round_trip(message: AgentMessage) -> None:
    assert decode_agent_message(encode(message)) == message


@pytest.mark.parametrize("message", SERVER_MESSAGES, ids=lambda m: type(m).__name__)
def test_server_messages_round_trip(message: ServerMessage) -> None:
    assert decode_server_message(encode(message)) == message


def test_every_message_is_tried_above() -> None:
    assert {type(message) for message in AGENT_MESSAGES} == set(AgentMessage.__args__)
    assert {type(message) for message in SERVER_MESSAGES} == set(ServerMessage.__args__)


def test_known_tags_are_those_of_the_unions() -> None:
    # A tag missing here would turn "malformed" into "unknown, ignored" without a word.
    def tags(union: Any) -> set[object]:
        return {struct.__struct_config__.tag for struct in union.__args__}

    assert tags(AgentMessage) == codec._AGENT_TAGS
    assert tags(ServerMessage) == codec._SERVER_TAGS


@pytest.mark.parametrize("decode", DECODERS)
def test_unknown_type_is_ignored(decode: Callable[[bytes], object]) -> None:
    frame = msgspec.msgpack.encode({"type": "from_the_future", "seq": [1, {"deep": b"x"}]})
    assert decode(frame) is None


def test_unknown_fields_are_ignored() -> None:
    frame = msgspec.msgpack.encode({"type": "ack", "seq": 4, "new_in_2": {"x": [1]}})
    assert decode_server_message(frame) == Ack(4)


def test_message_of_the_other_direction_is_unknown_here() -> None:
    assert decode_server_message(encode(Auth("secret"))) is None


def test_scalar_defaults_do_not_travel() -> None:
    frame = encode(Register("s", RunInfo("a", "n"), RankInfo(0, "h", 1)))
    assert not any(name in frame for name in (b"first_seq", b"world_size", b"allow"))


def test_text_frame_is_refused() -> None:
    with pytest.raises(ProtocolError, match="expected a binary frame, got a text frame") as refused:
        decode_agent_message('{"type": "hello"}')
    assert refused.value.code == BAD_MESSAGE


def test_too_large_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(ProtocolError, match="at most 8 bytes, got 9") as refused:
        decode_agent_message(b"not msgpk", max_bytes=8)
    assert (refused.value.code, refused.value.close_code) == (TOO_LARGE, 4413)
    assert decode_agent_message(encode(Auth("")), max_bytes=len(encode(Auth("")))) == Auth("")


def test_default_limit_is_one_mebibyte() -> None:
    fill = codec.MAX_MESSAGE_BYTES - len(encode(Auth("x" * 100_000))) + 100_000
    assert decode_agent_message(encode(Auth("x" * fill))) == Auth("x" * fill)
    with pytest.raises(ProtocolError, match="at most 1048576 bytes, got 1048577"):
        decode_agent_message(encode(Auth("x" * (fill + 1))))


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (b"", "not a message"),
        (b"\xc1", "not a message"),
        (msgspec.msgpack.encode([1, 2]), "not a message"),
        (msgspec.msgpack.encode({"seq": 1}), "missing required field `type`"),
        (msgspec.msgpack.encode({"type": 3}), "Expected `str`, got `int`"),
        (msgspec.msgpack.encode({"type": "auth"}), "missing required field `token`"),
        (msgspec.msgpack.encode({"type": "auth", "token": 1}), "Expected `str`, got `int`"),
        (encode(Auth("secret"))[:-1], "not a message"),
        (encode(Auth("secret")) + b"\x00", "not a message"),
        (
            msgspec.msgpack.encode({"type": "goodbye", "seq": 1, "time_ns": 1, "reason": "x"}),
            "enum",
        ),
    ],
)
def test_malformed_is_refused_with_its_reason(frame: bytes, says: str) -> None:
    with pytest.raises(ProtocolError, match=says) as refused:
        decode_agent_message(frame)
    assert refused.value.code == BAD_MESSAGE


def test_refusal_does_not_repeat_a_token() -> None:
    frame = msgspec.msgpack.encode({"type": "auth", "token": ["secret"]})
    with pytest.raises(ProtocolError) as refused:
        decode_agent_message(frame)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("long", [Command("x" * 129, "stats"), Command("c1", "x" * 201)])
def test_a_command_with_a_name_without_end_is_refused(long: Command) -> None:
    with pytest.raises(ProtocolError, match="length <="):
        decode_server_message(encode(long))


@pytest.mark.parametrize(
    "fields",
    [
        {"seq": 0},
        {"seq": -1},
        {"seq": 2**63},
        {"time_ns": 2**63},
        {"step": 2**64 - 1},
    ],
)
def test_integers_that_no_column_holds_are_refused(fields: dict[str, int]) -> None:
    event = {"type": "event", "seq": 1, "time_ns": 1, "kind": "mark"}
    with pytest.raises(ProtocolError, match="Expected `int`"):
        decode_agent_message(msgspec.msgpack.encode(event | fields))


def nested(depth: int) -> bytes:
    return b"\x91" * depth + b"\x00"


@pytest.mark.parametrize("name", [b"\xa4data\x81\xa1a", b"\xa4newf"])
def test_deep_nesting_is_refused(name: bytes) -> None:
    event = encode(Event(1, 1, "mark"))
    frame = bytes([event[0] + 1]) + event[1:] + name + nested(200_000)
    with pytest.raises(ProtocolError, match="recursion"):
        decode_agent_message(frame)


@pytest.mark.parametrize(
    "value",
    [
        msgspec.msgpack.Ext(5, b"abcd"),
        {(1, 2): 3},
    ],
)
def test_data_that_json_cannot_hold_is_refused(value: object) -> None:
    frames = {
        "event": {"seq": 1, "time_ns": 1, "kind": "k", "data": {"x": value}},
        "command_update": {
            "seq": 1,
            "id": "c",
            "state": "done",
            "time_ns": 1,
            "receipt": {"state": "done", "result": value},
        },
    }
    for tag, fields in frames.items():
        with pytest.raises(ProtocolError, match="expected data that JSON can hold"):
            decode_agent_message(msgspec.msgpack.encode({"type": tag, **fields}))
    with pytest.raises(ProtocolError, match="expected data that JSON can hold"):
        decode_server_message(
            msgspec.msgpack.encode(
                {"type": "command", "id": "c", "name": "stats", "params": {"x": value}}
            )
        )


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_random_bytes_raise_nothing_but_protocol_errors(frame: bytes) -> None:
    for decode in DECODERS:
        with contextlib.suppress(ProtocolError):
            decode(frame)


@given(
    st.sampled_from([encode(message) for message in (*AGENT_MESSAGES, *SERVER_MESSAGES)]),
    st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=4)), min_size=1, max_size=4),
)
@settings(max_examples=500, deadline=None)
def test_damaged_messages_raise_nothing_but_protocol_errors(
    frame: bytes, edits: list[tuple[int, bytes]]
) -> None:
    for position, replacement in edits:
        cut = position % (len(frame) + 1)
        frame = frame[:cut] + replacement + frame[cut + len(replacement) :]
    for decode in DECODERS:
        with contextlib.suppress(ProtocolError):
            # What is let in can be shown: the server writes exactly this as JSON.
            msgspec.json.encode(decode(frame))


def test_text_that_is_no_unicode_travels_escaped() -> None:
    """Names of files and messages of errors may hold bytes that are not UTF-8."""
    sent = Goodbye(7, 8, "exception", 1, "no file a\udcff")
    received = decode_agent_message(encode(sent))
    assert received == Goodbye(7, 8, "exception", 1, "no file a\\udcff")
    update = CommandUpdate(3, "c1", "done", 6, Receipt("done", result={"\udcfe": ["\udcff", 1.5]}))
    received = decode_agent_message(encode(update))
    assert isinstance(received, CommandUpdate)
    assert received.receipt is not None
    assert received.receipt.result == {"\\udcfe": ["\\udcff", 1.5]}
