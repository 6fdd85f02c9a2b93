"""Bytes to messages and back, with the size limits that hold before anything is decoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from vramscope_protocol.errors import BAD_MESSAGE, TOO_LARGE, ProtocolError
from vramscope_protocol.messages import (
    AgentMessage,
    Command,
    CommandUpdate,
    Error,
    Event,
    Message,
    ServerMessage,
)

MAX_MESSAGE_BYTES: Final = 1 << 20
MAX_FIELDS: Final = 512
MAX_TABLES: Final = 64
MAX_BATCH_ROWS: Final = 8192
MAX_SNAPSHOT_CHUNK_BYTES: Final = 256 << 10
MAX_SNAPSHOT_STEPS: Final = 4096
MAX_OOM_BYTES: Final = 4 << 20
"""A report of a time out of memory is no larger."""

_encoder = msgspec.msgpack.Encoder()
_json_encoder = msgspec.json.Encoder()
_agent_decoder: msgspec.msgpack.Decoder[AgentMessage] = msgspec.msgpack.Decoder(AgentMessage)
_server_decoder: msgspec.msgpack.Decoder[ServerMessage] = msgspec.msgpack.Decoder(ServerMessage)


class _Tag(msgspec.Struct):
    type: str


_tag_decoder = msgspec.msgpack.Decoder(_Tag)
_AGENT_TAGS = frozenset(
    {
        "hello",
        "auth",
        "register",
        "field_table",
        "batch",
        "event",
        "command_update",
        "lost",
        "agent_status",
        "snapshot_begin",
        "snapshot_chunk",
        "oom_begin",
        "map_frame",
        "goodbye",
    }
)
_SERVER_TAGS = frozenset(
    {"welcome", "ack", "command", "decision", "snapshot_ack", "map_wanted", "error"}
)


def encode(message: Message) -> bytes:
    """One message as one binary frame.

    Text that is not valid Unicode (from a file name, in the words of an error) travels escaped.
    """
    try:
        return _encoder.encode(message)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(message, builtin_types=(bytes,))
        return _encoder.encode(_escaped(plain))


def decode_agent_message(
    frame: bytes | str, max_bytes: int = MAX_MESSAGE_BYTES
) -> AgentMessage | None:
    """Decode what an agent sent; ``None`` for a message type that this version does not know.

    Raises:
        ProtocolError: ``too_large`` or ``bad_message``.
    """
    data = _checked(frame, max_bytes)
    try:
        message = _agent_decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        _refuse_unless_unknown_type(data, _AGENT_TAGS, error)
        return None
    if isinstance(message, Event):
        _check_json(message.data)
    elif isinstance(message, CommandUpdate):
        _check_json(message.receipt)
    return message


def decode_server_message(
    frame: bytes | str, max_bytes: int = MAX_MESSAGE_BYTES
) -> ServerMessage | None:
    """Decode what a server sent; ``None`` for a message type that this version does not know.

    Raises:
        ProtocolError: ``too_large`` or ``bad_message``.
    """
    data = _checked(frame, max_bytes)
    try:
        message = _server_decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        _refuse_unless_unknown_type(data, _SERVER_TAGS, error)
        return None
    if isinstance(message, Command):
        _check_json(message.params)
    elif isinstance(message, Error):
        _check_json(message.detail)
    return message


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_escaped(item) for item in cast("Iterable[Any]", value)]
    if isinstance(value, dict):
        items = cast("Mapping[Any, Any]", value).items()
        return {_escaped(key): _escaped(item) for key, item in items}
    return value


def _checked(frame: bytes | str, max_bytes: int) -> bytes:
    if isinstance(frame, str):
        raise ProtocolError(BAD_MESSAGE, "expected a binary frame, got a text frame")
    if len(frame) > max_bytes:
        raise ProtocolError(
            TOO_LARGE, f"expected a message of at most {max_bytes} bytes, got {len(frame)}"
        )
    return frame


def _check_json(free_form: object) -> None:
    """Refuse free-form data that JSON cannot hold: REST, the page and the store show it as JSON."""
    try:
        _json_encoder.encode(free_form)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ProtocolError(BAD_MESSAGE, f"expected data that JSON can hold: {error}") from None


def _refuse_unless_unknown_type(
    data: bytes, known_tags: frozenset[str], error: msgspec.DecodeError | RecursionError
) -> None:
    """Return for a well-formed message of an unknown type, raise for everything else."""
    try:
        tag = _tag_decoder.decode(data).type
    except (msgspec.DecodeError, RecursionError):
        raise ProtocolError(BAD_MESSAGE, f"not a message: {error}") from None
    if tag in known_tags:
        raise ProtocolError(BAD_MESSAGE, f"{tag}: {error}") from None
