"""Comparisons of values as conditions that are true exactly where SQL says TRUE.

    a = b, both NOT NULL        a == b
    a = b, one may be NULL      a == b                        None is equal to nothing else
    a = b, both may be NULL     a == b and a is not None      the equation first, as a key of a join
    a < b                       a is not None and b is not None and a < b

A value that must not be NULL before another value can be read, such as the row of an outer join, is
tested first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlglot import exp

from optimizer.expr import (
    FALSE,
    NONE,
    TRUE,
    Call,
    Conditional,
    Constant,
    Expr,
    Operation,
    Or,
    conjunction,
    conjuncts,
    constant,
    tuple_of,
)
from reactive.engine.collections.value_order import rank
from reactive.languages.sql.expressions.casts import align
from reactive.languages.sql.runtime import arrays, rows
from reactive.languages.sql.runtime.intervals import Interval
from reactive.languages.sql.terms.common_types import Place
from reactive.languages.sql.terms.types import ANY, NESTED
from reactive.languages.sql.terms.values import (
    TypedValue,
    as_optional,
    is_null,
    is_simple,
    leaves,
    nullable_value,
    present,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "==",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def comparison(
    symbol: str, left: TypedValue, right: TypedValue, node: exp.Expr, scope: Scope
) -> Expr:
    """Return the condition that a comparison of values of any types is TRUE."""
    left, right = align(node, scope, left, right, place=common_type_place(symbol))
    return compare_aligned(symbol, left, right, scope)


def compare_aligned(symbol: str, left: TypedValue, right: TypedValue, scope: Scope) -> Expr:
    """Return the condition that a comparison of values of one type is TRUE."""
    if are_ordered_by_parts(left, right, scope) and symbol not in ("==", "!="):
        return conjunction((*present(left, right), total_order(symbol, left, right)))
    return compare_values(symbol, left, right)


def common_type_place(symbol: str) -> Place:
    """Return the place of a comparison in the table of common types."""
    return "equality" if symbol in ("==", "!=") else "order"


def are_ordered_by_parts(left: TypedValue, right: TypedValue, scope: Scope) -> bool:
    """Return True if both values are rows, or both are arrays or maps."""
    kinds = {left.type.kind, right.type.kind}
    return kinds in ({"struct"}, {"array"}, {"map"})


def by_parts(value: TypedValue) -> TypedValue:
    """Return the key that sorts a value: rows and arrays item by item, NULL inside last.

    `from_parts` of it is the value.
    """
    if value.type.kind not in NESTED:
        return value
    made = Call(constant(rank), (as_optional(value),))
    return nullable_value(made, ANY) if value.nullable else TypedValue(made, ANY)


def from_parts(sorted_by: Expr, of: TypedValue) -> Expr:
    """Return the value whose `by_parts` is `sorted_by`."""
    if of.type.kind not in NESTED:
        return sorted_by
    return Call(constant(rows.value_of_rank), (sorted_by,))


def total_order(symbol: str, left: TypedValue, right: TypedValue) -> Expr:
    """Return the order of rows that may have NULLs."""
    if symbol in (">", ">="):
        left, right, symbol = right, left, {">": "<", ">=": "<="}[symbol]
    function = rows.less if symbol == "<" else rows.less_or_equal
    return Call(constant(function), (left.expr, right.expr))


def compare_values(symbol: str, left: TypedValue, right: TypedValue) -> Expr:
    """Return the condition that a comparison is TRUE."""
    if is_null(left) or is_null(right):
        return FALSE
    left, right = _as_lengths(left, right)
    test = Operation(symbol, (left.expr, right.expr))
    if symbol != "==":
        there = conjunction(present(left, right))
        if all(map(is_simple, leaves(left, right))):
            return all_of(there, test)
        return Conditional(there, test, FALSE)  # one condition evaluates a subquery once
    before = present(_without_own_null(left), _without_own_null(right))
    behind = tuple(t for v in (left, right) for t in present(v) if t not in before)
    if left.expr != right.expr and len(behind) == 2:  # None is equal to nothing else
        behind = behind[:1] if is_simple(left.expr) else behind[1:]
    elif len(behind) == 1 and left.expr != right.expr:
        behind = ()
    return conjunction((*before, test, *behind))


def compare_in_order(
    symbol: str,
    pairs: Sequence[tuple[TypedValue, TypedValue]],
    compare: Callable[[str, TypedValue, TypedValue], Expr],
) -> Expr:
    """Return the test of `<` and its kind for rows: the first pair that differs decides.

    `compare` makes the test of one pair that a comparison is TRUE.
    """
    equal = [compare("==", *pair) for pair in pairs[:-1]]
    made: list[Expr] = []
    for place, pair in enumerate(pairs):
        own = symbol if place == len(pairs) - 1 else symbol[0]
        made.append(all_of(*equal[:place], compare(own, *pair)))
    return any_of(*made)


def _as_lengths(left: TypedValue, right: TypedValue) -> tuple[TypedValue, TypedValue]:
    """Return intervals that are compared: a constant as its length, without months.

    The calendar's days between two instants of a zone are the elapsed time if that is less than a
    day, and a day has more than twelve hours.
    """
    if "interval" not in (left.type.kind, right.type.kind):
        return left, right
    left, right = (
        _length(value) if type(value.expr) is Constant else value for value in (left, right)
    )
    for value, other in ((left, right), (right, left)):
        span = other.expr.value if type(other.expr) is Constant else None
        if isinstance(span, timedelta) and abs(span) <= HALF_A_DAY:
            elapsed = _in_elapsed_time(value)
            return (elapsed, right) if value is left else (left, elapsed)
    return left, right


HALF_A_DAY = timedelta(hours=12)


def _length(value: TypedValue) -> TypedValue:
    assert isinstance(value.expr, Constant)
    span = value.expr.value
    if not isinstance(span, Interval):
        return value
    plain = timedelta(span.days, span.seconds, span.microseconds)
    return TypedValue(constant(plain), value.type, value.nulls)


def _in_elapsed_time(value: TypedValue) -> TypedValue:
    """Return the time between two instants as it has elapsed; other values as they are."""
    calendar, elapsed = constant(arrays.between_of_duckdb), constant(arrays.between)
    match value.expr:
        case Call(function, (one, other, _), ()) if function == calendar:
            made = Call(elapsed, (one, other))
        case Call(function, (called, one, other, _), ()) if called == calendar:
            made = Call(function, (elapsed, one, other))
        case _:
            return value
    nulls = tuple(made if leaf == value.expr else leaf for leaf in value.nulls)
    return TypedValue(made, value.type, nulls)


def _without_own_null(value: TypedValue) -> TypedValue:
    """Return a value that is NULL only if a leaf before its own expression is None."""
    is_leaf = value.nulls[-1:] == (value.expr,)
    return TypedValue(value.expr, value.type, value.nulls[:-1] if is_leaf else value.nulls)


def in_range(
    wanted: bool, one: TypedValue, low: TypedValue, two: TypedValue, high: TypedValue, scope: Scope
) -> Expr:
    """Return the test `one >= low and two <= high`, or its opposite if not `wanted`."""
    if wanted:
        return all_of(
            compare_aligned(">=", one, low, scope), compare_aligned("<=", two, high, scope)
        )
    return any_of(compare_aligned("<", one, low, scope), compare_aligned(">", two, high, scope))


def among_constants(value: TypedValue, items: tuple[Expr, ...], *, wanted: bool) -> Expr:
    """Return the condition that a value is one of some that are never NULL."""
    if is_null(value):
        return FALSE
    if len(items) == 1:
        other = TypedValue(items[0], value.type)
        return compare_values("==" if wanted else "!=", value, other)
    if all(isinstance(item, Constant) for item in items):
        among: Expr = constant(tuple(item.value for item in items))  # type: ignore[attr-defined]
    else:
        among = tuple_of(*items)
    test = Operation("in" if wanted else "not in", (value.expr, among))
    return conjunction((*present(value), test))


def missing(value: TypedValue, *, wanted: bool) -> Expr:
    """Return the test that a value is NULL, or that it is not NULL if not `wanted`."""
    if is_null(value):
        return TRUE if wanted else FALSE
    if not wanted:
        return conjunction(present(value))
    return any_of(*(Operation("is", (leaf, NONE)) for leaf in value.nulls))


def of_value(value: TypedValue, *, wanted: bool) -> Expr:
    """Return the condition that a boolean value is TRUE, or is FALSE."""
    if is_null(value):
        return FALSE
    if isinstance(value.expr, Constant):
        return TRUE if bool(value.expr.value) is wanted else FALSE
    if wanted and value.nulls == (value.expr,):  # None is not true
        return as_boolean(value.expr) if value.type.kind != "bool" else value.expr
    if not wanted and value.nulls == (value.expr,) and not is_simple(value.expr):
        return Operation("==", (value.expr, FALSE))
    test = value.expr if wanted else Operation("not", (value.expr,))
    return conjunction((*present(value), test))


def as_boolean(expr: Expr) -> Expr:
    """Return True or False for a value of any type."""
    if isinstance(expr, Constant | Operation):
        return expr
    return Conditional(expr, TRUE, FALSE)


def negate_test(test: Expr) -> Expr:
    """Return the opposite of a test that is true or false."""
    if test in (TRUE, FALSE):
        return FALSE if test == TRUE else TRUE
    return Operation("not", (test,))


def all_of(*parts: Expr) -> Expr:
    """Return the conjunction of several conditions."""
    flat = tuple(inner for part in parts for inner in conjuncts(part) if inner != TRUE)
    return FALSE if FALSE in flat else conjunction(flat)


def any_of(*parts: Expr) -> Expr:
    """Return the disjunction of several conditions."""
    left = tuple(part for part in parts if part != FALSE)
    if TRUE in left:
        return TRUE
    return FALSE if not left else left[0] if len(left) == 1 else Or(left)
