"""Loops that fill a collection, as the comprehensions that they are.

    groups = defaultdict(list)
    for o in orders:                    ->      groups = %groups((o.cid, o.total) for o in orders)
        groups[o.cid].append(o.total)

`defaultdict(set)` with `add`, `defaultdict(int)` with `+=`, lists with `append` and sets with `add`
are read likewise; the loops may have others, and an `if` each, around the one statement.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeAlias

Made: TypeAlias = tuple[str, list[ast.comprehension], ast.expr | None, ast.expr]
"""A name, the generators, the key and the value of what is put into it."""


def as_expressions(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """The statements with expressions in the place of loops that can be one."""
    made: list[ast.stmt] = []
    begun: dict[str, tuple[str, int]] = {}
    for statement in body:
        if not isinstance(statement, ast.For):
            for name in [name for name in begun if _names(statement, name)]:
                del begun[name]
        started = _started(statement)
        if started is not None:
            begun[started[0]] = (started[1], len(made))
        elif isinstance(statement, ast.For):
            found = _filled(statement)
            if found is not None and found[0] in begun and _names(statement, found[0]) == 1:
                kind, place = begun.pop(found[0])
                value = _expression(kind, found, statement)
                if value is not None:
                    made[place] = ast.copy_location(ast.Pass(), statement)
                    target = ast.copy_location(ast.Name(found[0], ast.Store()), statement)
                    statement = ast.copy_location(ast.Assign([target], value), statement)
        made.append(statement)
    return made


def _names(statement: ast.stmt, name: str) -> int:
    """How often a statement has a name."""
    return sum(isinstance(each, ast.Name) and each.id == name for each in ast.walk(statement))


def _started(statement: ast.stmt) -> tuple[str, str] | None:
    """The name of an empty collection, and what is in it."""
    match statement:
        case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, value):
            pass
        case _:
            return None
    match value:
        case ast.List([]):
            return name, "list"
        case ast.Call(ast.Name("set" | "list" as kind), []):
            return name, kind
        case ast.Call(
            ast.Name("defaultdict") | ast.Attribute(_, "defaultdict"),
            [ast.Name("list" | "set" | "int" as kind)],
        ):
            return name, f"of {kind}"
        case _:
            return None


def _filled(loop: ast.For) -> Made | None:
    """What a loop puts where, if that is all that it does."""
    generators: list[ast.comprehension] = []
    inner: ast.stmt = loop
    while True:
        match inner:
            case ast.For(target, iter, [only], []):
                generators.append(ast.comprehension(target, iter, [], 0))
                inner = only
            case ast.If(test, [only], []):
                generators[-1].ifs.append(test)
                inner = only
            case ast.Expr(ast.Call(ast.Attribute(into, "append" | "add"), [value], [])):
                return _into(into, generators, value)
            case ast.AugAssign(ast.Subscript() as into, ast.Add(), value):
                return _into(into, generators, value)
            case _:
                return None


def _into(into: ast.expr, generators: list[ast.comprehension], value: ast.expr) -> Made | None:
    match into:
        case ast.Name(name):
            return name, generators, None, value
        case ast.Subscript(ast.Name(name), key):
            return name, generators, key, value
        case _:
            return None


def _expression(kind: str, made: Made, loop: ast.For) -> ast.expr | None:
    """The comprehension of a loop, which fits what it fills."""
    _, generators, key, value = made
    if (key is not None) != kind.startswith("of"):
        return None
    found: ast.expr
    if key is None:
        found = (ast.ListComp if kind == "list" else ast.SetComp)(value, generators)
    else:
        pair = ast.copy_location(ast.Tuple([key, value], ast.Load()), value)
        pairs = ast.copy_location(ast.GeneratorExp(pair, generators), loop)
        name = {"of list": "%groups", "of set": "%sets", "of int": "%sums"}[kind]
        called = ast.copy_location(ast.Name(name, ast.Load()), loop)
        found = ast.Call(called, [pairs], [])
    return ast.copy_location(found, loop)
