"""The name that something is stored into, as it is written in an expression."""

from __future__ import annotations

import ast

from vramscope.holders.holder import StoreTarget


def without_keys(node: ast.expr) -> ast.expr:
    """``self.results`` of ``self.results[k]`` and of ``self.results.setdefault(k, [])``."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("setdefault", "get")
        ):
            node = node.func.value
        else:
            return node


def is_target(node: ast.AST, target: StoreTarget) -> bool:
    """Whether an expression is that name: ``results``, or ``.results`` of whatever object."""
    if target.is_attribute:
        return isinstance(node, ast.Attribute) and node.attr == target.name
    return isinstance(node, ast.Name) and node.id == target.name
