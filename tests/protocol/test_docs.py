"""docs/protocol.md says what the types say: nothing is missing and nothing is made up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from vramscope_protocol import account, codec, errors, live, messages, user_commands
from vramscope_protocol.command_table import COMMANDS
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import CLOSE_CODES, PERMANENT
from vramscope_protocol.session import State
from vramscope_protocol.version import AGENT_FEATURES, PROTOCOL_VERSION, SERVER_FEATURES

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
TABLE_ROW = re.compile(r"^\| `([a-z0-9_+]+)` \|(.*)\|$", re.MULTILINE)


def section(title: str) -> str:
    """Text from a heading to the next one of the same or a higher level."""
    match = re.search(rf"^(##+) {re.escape(title)}$", PAGE, re.MULTILINE)
    assert match, f"no section {title!r}"
    level = len(match[1])
    rest = PAGE[match.end() :]
    following = re.search(rf"^#{{2,{level}}} ", rest, re.MULTILINE)
    return rest[: following.start()] if following else rest


def rows(text: str) -> dict[str, list[str]]:
    """Rows of the first table in a text whose first cell is a name in backticks."""
    table = re.split(r"\n(?!\|)", text[text.index("\n|") + 1 :], maxsplit=1)[0]
    found = TABLE_ROW.findall(table)
    assert len(found) == len(dict(found)), "a name stands in the table twice"
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in found}


def fields_after(marker: str, text: str = PAGE) -> set[str]:
    """Names in the table that follows a line beginning with ``marker``."""
    match = re.search(rf"^{re.escape(marker)}.*$", text, re.MULTILINE)
    assert match, f"nothing begins with {marker!r}"
    return set(rows(text[match.end() :]))


def structs(union: Any) -> list[type[msgspec.Struct]]:
    return list(union.__args__)


def tag_of(struct: type[msgspec.Struct]) -> str:
    return str(struct.__struct_config__.tag)


@pytest.mark.parametrize(
    ("struct", "direction"),
    [
        *((struct, "Agent to server") for struct in structs(messages.AgentMessage)),
        *((struct, "Server to agent") for struct in structs(messages.ServerMessage)),
        *((struct, "Browser and server") for struct in structs(live.LiveRequest)),
        (live.Result, "Browser and server"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_message(struct: type[msgspec.Struct], direction: str) -> None:
    documented = fields_after(f"### `{tag_of(struct)}`", section(direction))
    assert documented == set(struct.__struct_fields__)


@pytest.mark.parametrize(
    "struct",
    [
        messages.RunInfo,
        messages.RankInfo,
        messages.DeviceInfo,
        user_commands.UserCommand,
        user_commands.UserParam,
        messages.Field,
        account.AgentAccount,
        account.ProcessMemory,
        account.MemoryPart,
        Receipt,
        live.ErrorBody,
    ],
)
def test_part_of_a_message(struct: type[msgspec.Struct]) -> None:
    assert fields_after(f"`{struct.__name__}`") == set(struct.__struct_fields__)


def test_live_hello() -> None:
    assert fields_after("### `hello` (server)") == set(live.LiveHello.__struct_fields__)


def test_no_message_is_made_up() -> None:
    documented = re.findall(r"^### `([a-z_]+)`", PAGE, re.MULTILINE)
    known: list[type[msgspec.Struct]] = [
        *structs(messages.AgentMessage),
        *structs(messages.ServerMessage),
        *structs(live.LiveRequest),
        live.LiveHello,
        live.Result,
    ]
    # `event` of the live connection has no struct: its frame is put together from bytes.
    assert sorted(documented) == sorted([*map(tag_of, known), "event"])


def test_commands() -> None:
    declared = {
        spec.name: [spec.right, spec.place, "yes" if spec.dry_run else "no", spec.summary]
        for spec in COMMANDS.values()
    }
    assert rows(section("Commands")) == declared


def test_limits() -> None:
    constants = {**vars(codec), **vars(live)}
    documented = re.findall(r"^\| `(MAX_[A-Z_]+)` \| (\d+) \|", section("Limits"), re.MULTILINE)
    assert {name: int(value) for name, value in documented} == {
        name: value for name, value in constants.items() if name.startswith("MAX_")
    }


def test_errors() -> None:
    codes = {
        value for name, value in vars(errors).items() if name.isupper() and isinstance(value, str)
    }
    assert {code: cells[:2] for code, cells in rows(section("Errors")).items()} == {
        code: [str(CLOSE_CODES.get(code, "")), "yes" if code in PERMANENT else ""] for code in codes
    }


def test_states() -> None:
    documented = set(re.findall(r"^\| `([a-z]+)` \| (?:server|agent|both) \|", PAGE, re.MULTILINE))
    assert documented == {state.name.lower() for state in State}


def test_version_and_features() -> None:
    assert f"`PROTOCOL_VERSION` (now {PROTOCOL_VERSION})" in PAGE
    for feature in {*AGENT_FEATURES, *SERVER_FEATURES}:
        assert f"`{feature}` (" in PAGE
