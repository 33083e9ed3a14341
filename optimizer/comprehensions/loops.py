"""Statements of functions in a query: loops that fill a collection, and names for parts of it.

`as_expressions` rewrites loops that fill a collection to comprehensions.

    groups = defaultdict(list)
    for o in orders:                    ->      groups = %groups((o.cid, o.total) for o in orders)
        groups[o.cid].append(o.total)

`defaultdict(set)` with `add`, `defaultdict(int)` with `+=`, lists with `append` and sets with `add`
are read likewise; the one statement may be in several loops, each with an `if`.

`after` computes a named part of a query at its assignment, or where the name is read.

    total = sum(o.total for o in orders)        an expression, which replaces the name
    owed = {o.cid for o in orders}              rows, which replace the name
    worst = max(o.total for o in orders)        raises without orders, even if it is not read:
    return [...]                                it is computed before the rows

Sound:  a value that cannot raise, or is always read, need not be computed before.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from optimizer import plan
from optimizer.comprehensions.generators import reads_no_row
from optimizer.comprehensions.rows import ONE_ROW, Rows, select_value, standing_of
from optimizer.expr import (
    TRUE,
    Expr,
    First,
    Outer,
    Parameter,
    Subquery,
    items_of,
    transform,
    tuple_of,
    walk,
)
from optimizer.expressions.knowledge import total
from optimizer.expressions.text import over
from optimizer.plans.properties import bindings, shapes
from optimizer.subqueries.raising import is_quiet

Made: TypeAlias = tuple[str, list[ast.comprehension], ast.expr | None, ast.expr]
"""A name, and the generators, the key and the value of the collection that it names."""


def as_expressions(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """Replace each loop that only fills a collection by the assignment of a comprehension.

    The statement that made the collection empty becomes `pass`. Other statements are unchanged, and
    so is a loop if a statement between the two mentions its collection.
    """
    made: list[ast.stmt] = []
    begun: dict[str, tuple[str, int]] = {}
    for statement in body:
        if not isinstance(statement, ast.For):
            for name in [name for name in begun if _count_name(statement, name)]:
                del begun[name]
        started = _match_empty_collection(statement)
        if started is not None:
            begun[started[0]] = (started[1], len(made))
        elif isinstance(statement, ast.For):
            found = _match_filling_loop(statement)
            if found is not None and found[0] in begun and _count_name(statement, found[0]) == 1:
                kind, place = begun.pop(found[0])
                value = _expression(kind, found, statement)
                if value is not None:
                    made[place] = ast.copy_location(ast.Pass(), statement)
                    target = ast.copy_location(ast.Name(found[0], ast.Store()), statement)
                    statement = ast.copy_location(ast.Assign([target], value), statement)
        made.append(statement)
    return made


def _count_name(statement: ast.stmt, name: str) -> int:
    """Return the number of times that a statement has a name."""
    return sum(isinstance(each, ast.Name) and each.id == name for each in ast.walk(statement))


def _match_empty_collection(statement: ast.stmt) -> tuple[str, str] | None:
    """Return the name that a statement sets to an empty collection, and the kind of the collection.

    The kind is "list" or "set"; or "of list", "of set" or "of int" for a `defaultdict`. Return None
    for other statements.
    """
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


def _match_filling_loop(loop: ast.For) -> Made | None:
    """Return the name that a loop fills, and its generators, key and value.

    Return None if the loop does anything else, or has an `else`.
    """
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
    """Return what a loop fills: name, generators, key or None, value; None for any other target."""
    match into:
        case ast.Name(name):
            return name, generators, None, value
        case ast.Subscript(ast.Name(name), key):
            return name, generators, key, value
        case _:
            return None


def _expression(kind: str, made: Made, loop: ast.For) -> ast.expr | None:
    """Return the expression that computes the collection of a loop, by a comprehension.

    Return None if the loop gives keys to a list or a set, or none to a `defaultdict`.
    """
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


def after(name: str, value: Expr, then: Expr, rest: Sequence[ast.stmt], reading: Any) -> Expr:
    """Return `then`, the expression after an assignment, preceded by the assigned value if needed.

    The value is needed if computing it may raise, and the `rest` does not always read it.
    """
    if _is_read(name, rest) or _is_quiet_value(value, reading):
        return then
    need = _count_as_computation(value, reading) if isinstance(value, Rows) else value
    if not isinstance(then, Rows):
        return First((need,), then)
    if then.arguments or not reads_no_row(need):
        return _of_each(need, then, reading)
    once = plan.Where(ONE_ROW, reading.function_of(First((need,), TRUE), 1))
    node = plan.Product(reading.freed(once), then.node)
    width = bindings(then.node)
    if then.is_whole and width == 1:
        both = reading.function_of(Parameter(1), 2, ("once", "row"))
        made = plan.Select(node, both)
        standing = None if standing_of(then) is None else then.standing
        standing = standing and replace(standing, node=made)
        return replace(then, node=made, standing=standing or then.standing)
    own = (Parameter(1),) if width == 1 else items_of(Parameter(1), width)
    order = then.order and then.order.over([over(key, own) for key in then.order.exprs])
    standing = standing_of(then) if order is None else None
    if standing is not None:
        keys = tuple((over(key, own), *how) for key, *how in standing.keys)
        standing = replace(standing, node=node, keys=keys)
    row = tuple(over(e, own) for e in then.row)
    return replace(
        then,
        node=node,
        row=row,
        names=("once", "row"),
        order=order,
        standing=standing or then.standing,
    )


def _of_each(need: Expr, then: Rows, reading: Any) -> Rows:
    """Return the rows `then`; for each of them, `need` is computed before."""
    arguments = tuple(reading.scope.adopt(e, then.scope) for e in then.arguments)
    needed = need if reads_no_row(need) else Outer(len(arguments))
    given = arguments if reads_no_row(need) else (*arguments, need)
    rows = replace(then, scope=reading.scope, arguments=given)
    return reading.where(rows, First((needed,), TRUE))  # type: ignore[no-any-return]


def _count_as_computation(rows: Rows, reading: Any) -> Expr:
    """Return an expression that raises like the computation of the rows."""
    value = rows.value if len(rows.row) == 1 else tuple_of(*rows.row)
    made = select_value(replace(rows, row=(value,)), reading.origins)
    return reading.fold_rows(made, "Count", None)  # type: ignore[no-any-return]


def _is_quiet_value(value: Expr, reading: Any) -> bool:
    """Return True if computing a value raises nothing."""
    if isinstance(value, Rows):
        known = shapes(value.node)
        return is_quiet(value.node) and all(total(e, known) for e in value.row)
    queries = [part for part in walk(value) if isinstance(part, Subquery)]
    every = [value, *(argument for query in queries for argument in query.arguments)]
    rest = [transform(e, lambda e: TRUE if isinstance(e, Subquery) else e) for e in every]
    return all(is_quiet(q.query) for q in queries) and all(total(e, reading.shapes) for e in rest)


def _is_read(name: str, rest: Sequence[ast.stmt]) -> bool:
    """Return True if the statements that follow always read a name."""
    for statement in rest:
        match statement:
            case ast.Return(ast.expr() as value) | ast.Assign(_, value):
                if _surely_reads(value, name):
                    return True
            case ast.AnnAssign(_, _, ast.expr() as value):
                if _surely_reads(value, name):
                    return True
            case _:
                return False
    return False


def _surely_reads(node: ast.AST, name: str) -> bool:
    """Return True if evaluating a part always evaluates a name."""
    match node:
        case ast.Name(found):
            return found == name
        case ast.BoolOp(_, [first, *_]):
            return _surely_reads(first, name)
        case ast.IfExp(test):
            return _surely_reads(test, name)
        case ast.Lambda():
            return False
        case ast.Compare(left, _, [right, *_]):
            return _surely_reads(left, name) or _surely_reads(right, name)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return _surely_reads(node.generators[0].iter, name)
        case _:
            return any(_surely_reads(each, name) for each in ast.iter_child_nodes(node))
