"""Find parts of a callable that read relations, and resolve their names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

from optimizer.callables.captures import attribute, paths, variable
from optimizer.comprehensions.generators import look_up_name
from optimizer.comprehensions.rows import Rows, has_rows_within
from optimizer.lifting.readings import UNSET, resolve

MADE = "%"
"""Prefix of the names that replace loops."""
ASKED = "asked for relations"


def touches(node: ast.AST, reader: Any, reading: Any) -> bool:
    """Return True if a part reads rows of a relation."""
    return any(_is_relation_node(each, reader, reading) for each in _names_and_attributes(node))


def _names_and_attributes(node: ast.AST) -> tuple[ast.AST, ...]:
    """Return the names, each once, and the attributes in a part, cached in its node."""
    known: tuple[ast.AST, ...] | None = vars(node).get(ASKED)
    if known is None:
        found: dict[Any, ast.AST] = {}
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                found.setdefault(each.id, each)
            elif isinstance(each, ast.Attribute):
                found[id(each)] = each
        known = tuple(found.values())
        setattr(node, ASKED, known)
    return known


def _is_relation_node(node: ast.AST, reader: Any, reading: Any) -> bool:
    """Return True if a name or attribute is a relation, or a variable that leads to one."""
    if isinstance(node, ast.Name):
        known = look_up_name(reader.bound, node.id)
        if known is not None:
            return isinstance(known, Rows) or has_rows_within(known)
        return node.id.startswith(MADE) or is_or_reads_relation(
            _value_of_name(node.id, reader), node.id, reading
        )
    if isinstance(node, ast.Attribute):
        return bool(reading.engine.is_relation(constant_of(node, reader)))
    return False


def _value_of_name(name: str, reader: Any) -> Any:
    """Return the value of a name; `UNSET` for the name of a query that is being made."""
    found = resolve(reader.function, name)
    active = reader.origin.queries.active
    is_own = any(e.name == name and e.was(found, reader.function) for e in active)
    return UNSET if is_own else found


def is_or_reads_relation(value: Any, name: str, reading: Any) -> bool:
    """Return True if the value of a name is a relation, or a function that reads one."""
    if value is UNSET:
        return any(entry.name == name for entry in reading.active)
    if reading.engine.is_relation(value):
        return True
    return isinstance(value, FunctionType) and reads_relations(value, reading)


def reads_relations(function: FunctionType, reading: Any) -> bool:
    """Return True if a function names a relation, or calls one that does."""
    known = reading.known
    if id(function.__code__) not in known:
        known[id(function.__code__)] = any(e.code is function.__code__ for e in reading.active)
        known[id(function.__code__)] = any(_find_relations(function, reading))
    return bool(known[id(function.__code__)])


def _find_relations(function: FunctionType, reading: Any) -> Iterator[bool]:
    """Yield, for each thing that a function reads from outside, whether it leads to a relation."""
    is_relation = reading.engine.is_relation
    yield any(entry.code is function.__code__ for entry in reading.active)
    for path in paths(function.__code__):
        value = variable(function, path)
        yield is_relation(value)
        if isinstance(value, FunctionType):
            yield reads_relations(value, reading)
        for name in path.names[1:]:
            value = attribute(value, name)
            yield is_relation(value)


def without_value(node: ast.AST, reader: Any) -> ast.Name | None:
    """Return the first name in a part that has no value yet; None if all have one."""
    every = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    own = {each.id for each in every if not isinstance(each.ctx, ast.Load)}
    own |= {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    for each in every:
        known = each.id in own or look_up_name(reader.bound, each.id) is not None
        if not known and _value_of_name(each.id, reader) is UNSET:
            return each
    return None


def constant_of(node: ast.expr, reader: Any) -> Any:
    """Return the value of a name that is no parameter, or of its attribute; `UNSET` for other
    parts."""
    if isinstance(node, ast.Name):
        return (
            UNSET
            if look_up_name(reader.bound, node.id) is not None
            else _value_of_name(node.id, reader)
        )
    if isinstance(node, ast.Attribute):
        owner = constant_of(node.value, reader)
        if owner is UNSET:
            bound = (
                look_up_name(reader.bound, node.value.id)
                if isinstance(node.value, ast.Name)
                else None
            )
            owner = getattr(bound, "value", UNSET) if type(bound).__name__ == "Constant" else UNSET
        if owner is UNSET:
            return UNSET
        found = attribute(owner, node.attr)
        return found if not isinstance(found, MethodType) else UNSET
    return UNSET
