"""The line that gives something to a method which keeps it: ``metric.update(p)``.

Of an object that collects what it is given, the statement inside of it is as it should be. What can
be changed is the line that gives.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from vramscope.holders.holder import SourceLine, StoreTarget
from vramscope.holders.source_trees import functions_around, source_tree, statements_within


def calling_line(stored: SourceLine, caller: StoreTarget) -> SourceLine | None:
    """The one call of the method that keeps an argument; ``None`` if there is none, or several.

    Args:
        stored: the statement in the method that puts something where it is held.
        caller: the variable that has the object.
    """
    tree = source_tree(stored.file)
    callers = source_tree(caller.file)
    if tree is None or callers is None or not _keeps_an_argument(tree, stored):
        return None
    scopes: list[Any] = functions_around(callers, caller.first_line) if caller.first_line else []
    for scope in (*scopes, callers):
        lines = {
            SourceLine(caller.file, call.lineno, function)
            for statement, function in statements_within(scope)
            for call in _calls(statement)
            if _is_of(call, caller.name, stored.function)
        }
        if lines:
            return lines.pop() if len(lines) == 1 else None
    return None


def _keeps_an_argument(tree: ast.Module, stored: SourceLine) -> bool:
    """Whether the statement uses what its function was given, beside the object itself."""
    function = next(iter(functions_around(tree, stored.line)), None)
    if function is None or getattr(function, "name", "") != stored.function:
        return False
    given = function.args
    names = {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    names -= {"self", "cls"}
    return any(
        _uses(statement, names)
        for statement, _ in statements_within(function)
        # Of ``if first: kept.append(y)`` only what is in it.
        if statement.lineno == stored.line and not hasattr(statement, "body")
    )


def _uses(node: ast.AST, names: set[str]) -> bool:
    """Whether what was given is in it itself; ``model(x)`` makes something else of it."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
        return False
    return any(_uses(child, names) for child in ast.iter_child_nodes(node))


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """Calls of a statement itself, not of those within it."""
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt):
            yield from (each for each in ast.walk(child) if isinstance(each, ast.Call))


def _is_of(call: ast.Call, name: str, method: str) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr == method
        and isinstance(function.value, ast.Name)
        and function.value.id == name
    )
