"""Functions that choose among values, or tell of one: COALESCE, NULLIF, GREATEST, TYPEOF."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import FALSE, NONE, TRUE, Call, Conditional, Expr, conjunction, constant
from reactive.languages.sql.expressions.casts import aligned, applied, equal_types
from reactive.languages.sql.expressions.comparisons import comparison
from reactive.languages.sql.functions.calls import Maker, arguments
from reactive.languages.sql.postgres.resolution import operands
from reactive.languages.sql.runtime import nulls, rows
from reactive.languages.sql.terms.types import sql_name
from reactive.languages.sql.terms.values import (
    NULL_VALUE,
    Value,
    is_null,
    is_simple,
    itself,
    literal,
    present,
    whole,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope


def chosen(
    branches: list[tuple[Expr, Value]], otherwise: Value, scope: Scope, node: exp.Expr
) -> Value:
    """The value of the first branch whose test is true, or the last."""
    tests = [test for test, _ in branches]
    values = (otherwise, *(value for _, value in branches))
    values, kind = equal_types(
        values, scope, node
    )  # the fields of structs begin with those of ELSE
    made = whole(values[0])
    for test, value in zip(reversed(tests), reversed(values[1:]), strict=True):
        made = value_if(test, whole(value), made)
    if not any(value.nullable for value in values):
        return Value(made, kind)
    return itself(made, kind)


def value_if(test: Expr, then: Expr, otherwise: Expr) -> Expr:
    """A conditional, without one if the test is constant."""
    if test == TRUE:
        return then
    return otherwise if test == FALSE else Conditional(test, then, otherwise)


def case(node: Any, scope: Scope) -> Value:
    """CASE with conditions, or with values that one is compared with."""
    branches = []
    for each in node.args["ifs"]:
        branches.append((_test(node, each.this, scope), scope.value(each.args["true"])))
    default = node.args.get("default")
    otherwise = NULL_VALUE if default is None else scope.value(default)
    return chosen(branches, otherwise, scope, node)


def _test(node: Any, when: exp.Expr, scope: Scope) -> Expr:
    if node.this is None:
        return scope.true(when)
    return comparison("==", scope.value(node.this), scope.value(when), node, scope)


def conditional(node: Any, scope: Scope) -> Value:
    """IF(test, then, otherwise)."""
    otherwise = node.args.get("false")
    return chosen(
        [(scope.true(node.this), scope.value(node.args["true"]))],
        NULL_VALUE if otherwise is None else scope.value(otherwise),
        scope,
        node,
    )


def coalesced(node: Any, scope: Scope) -> Value:
    """The first value that is not NULL."""
    found = [scope.value(each) for each in arguments(node)]
    values, kind = equal_types(tuple(found), scope, node)
    values = tuple(value for value in values if not is_null(value))
    values = _until_never_null(values)
    if not values:
        return NULL_VALUE
    if not values[0].nullable:
        return Value(values[0].expr, kind)
    if len(values) == 1:
        return Value(values[0].expr, kind, values[0].nulls)
    if len(values) == 2 and all(map(is_simple, values[0].nulls)):
        tests = conjunction(present(values[0]))
        made: Expr = Conditional(tests, values[0].expr, whole(values[1]))
    else:
        made = Call(constant(nulls.coalesce), tuple(map(whole, values)))
    return itself(made, kind) if values[-1].nullable else Value(made, kind)


def _until_never_null(values: tuple[Value, ...]) -> tuple[Value, ...]:
    for place, value in enumerate(values):
        if not value.nullable:
            return values[: place + 1]
    return values


def null_if(node: Any, scope: Scope) -> Value:
    """The first value, or NULL if it equals the second."""
    if scope.dialect.name == "postgres":  # of the type of the left operand of its `=`
        value, other = operands("=", node, (node.this, node.expression), scope)
    else:
        value, other = scope.value(node.this), scope.value(node.expression)
    if is_null(value) or is_null(other):
        return value
    one, two = aligned(node, scope, value, other)
    if one.expr is value.expr:
        made = Call(constant(nulls.null_if), (whole(value), whole(two)))
        return itself(made, value.type)
    test = Call(constant(_equal), (whole(one), whole(two)))
    return itself(Conditional(test, NONE, whole(value)), value.type)


def _equal(one: Any, other: Any) -> bool:
    return one is not None and bool(one == other)


def _extreme(function: Any, builtin: Any) -> Maker:
    """GREATEST and LEAST; strict where none may be NULL."""

    def made(node: Any, scope: Scope) -> Value:
        found = tuple(scope.value(each) for each in arguments(node))
        values, kind = equal_types(found, scope, node)
        if kind.kind in ("struct", "array"):
            by_rank = rows.greatest if builtin is max else rows.least
            return itself(Call(constant(by_rank), tuple(map(whole, values))), kind)
        if not any(value.nullable for value in values):
            if any(map(is_null, values)):
                return NULL_VALUE
            return values[0] if len(values) == 1 else applied(builtin, kind, *values)
        return itself(Call(constant(function), tuple(map(whole, values))), kind)

    return made


def _type_name(node: Any, scope: Scope) -> Value:
    return literal(sql_name(scope.value(arguments(node)[0]).type))


def _by_presence(node: Any, scope: Scope) -> Value:
    """NVL2: the second value if the first is not NULL, or else the third."""
    there = conjunction(present(scope.value(node.this)))
    then, otherwise = (scope.value(node.args[each]) for each in ("true", "false"))
    return chosen([(there, then)], otherwise, scope, node)


def _first(node: Any, scope: Scope) -> Value:
    """LIKELY and the like, which say nothing of the value."""
    return scope.value(arguments(node)[0])


def _refused(reason: str) -> Maker:
    def made(node: Any, scope: Scope) -> Value:
        raise scope.error(node, f"{node.sql()} {reason}", "give it as a parameter: `:name`")

    return made


_BY_CHANCE = _refused("is another value each time, which a live query cannot keep")
TABLE: dict[str | type[exp.Expr], Maker] = {
    exp.Case: case,
    exp.If: conditional,
    exp.Coalesce: coalesced,
    exp.Nullif: null_if,
    exp.Greatest: _extreme(nulls.greatest, max),
    exp.Least: _extreme(nulls.least, min),
    exp.Typeof: _type_name,
    exp.Rand: _BY_CHANCE,
    exp.Uuid: _BY_CHANCE,
    "likely": _first,
    "unlikely": _first,
    "likelihood": _first,
}
