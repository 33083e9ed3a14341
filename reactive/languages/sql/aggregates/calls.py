"""A call of an aggregate as it is written, and the folds that aggregates are made of.

sum(distinct x) filter (where p)         argument x, distinct, test true(p)
percentile_cont(0.5) within group (order by x)     arguments x and 0.5, order x
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeAlias

from sqlglot import exp

from optimizer import plan
from optimizer.expr import NONE, Call, Conditional, Constant, Expr, conjunction, constant, tuple_of
from optimizer.record import record
from reactive.api.aggregates import Aggregation, Count, Sum, folded
from reactive.engine.operators.accumulators import CollectAccumulator
from reactive.languages.sql.expressions.casts import cast
from reactive.languages.sql.sqlite.comparisons import is_number, mapped
from reactive.languages.sql.sqlite.values import addend
from reactive.languages.sql.terms.arguments import peek, take
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import ANY, FLOAT, INT, SqlType
from reactive.languages.sql.terms.values import Value, callee, itself, present, whole


@record
class Aggregated:
    """The folds of an aggregate, and its value of their results, which are in that order."""

    folds: tuple[plan.Folded, ...]
    result: Callable[[tuple[Expr, ...]], Value] = field(compare=False)


@record
class Asked:
    """A call of an aggregate: its arguments, and what is written around them."""

    node: Any
    scope: Scope
    arguments: tuple[exp.Expr, ...]
    distinct: bool
    order: tuple[exp.Expr, ...]
    test: Expr | None
    grouped: bool
    in_order: bool = False
    """True if the values come in the order of a window, which has the place of one of its own."""
    taken: set[int] = field(default_factory=set, compare=False)
    """The places of the arguments that were read."""

    def value(self, place: int = 0) -> Value:
        """An argument, NULL where FILTER leaves the row out."""
        if place >= len(self.arguments):
            raise self.scope.error(self.node, f"{name_of(self.node)} needs one more argument")
        self.taken.add(place)
        return self.only(self.scope.value(self.arguments[place]))

    def only(self, value: Value) -> Value:
        """A value where FILTER lets it be."""
        if self.test is None:
            return value
        return itself(Conditional(self.test, whole(value), NONE), value.type)

    def constant(self, place: int) -> Any:
        """An argument that must be constant."""
        self.taken.add(place)
        expr = whole(self.scope.value(self.arguments[place]))
        if isinstance(expr, Constant):
            return expr.value
        items = [each.value for each in getattr(expr, "items", ()) if isinstance(each, Constant)]
        if not items:
            raise self.scope.error(self.node, "this argument has to be constant")
        return tuple(items)


Maker: TypeAlias = Callable[[Asked], Aggregated]
"""Makes the folds of a call; those of an aggregate are one line of a table."""


def asked_of(node: Any, scope: Scope, *, grouped: bool) -> Asked:
    """What is written of an aggregate: FILTER, DISTINCT, ORDER BY, WITHIN GROUP."""
    test: Expr | None = None
    within: tuple[exp.Expr, ...] = ()
    while isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        if isinstance(node, exp.IgnoreNulls | exp.RespectNulls) and not _is_any_value(node):
            remedy = "write FILTER (WHERE x IS NOT NULL)"
            raise scope.error(node, "IGNORE NULLS and RESPECT NULLS are not of aggregates", remedy)
        if isinstance(node, exp.Filter):
            test = scope.true(node.expression.this)
        elif isinstance(node, exp.WithinGroup):
            within = tuple(node.expression.expressions)
        node = node.this
    arguments, distinct, order = _arguments(node)
    if any(isinstance(each, exp.Star) for each in arguments):
        if len(arguments) > 1:
            raise scope.error(node, f"{name_of(node)}() takes nothing beside *")
        take(arguments[0])
        arguments = ()
    if within:  # percentile_cont(0.5) within group (order by x) is quantile_cont(x, 0.5)
        arguments = (within[0].this, *arguments)
        order = within
    return Asked(node, scope, arguments, distinct, order, test, grouped)


def _is_any_value(node: Any) -> bool:
    """Return True for ANY_VALUE, which the parser wraps in IGNORE NULLS."""
    return isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue)


def _arguments(node: Any) -> tuple[tuple[exp.Expr, ...], bool, tuple[exp.Expr, ...]]:
    names = ("expressions",) if isinstance(node, exp.Anonymous) else tuple(node.arg_types)
    found: list[exp.Expr] = []
    distinct, order = False, tuple[exp.Expr, ...]()
    for name in names:
        given = peek(node, name)
        parts = given if isinstance(given, list) else [given]
        for place, each in enumerate(parts):
            if isinstance(each, exp.Expr):
                asked = node.args.get(name)  # which is read now
                each = asked[place] if parts is given else asked
            if isinstance(each, exp.Order):
                order, each = tuple(each.expressions), each.this
            if isinstance(each, exp.Distinct):
                distinct = True
                inside = each.expressions
                if len(inside) == 1 and isinstance(inside[0], exp.Order):
                    order, inside = tuple(inside[0].expressions), [inside[0].this]
                found += inside
            elif isinstance(each, exp.Expr):
                found.append(each)
    return tuple(found), distinct, order


def name_of(node: Any) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()


def fold(aggregate: Aggregation[Any], of: Value | None, scope: Scope) -> plan.Folded:
    """An aggregate of the API as the plan holds it, of a value of the rows."""
    return folded(aggregate, lambda function, role: _function(of, scope))


def _function(of: Value | None, scope: Scope) -> Any:
    assert of is not None
    return scope.function(whole(of))


def nothing(*row: Any) -> Any:
    """Stands where the plan has an expression."""


def count_of(of: Value, scope: Scope) -> plan.Folded:
    """How many values are not NULL."""
    if not of.nullable:
        return fold(Count(), None, scope)
    one = Conditional(conjunction(present(of)), constant(1), constant(0))
    return fold(Sum(nothing), Value(one, INT), scope)


def collected(of: Value, scope: Scope) -> plan.Folded:
    """All values, without NULL."""
    accumulator = CollectAccumulator(of.nullable)
    return plan.Folded("Collect", accumulator, _function(of, scope), (), of.nullable)


def pair(*values: Value) -> Value:
    """Several values as a tuple, NULL where one is."""
    packed = tuple_of(*(value.expr for value in values))
    tests = present(*values)
    if not tests:
        return Value(packed, SqlType("struct", items=tuple(v.type for v in values)))
    return itself(Conditional(conjunction(tests), packed, NONE), ANY)


def number(asked: Asked, place: int = 0) -> Value:
    """An argument that is added up; a text is a number where the dialect says so."""
    value = asked.value(place)
    if asked.scope.dialect.numeric_booleans:
        return value if is_number(value.type) else mapped(addend, FLOAT, value)
    if value.type.kind == "text":
        value = cast(value, FLOAT, asked.scope)
    return value


def of_values(function: Callable[..., Any], of: Value, kind: SqlType, scope: Scope) -> Aggregated:
    return Aggregated(
        (collected(of, scope),),
        lambda found: itself(Call(callee(function), found), kind),
    )


@record
class OfDifferent:
    """A function of values, given each of them once."""

    function: Callable[..., Any]

    def __call__(self, values: Any) -> Any:
        return self.function(set(values))


@record
class Of:
    """A function of values, given more besides."""

    function: Callable[..., Any]
    more: tuple[Any, ...]

    def __call__(self, values: Any) -> Any:
        return self.function(values, *self.more)
