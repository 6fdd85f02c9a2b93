"""A name is found in what is written, under keys and whatever object has it."""

from __future__ import annotations

import ast

import pytest

from vramscope.holders.holder import StoreTarget
from vramscope.holders.target_names import is_target, without_keys


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    "text", ["rows", "rows[0]", "rows['a'][1:]", "rows.get('a')", "rows.setdefault('a', [])[2]"]
)
def test_keys_are_left_out(text: str) -> None:
    assert is_target(without_keys(expression(text)), StoreTarget("job.py", "rows"))


@pytest.mark.parametrize(
    ("text", "is_attribute", "is_found"),
    [
        ("rows", False, True),
        ("self.rows", True, True),
        ("other.rows", True, True),
        ("rows", True, False),
        ("self.rows", False, False),
        ("rows.pop(0)", False, False),
    ],
)
def test_a_variable_is_no_attribute(text: str, is_attribute: bool, is_found: bool) -> None:
    target = StoreTarget("job.py", "rows", is_attribute)
    assert is_target(expression(text), target) is is_found
