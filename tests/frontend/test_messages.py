"""The JSDoc typedefs of the page name the same fields as the structs of the protocol."""

from __future__ import annotations

import re

import msgspec
import pytest

from vramscope_frontend import STATIC_DIR
from vramscope_protocol import live
from vramscope_protocol.account import AgentAccount, MemoryPart, ProcessMemory
from vramscope_protocol.command_table import COMMANDS
from vramscope_protocol.commands import Receipt
from vramscope_protocol.messages import AgentStatus, DeviceInfo
from vramscope_protocol.series import SERIES
from vramscope_protocol.user_commands import UserCommand, UserParam

JS = STATIC_DIR / "js"
INLINE = re.compile(r"@typedef \{\{(?P<body>.*)\}\} (?P<name>\w+)")
FIELD = re.compile(r"(?:^|, )(?P<name>\w+)\??: ")

STRUCTS = [
    live.SubscribeRuns,
    live.SubscribeRun,
    live.Unsubscribe,
    live.Ping,
    live.LiveHello,
    live.ErrorBody,
    live.Result,
    DeviceInfo,
    AgentStatus,
    AgentAccount,
    ProcessMemory,
    MemoryPart,
    UserCommand,
    UserParam,
]


def typedefs() -> dict[str, set[str]]:
    """Fields of every one-line typedef in messages.js."""
    text = (JS / "messages.js").read_text("utf-8")
    found: dict[str, set[str]] = {}
    for match in INLINE.finditer(text):
        body = match["body"]
        # Commas inside of <...>, [...] and {...} do not separate fields.
        while (flat := re.sub(r"[<{(\[][^<>{}()\[\]]*[>})\]]", "", body)) != body:
            body = flat
        found[match["name"]] = {field["name"] for field in FIELD.finditer(body)}
    return found


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_typedef_has_the_fields_of_its_struct(struct: type[msgspec.Struct]) -> None:
    expected = set(struct.__struct_encode_fields__)
    # An agent's status is a message on its own connection and a plain object inside of a rank.
    if struct.__struct_config__.tag is not None and struct is not AgentStatus:
        expected.add("type")
    assert typedefs()[struct.__name__] == expected


def test_receipt_has_the_fields_of_its_struct_and_the_time_that_the_server_adds() -> None:
    assert typedefs()["Receipt"] == set(Receipt.__struct_encode_fields__) | {"time_ns"}


def test_every_kind_of_event_that_the_protocol_names_has_a_typedef() -> None:
    named = set(re.findall(r"``(\w+)``", live.SubscribeRun.__doc__ or "")) - {"kind"}
    assert "samples" in named
    text = (JS / "messages.js").read_text("utf-8")
    kinds = set(re.findall(r'kind: "(\w+)"', text))
    assert named <= kinds


def test_the_page_offers_exactly_the_commands_that_exist() -> None:
    text = "".join(
        path.read_text("utf-8") for path in sorted((JS / "commands").glob("*-commands.js"))
    )
    blocks = re.findall(r'\n    name: "([^"]+)",(.*?)\n  \},', text, re.DOTALL)
    offered = {
        name: (
            "needsControl: true," in block,
            "dryRun: true," in block,
            "sameStep: true," in block,
            "wholeRun: true," in block,
            "changesTraining: true," in block,
            re.findall(r'place: "([^"]+)"', block),
        )
        for name, block in blocks
    }
    assert len(offered) == len(blocks)
    assert offered == {
        spec.name: (
            spec.right == "control",
            spec.dry_run,
            spec.same_step,
            spec.whole_run,
            spec.changes_training,
            [spec.place],
        )
        for spec in COMMANDS.values()
    }


def test_a_form_asks_only_for_parameters_that_its_command_has() -> None:
    text = "".join(
        path.read_text("utf-8") for path in sorted((JS / "commands").glob("*-commands.js"))
    )
    asked = {
        name: re.findall(r'\{ key: "(\w+)"', block)
        for name, block in re.findall(r'\n    name: "([^"]+)",(.*?)\n  \},', text, re.DOTALL)
    }
    assert asked["set_batch_size"] == ["batch_size", "accumulation", "change_global_batch"]
    for name, keys in asked.items():
        assert set(keys) <= set(COMMANDS[name].params.__struct_encode_fields__), name


def test_the_page_asks_only_for_series_that_exist() -> None:
    text = (JS / "fields.js").read_text("utf-8")
    asked = set(re.findall(r'= "([a-z_.]+)";', text))
    assert asked
    assert asked <= set(SERIES)
