"""The statement that puts things where they are held, found in the source of the job.

A list is allocated nowhere and appended to somewhere: what a person has to change is the line with
``self.preds.append(p)``, wherever the tensor was made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Final

from vramscope.holders.calling_line import calling_line
from vramscope.holders.code_owner import Owner, owner_of
from vramscope.holders.holder import HolderFound, SourceLine, StoreTarget
from vramscope.holders.limiting_line import limiting_line
from vramscope.holders.source_trees import functions_around, source_tree, statements_within
from vramscope.holders.target_names import is_target, without_keys

_PUTS: Final = frozenset(
    {"append", "appendleft", "extend", "add", "insert", "update", "setdefault", "put", "push"}
)


def storing_line(target: StoreTarget) -> SourceLine | None:
    """The one statement that stores into a name; ``None`` if there is none, or several.

    Args:
        target: the name, and where it is one.
    """
    lines = storing_lines(target)
    return lines.pop() if len(lines) == 1 else None


def storing_lines(target: StoreTarget) -> set[SourceLine]:
    """All statements that store into a name, of the nearest place where there are any.

    Args:
        target: the name, and where it is one.
    """
    if owner_of(target.file) > Owner.LIBRARY:
        return set()
    tree = source_tree(target.file)
    if tree is None:
        return set()
    for scopes in _scopes(tree, target):
        statements = [each for scope in scopes for each in statements_within(scope)]
        # One that adds to what is there rather than the one that begins it.
        for stores in (_adds, _sets) if target.is_single else (_adds,):
            lines = {
                SourceLine(target.file, statement.lineno, function)
                for statement, function in statements
                if stores(statement, target)
            }
            if lines:
                return lines
    return set()


def find_storing_lines(holders: Iterable[HolderFound]) -> None:
    """Look for the statements that store into what holds. Reads source files."""
    for holder in holders:
        lines = map(storing_line, holder.targets)
        stored = next((line for line in lines if line is not None), None)
        limits = (limiting_line(each, storing_lines(each)) for each in holder.targets)
        holder.limited_at = next((line for line in limits if line is not None), None)
        if stored is not None and holder.caller is not None:
            stored = calling_line(stored, holder.caller) or stored
        holder.stored_at, holder.targets, holder.caller = stored, [], None


def _scopes(tree: ast.Module, target: StoreTarget) -> Iterator[list[Any]]:
    """Where to look, the nearest first: the class or function, then the whole file."""
    if target.class_name:
        found = [each for each in ast.walk(tree) if isinstance(each, ast.ClassDef)]
        yield [each for each in found if each.name == target.class_name]
    if target.first_line:
        # The innermost first: of a closure the variable is that of a function around.
        for each in functions_around(tree, target.first_line):
            yield [each]
    if target.is_attribute or not target.first_line:
        yield [tree]


def _adds(statement: ast.stmt, target: StoreTarget) -> bool:
    """``name.append(x)``, ``name[...] = x``, ``name += x``, ``name = name + x``."""
    if isinstance(statement, ast.Expr):
        return any(_puts(call, target) for call in _calls(statement.value))
    if isinstance(statement, ast.AugAssign):
        return is_target(without_keys(statement.target), target)
    for place, value in _assignments(statement):
        bare = without_keys(place)
        if isinstance(value, ast.Subscript) and is_target(value.value, target):
            continue  # kept = kept[-100:]
        if is_target(bare, target) and (
            bare is not place or any(is_target(each, target) for each in ast.walk(value))
        ):
            return True
    return False


def _sets(statement: ast.stmt, target: StoreTarget) -> bool:
    """``name = x``, but for what begins empty."""
    return any(
        is_target(place, target) and not isinstance(value, ast.Constant)
        for place, value in _assignments(statement)
    )


def _assignments(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(statement, ast.Assign):
        for place in statement.targets:
            yield from _pairs(place, statement.value)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield statement.target, statement.value


def _puts(call: ast.Call, target: StoreTarget) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        is_set = function.id == "setattr" and len(call.args) == 3
        return is_set and target.is_attribute and _is_text(call.args[1], target.name)
    if not isinstance(function, ast.Attribute) or function.attr not in _PUTS:
        return False
    return is_target(without_keys(function.value), target)


def _is_text(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _calls(value: ast.expr) -> Iterator[ast.Call]:
    return (each for each in ast.walk(value) if isinstance(each, ast.Call))


def _pairs(place: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each place with what it gets, as far as ``a, b = x, y`` says it."""
    if not isinstance(place, (ast.Tuple, ast.List)):
        yield place, value
        return
    values: list[ast.expr] = [value] * len(place.elts)
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(place.elts):
        values = value.elts
    for each, its_value in zip(place.elts, values, strict=True):
        yield from _pairs(each, its_value)
