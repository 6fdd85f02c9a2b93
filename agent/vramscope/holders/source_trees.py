"""Source files of the job as trees of statements."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from typing import Any, Final

MAX_LINES: Final = 8_000
"""Python reads a file as a tree without letting others run: of more lines for half a second."""
MAX_TREES: Final = 16

_trees: dict[str, ast.Module | None] = {}


def source_tree(file: str) -> ast.Module | None:
    """A source file as it was read first: of one that was changed the lines would be wrong."""
    if file not in _trees:
        lines = linecache.getlines(file)
        tree: ast.Module | None = None
        if 0 < len(lines) <= MAX_LINES:
            try:
                tree = ast.parse("".join(lines))
            except (SyntaxError, ValueError, RecursionError):
                tree = None
        if len(_trees) >= MAX_TREES:
            _trees.clear()
        _trees[file] = tree
    return _trees[file]


def functions_around(tree: ast.Module, line: int) -> list[Any]:
    """Functions that a line is in, the innermost first."""
    around = [
        each
        for each in ast.walk(tree)
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        and _first_line(each) <= line <= (each.end_lineno or 0)
    ]
    return sorted(around, key=_first_line, reverse=True)


def statements_within(scope: Any) -> Iterator[tuple[ast.stmt, str]]:
    """Statements of a function, a class or a file, each with the name of its function."""
    name = "" if isinstance(scope, ast.ClassDef) else getattr(scope, "name", "<lambda>")
    pending: list[tuple[Any, str]] = [
        (scope, "<module>" if isinstance(scope, ast.Module) else str(name))
    ]
    while pending:
        node, function = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield child, function
            pending.append((child, function))


def _first_line(node: Any) -> int:
    decorators = [int(each.lineno) for each in getattr(node, "decorator_list", ())]
    return min([int(node.lineno), *decorators])
