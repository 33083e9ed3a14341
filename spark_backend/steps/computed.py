"""Keys and values of an aggregate that only Python computes, computed before it, row by row.

    aggregate Sum(f(o)) by g(o)    ->    aggregate Sum(r[1]) by r[0]
                                           select (g(o), f(o))        in Python workers

So what is opaque stays out of the state, and the aggregate is of columns.

Sound:  each function is asked of each row once, as before; those that a type is known of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import functions as F

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    Apply,
    Expr,
    Function,
    Item,
    Lifted,
    Parameter,
    all_parameters,
    constant,
    tuple_of,
)
from optimizer.plans.properties import bindings
from reactive.engine.operators.accumulators import CountAccumulator
from spark_backend.codec.columns import value_of
from spark_backend.codec.schema import Typed
from spark_backend.codec.values import Inexact, Value
from spark_backend.steps.keys import bound


def with_computed(node: plan.Aggregate, kept: Typed) -> plan.Aggregate:
    """The same over a select of what it reads; itself, if columns have all of that.

    Parameters
    ----------
    kept: what the rows of its input are.
    """
    count = bindings(node.input)
    row = bound(Value(F.col("row"), kept), count)
    read = [f for f in (node.key, *(folded.value for folded in node.aggregates)) if f is not None]
    distinct = list(dict.fromkeys(read))
    reads_row = any(f.value is None and not _is_count(f) for f in node.aggregates)
    if reads_row or all(_is_column(function, row) for function in distinct):
        return node
    items = tuple(_body(function, count) for function in distinct)
    selected = Lifted(tuple_of(*items), _names(distinct, count), _origins(distinct), count)
    places = {function: _item(place) for place, function in enumerate(distinct)}
    folded = tuple(
        f if f.value is None else replace(f, value=places[f.value]) for f in node.aggregates
    )
    key = None if node.key is None else places[node.key]
    return replace(node, input=plan.Select(node.input, selected), key=key, aggregates=folded)


def _is_count(folded: plan.Folded) -> bool:
    return isinstance(folded.accumulator, CountAccumulator)


def _is_column(function: Function, row: Sequence[Value]) -> bool:
    try:
        value_of(function, row)
    except Inexact:
        return False
    return True


def _body(function: Function, count: int) -> Expr:
    if isinstance(function, Opaque):
        return Apply(function, all_parameters(count))
    return function.body


def _names(functions: Sequence[Function], count: int) -> tuple[str, ...]:
    named = next((f.names for f in functions if isinstance(f, Lifted)), None)
    return named or tuple(f"row{place}" for place in range(count))


def _origins(functions: Sequence[Function]) -> tuple[Opaque, ...]:
    each = ((f,) if isinstance(f, Opaque) else f.origins for f in functions)
    return tuple(origin for several in each for origin in several)


def _item(place: int) -> Lifted:
    return Lifted(Item(Parameter(0), constant(place)), ("row",), (), 1)
