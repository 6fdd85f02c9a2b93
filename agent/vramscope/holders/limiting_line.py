"""The line that keeps a container from growing for ever, beside the one that fills it.

A buffer that has no bound of its own is given one where it is filled: ``if len(kept) > 100``,
``kept.pop(0)``. Whether that line is ever reached nobody knows who only reads it, so it is a hint
and no proof. A method that empties everything says nothing: it may never be called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, Final

from vramscope.holders.holder import SourceLine, StoreTarget
from vramscope.holders.source_trees import functions_around, source_tree, statements_within
from vramscope.holders.target_names import is_target, without_keys

_TAKES_OUT: Final = frozenset({"pop", "popleft", "popitem"})
_ORDERS: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def limiting_line(target: StoreTarget, stores: Iterable[SourceLine]) -> SourceLine | None:
    """The first line that limits it in a function that stores into it; ``None`` if there is none.

    Args:
        target: the name of a container.
        stores: the statements that store into it.
    """
    tree = source_tree(target.file)
    if tree is None or target.is_single:
        return None
    found: set[tuple[int, str]] = set()
    for stored in stores:
        scope: Any = next(iter(functions_around(tree, stored.line)), tree)
        found |= {
            (statement.lineno, function)
            for statement, function in statements_within(scope)
            if any(_limits(each, target) for each in _own_nodes(statement))
        }
    return SourceLine(target.file, *min(found)) if found else None


def _own_nodes(statement: ast.stmt) -> Iterable[ast.AST]:
    """What is written in a statement itself, not in those within it."""
    yield statement
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt):
            yield from ast.walk(child)


def _limits(node: ast.AST, target: StoreTarget) -> bool:
    if isinstance(node, ast.Delete):
        return any(
            isinstance(each, ast.Subscript) and is_target(each.value, target)
            for each in node.targets
        )
    if isinstance(node, ast.Assign):  # kept = kept[-100:]
        return isinstance(node.value, ast.Subscript) and all(
            is_target(each, target) for each in (*node.targets, node.value.value)
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _TAKES_OUT and is_target(without_keys(node.func.value), target)
    if isinstance(node, ast.Compare) and any(isinstance(each, _ORDERS) for each in node.ops):
        return any(_is_length(each, target) for each in (node.left, *node.comparators))
    return False


def _is_length(node: ast.expr, target: StoreTarget) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "len"
        and len(node.args) == 1
        and is_target(without_keys(node.args[0]), target)
    )
