"""The message structs: names on the wire, numbering, and what may be left out."""

from __future__ import annotations

import re
from typing import get_args

import msgspec
import pytest

from vramscope_protocol import messages
from vramscope_protocol.messages import (
    AgentMessage,
    Batch,
    BatchKind,
    CommandUpdate,
    DurableMessage,
    Event,
    Message,
    RankInfo,
    Register,
    RunInfo,
    ServerMessage,
)

AGENT = AgentMessage.__args__
SERVER = ServerMessage.__args__


@pytest.mark.parametrize("struct", [*AGENT, *SERVER])
def test_tag_is_the_structs_name_in_snake_case(struct: type[Message]) -> None:
    snake_case = re.sub(r"(?<!^)(?=[A-Z])", "_", struct.__name__).lower()
    assert struct.__struct_config__.tag == snake_case
    assert struct.__struct_config__.tag_field == "type"


def test_every_message_has_a_direction() -> None:
    declared = {
        value
        for value in vars(messages).values()
        if isinstance(value, type) and issubclass(value, Message) and value is not Message
    }
    assert declared == set(AGENT) | set(SERVER)
    assert not set(AGENT) & set(SERVER)


def test_durable_messages_are_those_with_a_number() -> None:
    numbered = {struct for struct in AGENT if "seq" in struct.__struct_fields__}
    assert set(DurableMessage.__args__) == numbered


def test_unknown_fields_are_allowed_everywhere() -> None:
    # An older peer survives a newer one: no struct that travels may forbid what it does not know.
    for struct in [*AGENT, *SERVER]:
        assert not struct.__struct_config__.forbid_unknown_fields


def test_a_step_that_is_over_is_no_last_word_of_a_command() -> None:
    assert CommandUpdate(1, "c", "refused", 0).is_last_word
    assert not CommandUpdate(1, "c", "refused", 0, at_step=7).is_last_word
    assert not CommandUpdate(1, "c", "prepared", 0, at_step=7).is_last_word


def test_batch_kinds() -> None:
    assert get_args(BatchKind) == ("sample", "step")
    with pytest.raises(msgspec.ValidationError, match="Invalid enum value 'hour'"):
        msgspec.convert(
            {"type": "batch", "seq": 1, "kind": "hour", "table": 0, "first_index": 0, "count": 1}
            | {"columns": b""},
            Batch,
        )


def test_what_an_agent_need_not_say() -> None:
    rank = RankInfo(rank=3, host="h", pid=1)
    register = Register(stream="s", run=RunInfo(id="r", name="n"), rank=rank)
    assert (register.first_seq, register.run.world_size, register.run.emulated) == (1, 1, False)
    assert (rank.allow, rank.commands, rank.devices, rank.software) == ("control", [], [], {})


def test_free_form_defaults_are_not_shared() -> None:
    first, second = Event(1, 1, "mark"), Event(2, 2, "mark")
    first.data["x"] = 1
    assert second.data == {}
