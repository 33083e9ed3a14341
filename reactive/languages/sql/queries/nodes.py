"""Plan nodes of expressions, without the sub-queries in these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    TRUE,
    Call,
    Constant,
    Expr,
    Item,
    Lifted,
    Parameter,
    all_parameters,
    constant,
    has_subquery,
    tuple_of,
)
from optimizer.expressions.naming import Naming
from optimizer.plans.nodes import values as written_out
from optimizer.subqueries import freed as subqueries
from optimizer.subqueries import lateral as correlated
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.zset import canonical
from reactive.errors import ReactiveError
from reactive.languages.sql.expressions.casts import assigned
from reactive.languages.sql.runtime.elements import elements, elements_or_none
from reactive.languages.sql.terms.schema import Schema, record_of, schema_of_values
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import INT, SqlType, fields_of
from reactive.languages.sql.terms.values import Value, whole


def filtered(node: plan.Node, scope: Scope, test: Expr) -> plan.Node:
    """The rows for which a condition is true."""
    return node if test == TRUE else freed(plan.Where(node, scope.function(test)))


def freed(node: plan.Node) -> plan.Node:
    """A node whose callables may have sub-queries, without any."""
    return subqueries.freed(node, of_no_rows=_of_no_rows, canonical=canonical, in_order=False)


def _of_no_rows(folded: plan.Folded) -> Any:
    """What an aggregate shows of no rows."""
    return folded.accumulator.result(folded.accumulator.zero())


def reads_query(value: Value) -> bool:
    """Whether a value is computed of a sub-query."""
    return has_subquery(value.expr)


def columns_before(node: plan.Node, scope: Scope, columns: Sequence[Expr]) -> plan.Node:
    """The bindings of a plan, with columns behind them that sub-queries give."""
    functions = tuple(map(scope.function, columns))
    return freed(plan.Extend(node, tuple(range(scope.bindings)), functions))


def lateral(
    left: plan.Node,
    query: plan.Node,
    scope: Scope,
    arguments: tuple[Expr, ...],
    kind: Literal["inner", "left"],
) -> plan.Node:
    """Rows beside those that a query has for them."""
    return correlated.lateral(
        left,
        query,
        arguments,
        kind,
        of_no_rows=_of_no_rows,
        canonical=canonical,
        in_order=False,
        names=scope.names,
    )


def selected(
    node: plan.Node, scope: Scope, names: Sequence[str], values: Sequence[Value]
) -> tuple[plan.Node, Schema]:
    """The rows of a SELECT."""
    schema, kind = schema_of_values(names, values)
    columns = tuple(whole(value) for value in values)
    function = scope.function(record_of(kind, columns))
    if columns == all_parameters(scope.bindings):
        function = _naming(function, kind)
    return freed(plan.Select(node, function)), schema


def _naming(function: Lifted, kind: Any) -> Lifted:
    """A row of all bindings, which an aggregate can make at once."""
    naming = Naming(kind, kind._fields, True)
    name, place = f"Row({', '.join(kind._fields)})", function.place
    identity = ("named", function.body)
    made = Opaque(naming, function.parameters, name, place, (), identity, "select")
    return replace(function, made=made)


def unnested(
    node: plan.Node,
    scope: Scope,
    arrays: Sequence[Value],
    kinds: Sequence[SqlType],
    place: int,
    *,
    offset: bool,
    outer: bool,
) -> tuple[plan.Node, list[Value]]:
    """One binding more for each element of an array; of several arrays, side by side, a tuple.

    With `offset` the number of the element comes last, from 1 on. An `outer` one gives NULL where
    there are no elements.
    """
    function = elements_or_none if outer else elements
    call = Call(constant(function), (constant(offset), *(whole(array) for array in arrays)))
    made = freed(plan.Unnest(node, scope.function(call)))
    element = Parameter(place)
    if len(arrays) == 1 and not offset:
        return made, [Value(element, kinds[0], (element,))]
    kinds = [*kinds, *([INT] if offset else [])]
    items = [Item(element, constant(n)) for n in range(len(kinds))]
    return made, [Value(i, kind, (i,)) for i, kind in zip(items, kinds, strict=True)]


def unnested_value(argument: Any, scope: Scope) -> Value:
    """Return the argument of UNNEST.

    Raises
    ------
    PlanError: it is a struct or an object, which has fields and no elements.
    """
    value = scope.value(argument)
    if fields_of(value.type):
        raise scope.error(argument, "a struct has no elements to unnest", "name its fields")
    return value


def one_row() -> plan.Node:
    """A row without columns: what a SELECT without FROM reads."""
    return literal_rows([()])


def literal_rows(rows: Sequence[tuple[Any, ...]]) -> plan.Node:
    """Rows that are written out, which are tuples."""
    return written_out.values(rows)


def evaluated_constant(node: Any, scope: Scope, kind: SqlType | None = None) -> Any:
    """Return what an expression without columns gives, as a value of a type.

    Raises
    ------
    PlanError: it reads a query, or cannot be evaluated.
    """
    value = scope.value(node) if kind is None else assigned(scope.value(node), kind, scope)
    if reads_query(value):
        raise scope.error(node, "a sub-query stands where a constant is needed")
    with failures_told(node, scope):
        return constant_of(value)


@contextmanager
def failures_told(node: Any, scope: Scope) -> Iterator[None]:
    """Raise a `PlanError` with the place of a node where evaluating it fails."""
    try:
        yield
    except ReactiveError:
        raise
    except Exception as error:
        raise scope.error(node, f"this cannot be evaluated: {error}") from error


@contextmanager
def misreadings_told(node: Any, scope: Scope) -> Iterator[None]:
    """Raise a `PlanError` with the place of a node that has not the parts of its kind."""
    try:
        yield
    except ReactiveError:
        raise
    except Exception as error:
        raise scope.misread(node, error) from error


def constant_of(value: Value) -> Any:
    """Return what an expression without columns gives."""
    expr = whole(value)
    return expr.value if isinstance(expr, Constant) else callable_of(Lifted(expr, (), (), 0))()


def key_of(values: Sequence[Value]) -> Expr:
    """What rows are grouped by: a value, or a tuple of several."""
    wholes = [whole(value) for value in values]
    return wholes[0] if len(wholes) == 1 else tuple_of(*wholes)


def keys_of(values: Sequence[Value], key: Expr) -> list[Value]:
    """The values again, of their key."""
    places = [key] if len(values) == 1 else [Item(key, constant(n)) for n in range(len(values))]
    return [
        Value(place, value.type, (place,) if value.nullable else ())
        for place, value in zip(places, values, strict=True)
    ]
