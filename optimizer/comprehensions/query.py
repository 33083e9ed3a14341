"""Read a callable with queries in it: a callable of a relation, a function, or a generator."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from types import FunctionType, MappingProxyType
from typing import Any, Literal, TypeAlias

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.callables.syntax import NoSyntax, shared_syntax_of
from optimizer.comprehensions import consumers, generators, rows, touching
from optimizer.comprehensions.consumers import Engine
from optimizer.comprehensions.reading import QueryReader
from optimizer.comprehensions.rows import (
    LOST,
    ONE_ROW,
    UNIQUE,
    Rows,
    as_set,
    may_lose_order,
    plan_of_window,
    refusal_at,
    relation,
    select_value,
    standing_of,
)
from optimizer.errors import PlanError
from optimizer.expr import (
    Expr,
    Lifted,
    Parameter,
    SlotValue,
    Subquery,
    Within,
    all_parameters,
    row_names,
    walk,
)
from optimizer.expressions.knowledge import Shapes
from optimizer.lifting.lift import Origin, Reader, Unreadable, read_callable_as_expr, tree_of
from optimizer.lifting.readings import Itself, kin_with, replace_captured_values
from optimizer.plans.check_reads import check_every_read
from optimizer.plans.substitution import Recipe, UnknownPlace
from optimizer.record import record

Kind: TypeAlias = Literal["rows", "set", "mapping", "order", "value"]
ITERATED = ("unnest", "select_many")
"""Roles of callables whose result is iterated over, in any order."""
NOTHING: Mapping[int, Rows] = MappingProxyType({})
MOST_RECIPES = 256
"""Functions that are noted for a database."""
FIRST = ".0"
"""The name of the first source of a generator."""


@record
class Query:
    """The plan of a query, the kind of collection of its rows, and the relations that it reads."""

    node: plan.Node
    kind: Kind
    sources: tuple[Any, ...]


def read_callable(
    function: Opaque, shapes: Shapes, engine: Engine, inside: Mapping[int, Rows] = NOTHING
) -> tuple[Lifted, list[Any]]:
    """Return a callable that reads relations as an expression with sub-queries, and these
    relations.

    `inside` are parameters that stand for rows of queries, which read the others as `arguments`.

    Raises
    ------
    PlanError: it cannot be read, or its result cannot be updated when rows change.
    """
    reading = QueryReader(engine, function, shapes)
    origin = Origin(function, shapes, queries=reading)
    arguments: tuple[Expr, ...] = all_parameters(function.parameters)
    if inside:
        scope = reading.scope
        arguments = tuple(
            replace(inside[i], scope=scope) if i in inside else e for i, e in enumerate(arguments)
        )
    try:
        body, names = read_callable_as_expr(function.function, origin, arguments)
    except (Unreadable, RecursionError) as unreadable:
        raise _unreadable_error(function, unreadable) from None
    if isinstance(body, Rows):
        reader = _reader_of(function, origin)
        is_spread = function.role in ITERATED and body.kind in ("list", "iterator")
        body = (
            reading.collect_rows(body)
            if is_spread
            else reading.scalar(body, _returned_expression(function), reader)
        )
    _check_finished(function, body)
    names = names or row_names(function.parameters)
    lifted = Lifted(body, names, (function,), function.parameters)
    return lifted, list(reading.sources.values())


def read_function(function: Opaque, engine: Engine, written: Any) -> Query:
    """Return the query of a function without parameters, which was written as `written`.

    Raise `PlanError` if it cannot be read.
    """
    reading = QueryReader(engine, function, ())
    origin = Origin(function, (), queries=reading)
    called = function.function
    if not isinstance(called, FunctionType):
        raise PlanError(
            f"{function.role}: {function} is no Python function\n"
            "  write def ...(): return [... for ... in ...], or a lambda"
        )
    reader = Reader(called, origin, {})
    try:
        tree = tree_of(called)
        reading.results |= set(map(id, _results(tree)))
        result = rows.read_definition(
            called, lambda: reader.body(tree), reading, reader, written=written
        )
    except (Unreadable, RecursionError) as unreadable:
        raise _unreadable_error(function, unreadable) from None
    return _build_query(function, result, reading, reader)


def read_generator(function: Opaque, first: Any, engine: Engine) -> Query:
    """Return the query of a generator expression, as a function of its first source.

    Raise `PlanError` if it cannot be read.
    """
    reading = QueryReader(engine, function, ())
    origin = Origin(function, (), queries=reading)
    called: Any = function.function
    tree = shared_syntax_of(called.__code__, called.__globals__)
    if isinstance(tree, NoSyntax):
        raise _unreadable_error(function, Unreadable(tree.reason, tree.remedy))
    assert isinstance(tree, ast.GeneratorExp)
    source = engine.plan_of(first)
    assert source is not None
    reading.sources[id(first)] = first
    reading.results.add(id(tree))
    reader = Reader(called, origin, {FIRST: relation(source, "row")})
    try:
        result = generators.comprehension(tree, reader, reading)
    except (Unreadable, RecursionError) as unreadable:
        raise _unreadable_error(function, unreadable) from None
    return _build_query(function, result, reading, reader)


class FunctionRecipes:
    """The recipes of the functions of a database that were read before.

    The second time that a function is read, slots stand for the values of its plain variables.
    Then functions that differ in these values get copies of that plan.
    """

    def __init__(self, is_table: Callable[[Any], bool]) -> None:
        self._is_table = is_table
        self._noted: dict[Hashable, Recipe | Literal["seen", "hopeless"]] = {}

    def find(
        self, function: Opaque, called: Opaque, read: Callable[[Opaque], Query], *around: object
    ) -> Query:
        """Return the query of a function by its recipe, or as `read` reads it.

        Parameters
        ----------
        function: the function, with all its captures.
        called: the function that is read, possibly without a capture of its own name.
        around: further relations that the query reads.
        """
        kin = kin_with(function, self._is_table)
        if kin is None or not kin.values or not all(map(self._is_table, around)):
            return read(called)
        key, values = (kin.key, *map(Itself, around)), dict(kin.values)
        noted = self._noted.get(key)
        if noted is None:
            if len(self._noted) >= MOST_RECIPES:
                self._noted.pop(next(iter(self._noted)), None)
            self._noted[key] = "seen"
        elif noted == "seen":
            noted = self._noted[key] = _learn_recipe(called, values, read) or "hopeless"
        if not isinstance(noted, Recipe):
            return read(called)
        found = noted.copy(tuple(values.values()), (called,))
        return read(called) if found is None else Query(*found, ())


def _learn_recipe(
    function: Opaque, values: Mapping[str, Any], read: Callable[[Opaque], Query]
) -> Recipe | None:
    """Return the recipe of a function; None if its reading depends on a value, or fails."""
    held = {name: SlotValue(value) for name, value in values.items()}
    tagged = replace_captured_values(function, held)
    try:
        found = read(tagged)
        check_every_read(found.node)
        if any(each.is_asked or each.computed for each in held.values()):
            return None
        recipe = Recipe(found.node, found.kind, tuple(held.values()), (tagged,))
        copied, plain = recipe.copy(tuple(values.values()), (function,)), read(function)
        return recipe if copied == (plain.node, plain.kind) else None
    except UnknownPlace:
        return None
    except (PlanError, TypeError):  # raised again by the reading without slots
        return None


def _build_query(function: Opaque, result: Expr, reading: QueryReader, reader: Reader) -> Query:
    """Return the query of a lifted result: its plan, kind and sources.

    Raise `PlanError` if it reads no relation, or if a value of rows decides which rows it gives.
    """
    if generators.is_part(result):
        result = generators.of_sequence(result, reader, reading)
    if isinstance(result, Rows):
        result = reading.of_outside(result)
    sources = tuple(reading.sources.values())
    called: Any = function.function
    if not sources and not touching.reads_relations(called, reading):
        raise PlanError(
            f"{function.role}: {function} reads no relation\n"
            "  a query is over tables, relations or views that it names"
        )
    if not isinstance(result, Rows):
        _check_finished(function, result)
        return Query(_of_value(result, reading), "value", sources)
    node, kind = _plan_of(function, result, reading, reader)
    return Query(node, kind, sources)


def _of_value(value: Expr, reading: QueryReader) -> plan.Node:
    """Return a relation of one row, the value."""
    if isinstance(value, Subquery) and value.kind == "value" and not value.arguments:
        found: plan.Node = value.query
        return found
    row = plan.Select(ONE_ROW, Lifted(value, ("one",), reading.origins, 1))
    return reading.freed(row)


def _plan_of(
    function: Opaque, rows: Rows, reading: QueryReader, reader: Reader
) -> tuple[plan.Node, Kind]:
    """Return the plan of result rows, and its kind; refuse lists that lost their order, and bare
    `items()`."""
    origins = reading.origins
    match rows.kind:
        case "set":
            return as_set(rows, origins).node, "set"
        case "dict":
            return _mapping_rows(consumers.group_rows(rows, reading), reading), "mapping"
        case "groups":
            return consumers.group_rows(rows, reading, "Collect").node, "mapping"
        case "sorted":
            return _plan_ordered_rows(rows, reading), "order"
        case "list" | "iterator" if standing_of(rows) is not None:
            return _plan_ordered_rows(rows, reading), "order"
        case "list" | "iterator" if not may_lose_order(rows):
            raise refusal_at(_returned_expression(function), reader, *LOST)
        case "items":
            raise refusal_at(_returned_expression(function), reader, "are groups", consumers.ITEMS)
        case _:
            made = rows if rows.is_whole else select_value(rows, origins)
            return plan_of_window(made, origins), "rows"


def _mapping_rows(rows: Rows, reading: QueryReader) -> plan.Node:
    """Return the rows of a mapping, one for each key."""
    if rows.row == consumers.PAIR and rows.joined is None:
        return rows.node
    joined = None if rows.joined is UNIQUE else rows.joined
    return consumers.group_rows(replace(rows, joined=joined), reading).node


def _plan_ordered_rows(rows: Rows, reading: QueryReader) -> plan.Node:
    """Return the plan of ordered rows."""
    standing = standing_of(rows)
    assert standing is not None
    limit, offset = (None, 0) if rows.order is None else (rows.order.limit, rows.order.offset)
    keys = [plan.SortKey(reading.function(e, rows), *how) for e, *how in standing.keys]
    if rows.is_whole:
        return plan.OrderBy(rows.node, tuple(keys), limit, offset)
    hidden = [key.function for key in keys]
    beside = plan.Extend(rows.node, (), (reading.function(rows.value, rows), *hidden))
    count = 1 + len(keys)
    by = [
        replace(key, function=reading.function_of(Parameter(place), count))
        for place, key in enumerate(keys, 1)
    ]
    return plan.OrderBy(beside, tuple(by), limit, offset, shown=1)


def _check_finished(function: Opaque, body: Expr) -> None:
    """Raise `PlanError` if part of a result without rows still reads rows."""
    for part in walk(body):
        if isinstance(part, Rows | Within):
            raise PlanError(
                f"{function.role}: which rows {function} gives depends on a value of rows\n"
                "  have the test in the comprehension: [... for ... in rows if test]"
            )


def _unreadable_error(function: Opaque, unreadable: BaseException) -> PlanError:
    """Return the error for a callable that reads relations and cannot be lifted, with a remedy."""
    reason, *hint = unreadable.args if isinstance(unreadable, Unreadable) else ("it is too deep",)
    remedy = hint[0] if hint else "write it as one expression, or as names, choices and returns"
    return PlanError(
        f"{function.role}: {function} reads relations, and cannot be read: {reason}\n  {remedy}"
    )


def _reader_of(function: Opaque, origin: Origin) -> Any:
    called: Any = function.function
    return Reader(called, origin, {})


def _results(tree: ast.Lambda | ast.FunctionDef) -> list[ast.expr]:
    """Return the expressions that a function may return."""
    if isinstance(tree, ast.Lambda):
        return [tree.body]
    returns = [each for each in ast.walk(tree) if isinstance(each, ast.Return)]
    return [each.value for each in returns if each.value is not None]


def _returned_expression(function: Opaque) -> ast.expr:
    """Return the expression that a function returns, for messages."""
    called: Any = function.function
    tree = shared_syntax_of(called.__code__, called.__globals__)
    if isinstance(tree, ast.Lambda):
        return tree.body
    if isinstance(tree, ast.FunctionDef) and isinstance(tree.body[-1], ast.Return):
        return tree.body[-1].value or ast.Constant(None)
    return ast.Name(function.name)
