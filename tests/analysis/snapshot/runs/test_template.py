from __future__ import annotations

from typing import Any

import pytest

from vramscope_analysis.snapshot.runs.template import (
    Kind,
    Template,
    TemplateColumn,
    TemplateReader,
    stack_end,
)

KEYS = ["action", "size", "addr", "pool_id", "frames", "other", 5]


def template(opcodes: bytes) -> Template | None:
    return TemplateReader(opcodes, lambda index: KEYS[index]).read()


def test_each_key_gets_its_kind() -> None:
    opcodes = (
        b"}\x94(h\x00\x8c\x05alloc\x94h\x01M\x00\x02h\x02\x8a\x02ab"
        b"h\x03K\x00K\x01\x86\x94h\x05Nj\x04\x00\x00\x00]\x94(h\x09j\x09\x00\x00\x00eu"
    )
    assert template(opcodes) == Template(
        0x94,
        (
            TemplateColumn("action", b"h\x00", Kind.OBJECT),
            TemplateColumn("size", b"h\x01", Kind.INTEGER),
            TemplateColumn("addr", b"h\x02", Kind.INTEGER),
            TemplateColumn("pool_id", b"h\x03", Kind.PAIR),
            TemplateColumn("other", b"h\x05", Kind.OBJECT),
            TemplateColumn("frames", b"j\x04\x00\x00\x00", Kind.STACK),
        ),
    )


@pytest.mark.parametrize(
    ("opcodes", "memo"),
    [
        (b"}(h\x00h\x09h\x01K\x01u", 0),
        (b"}q\x05(h\x00h\x09h\x01K\x01u", ord("q")),
        (b"}r\x05\x00\x00\x00(h\x00X\x01\x00\x00\x00aq\x07h\x01K\x01u", ord("r")),
    ],
)
def test_dicts_are_memoized_in_several_ways(opcodes: bytes, memo: int) -> None:
    found = template(opcodes)
    assert found is not None
    assert (found.memo, found.keys) == (memo, ("action", "size"))


def test_a_fetched_stack_is_a_stack() -> None:
    found = template(b"}(h\x00h\x09h\x01K\x01h\x04h\x08u")
    assert found is not None
    assert found.columns[-1].kind is Kind.STACK


@pytest.mark.parametrize(
    "opcodes",
    [
        b"}",
        b"}(h\x00h\x09h\x01K\x01",  # the end is missing
        b"}\x94h\x00h\x09u",  # no mark
        b"}(\x8c\x06actionh\x09h\x01K\x01u",  # a key that is not fetched
        b"}(h\x63h\x09h\x01K\x01u",  # nor known
        b"}(h\x00h\x09h\x06K\x01h\x01K\x01u",  # a key that is no text
        b"}(h\x00h\x09h\x00h\x09h\x01K\x01u",  # the same key twice
        b"}(h\x00h\x09h\x02K\x01u",  # neither an entry nor a block
        b"}(h\x02h\x09h\x01K\x01u",
        b"}(h\x00]h\x01K\x01u",  # a list that is not the last
        b"}(h\x00h\x09h\x01K\x01h\x05]u",  # nor frames
        b"}(h\x00h\x09h\x01K\x01h\x04](Neu",  # nor of references
        b"}(h\x00h\x09h\x01K\x01h\x04](h\x05uu",
        b"}(h\x00h\x09h\x01K\x01h\x05G\x00\x00\x00\x00\x00\x00\x00\x00u",
        b"}(h\x00h\x09h\x01K\x01h\x05K\x01K\x02\x87u",
        b"}(h\x00X\x00\x01\x00\x00" + b"a" * 256 + b"h\x01K\x01u",  # a long text
    ],
)
def test_other_dicts_have_none(opcodes: bytes) -> None:
    assert template(opcodes) is None


def test_too_many_columns() -> None:
    keys: list[Any] = ["action", "size", *map(str, range(90))]
    opcodes = b"}(" + b"".join(b"h" + bytes([at]) + b"K\x01" for at in range(92)) + b"u"
    assert TemplateReader(opcodes, lambda index: keys[index]).read() is None


@pytest.mark.parametrize(
    ("opcodes", "end"),
    [
        (b"u", 0),
        (b"(eu", 2),
        (b"h\x05au", 3),
        (b"j\x05\x00\x00\x00au", 6),
        (b"(h\x05j\x05\x00\x00\x00eu", 9),
        (b"h\x05u", None),
        (b"(h\x05u", None),
        (b"(h\x05", None),
        (b"", None),
    ],
)
def test_ends_of_stacks(opcodes: bytes, end: int | None) -> None:
    assert stack_end(opcodes, 0) == end
