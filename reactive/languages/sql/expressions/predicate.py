"""Conditions, with three-valued logic compiled away: the tests for TRUE and for FALSE.

    true(a = b)      a == b and a is not None        the equation first: it stays a key of a join
    true(a < b)      a is not None and b is not None and a < b
    true(not e)      false(e)
    true(p and q)    true(p) and true(q)             false(p and q)  =  false(p) or false(q)

If neither holds, the condition is NULL. Columns that are NOT NULL need no test but the comparison.

Sound: a value that may be None is tested before it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import FALSE, NONE, TRUE, Call, Conditional, Expr, Item, Operation, constant
from reactive.languages.sql.expressions.casts import align, apply, cast, maybe, read_constant
from reactive.languages.sql.expressions.comparisons import (
    COMPARISONS,
    OPPOSITE,
    all_of,
    among_constants,
    any_of,
    are_ordered_by_parts,
    as_boolean,
    common_type_place,
    compare_in_order,
    compare_values,
    comparison,
    in_range,
    missing,
    negate_test,
    of_value,
    total_order,
)
from reactive.languages.sql.expressions.like import QUANTIFIERS, query_in, translate_like
from reactive.languages.sql.expressions.operands import check_condition
from reactive.languages.sql.postgres.grammar import OF_BOOLEANS
from reactive.languages.sql.postgres.resolution import against_elements
from reactive.languages.sql.runtime import rows
from reactive.languages.sql.sqlite.comparisons import as_truth, bare
from reactive.languages.sql.terms.errors import take
from reactive.languages.sql.terms.types import BOOL
from reactive.languages.sql.terms.values import (
    NULL_VALUE,
    TypedValue,
    as_optional,
    callee,
    is_null,
    nullable_value,
    strict,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

SIGNS = {"==": "=", "!=": "<>"}
"""Operators of SQL, where Python has others."""
TWO_VALUED: tuple[type[exp.Expr], ...] = (
    *(exp.And, exp.Or, exp.Paren, exp.Exists, exp.In, exp.Between, exp.Is),
    *(exp.NullSafeEQ, exp.NullSafeNEQ),
)
"""Conditions with separate tests for TRUE and for FALSE."""


def true(node: Any, scope: Scope) -> Expr:
    """Return the test that a condition is TRUE."""
    return _is(node, scope, wanted=True)


def false(node: Any, scope: Scope) -> Expr:
    """Return the test that a condition is FALSE."""
    return _is(node, scope, wanted=False)


def condition_value(node: Any, scope: Scope) -> TypedValue:
    """Return a condition as a value: True, False or NULL; refuse a node that is no condition."""
    if type(node) in COMPARISONS and not _is_quantified(node):
        if _has_array(node):
            return _compare_with_array(node, scope)
        if not _are_rows(node) or scope.dialect.total_rows:
            return _comparison_value(node, scope)
    match node:
        case exp.Not():
            of = _condition(scope.value(node.this), node, scope)
            return strict(Operation("not", (of.expr,)), BOOL, of)
        case exp.Like() | exp.ILike() | exp.Escape():
            return translate_like(node, scope)
    if not isinstance(node, TWO_VALUED) and type(node) not in COMPARISONS:
        raise scope.error(node, f"{node.sql(scope.dialect.name)} is not supported here")
    made = scope.true(node)
    if not may_be_null(node, scope):
        return TypedValue(as_boolean(made), BOOL)
    return nullable_value(
        Conditional(made, TRUE, Conditional(scope.false(node), FALSE, NONE)), BOOL
    )


def may_be_null(node: Any, scope: Scope) -> bool:
    """Return True if a condition may be NULL."""
    known = scope.known_value(node)
    if known is not None:
        return known.nullable
    match node:
        case exp.Paren() | exp.Not():
            return may_be_null(node.this, scope)
        case exp.And() | exp.Or():
            return any(may_be_null(part, scope) for part in _flat(node, type(node)))
        case exp.Exists() | exp.Is() | exp.NullSafeEQ() | exp.NullSafeNEQ():
            return False
        case exp.In() | exp.Between() if (
            isinstance(without_row_call(node.this), exp.Tuple) and not scope.dialect.total_rows
        ):
            return True  # its fields may be NULL, and the row is not
        case exp.In() | exp.Between() if node.args.get("query") is None:
            parts = (node.this, *node.expressions, node.args.get("low"), node.args.get("high"))
            return any(scope.value(part).nullable for part in parts if part is not None)
        case exp.In():
            return True
        case _ if type(node) in COMPARISONS:
            standard = _are_rows(node) and not scope.dialect.total_rows
            return standard or _is_quantified(node) or scope.value(node).nullable
        case _:
            return scope.value(node).nullable


def _is(node: Any, scope: Scope, *, wanted: bool) -> Expr:
    """Return the test that a condition is TRUE, or that it is FALSE if not `wanted`."""
    known = scope.known_value(node)
    if known is not None:
        return of_value(_condition(known, node, scope), wanted=wanted)
    match node:
        case exp.Paren():
            return _is(node.this, scope, wanted=wanted)
        case exp.Not():
            return _is(node.this, scope, wanted=not wanted)
        case exp.And() | exp.Or():
            sides = [_is(part, scope, wanted=wanted) for part in _flat(node, type(node))]
            return all_of(*sides) if isinstance(node, exp.And) is wanted else any_of(*sides)
        case exp.Exists():
            found = scope.exists(node)
            return found if wanted else Operation("not", (found,))
        case exp.In():
            return _in(node, scope, wanted=wanted)
        case exp.Is():
            return _identity(node, scope, wanted=wanted)
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            return _test_distinct(node, scope, wanted=isinstance(node, exp.NullSafeEQ) is wanted)
        case exp.Between():
            return _test_between(node, scope, wanted=wanted)
        case _ if type(node) in COMPARISONS:
            return _comparison(node, scope, wanted=wanted)
        case _:
            return of_value(_condition(scope.value(node), node, scope), wanted=wanted)


def _condition(value: TypedValue, node: Any, scope: Scope) -> TypedValue:
    """Return a value that is used as a condition."""
    if scope.dialect.name != "sqlite":
        check_condition(value, node, scope)
        if value.type.kind != "text":
            return value
        if scope.dialect.name == "postgres":
            return read_constant(node, scope, value, BOOL)
        return cast(value, BOOL, scope)
    return as_truth(value) if scope.dialect.numeric_booleans else value


def _flat(node: Any, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """Yield the operands of nested AND or OR, left to right, without recursion."""
    todo = [node]
    while todo:
        each = todo.pop()
        inner = each
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, kind):
            todo += (inner.expression, inner.this)
        else:
            yield each


# Comparisons.


def _comparison(node: Any, scope: Scope, *, wanted: bool) -> Expr:
    """Return the test that a comparison is TRUE, or that it is FALSE if not `wanted`."""
    if _is_quantified(node):
        return scope.matches(node, negated=not wanted)
    if _are_rows(node) and not scope.dialect.total_rows:
        return _compare_rows(node, scope, wanted=wanted)
    if _has_array(node):
        return of_value(_compare_with_array(node, scope), wanted=wanted)
    symbol = COMPARISONS[type(node)]
    left, right = scope.value(node.left), scope.value(node.right)
    return comparison(symbol if wanted else OPPOSITE[symbol], left, right, node, scope)


def _has_array(node: Any) -> bool:
    """Return True if a side is ANY or ALL."""
    return any(_quantifier(side) is not None for side in (node.left, node.right))


def _quantifier(node: Any) -> str | None:
    """Return "any" or "all" for a quantified side, else None; ALL and SOME may be calls."""
    if isinstance(node, exp.Anonymous):
        return {"all": "all", "some": "any"}.get(str(node.this).lower())
    return {exp.Any: "any", exp.All: "all"}.get(type(node))


def _comparison_value(node: Any, scope: Scope) -> TypedValue:
    """Return the value of a comparison, which is NULL if a side is."""
    symbol = COMPARISONS[type(node)]
    left, right = align(
        node,
        scope,
        scope.value(node.left),
        scope.value(node.right),
        place=common_type_place(symbol),
    )
    if is_null(left) or is_null(right):
        return NULL_VALUE
    if are_ordered_by_parts(left, right, scope) and symbol not in ("==", "!="):
        return strict(total_order(symbol, left, right), BOOL, left, right)
    return strict(Operation(symbol, (left.expr, right.expr)), BOOL, left, right)


def _is_quantified(node: Any) -> bool:
    """Return True if it compares with ANY or ALL of a query."""
    return type(node) in COMPARISONS and any(
        isinstance(side, QUANTIFIERS) and query_in(side) is not None
        for side in (node.args.get("this"), node.args.get("expression"))
    )


def _compare_with_array(node: Any, scope: Scope) -> TypedValue:
    """Translate `x = ANY (array)`, `x <> ALL (array)` and the like."""
    left, right = node.left, node.right
    symbol = COMPARISONS[type(node)]
    if _quantifier(left) is not None:
        left, right = right, left
        symbol = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(symbol, symbol)
    function = rows.AnyFits if _quantifier(right) == "any" else rows.AllFit
    array = right.expressions[0] if isinstance(right, exp.Anonymous) else right.this
    if scope.dialect.name in ("postgres", "duckdb"):
        of = rows.OfElements(function(symbol), scope.dialect.name == "duckdb")
        if scope.dialect.name == "postgres":
            values = against_elements(SIGNS.get(symbol, symbol), node, left, array, scope)
        else:
            values = scope.value(left), scope.value(array)
        given = tuple(map(as_optional, values))
        return nullable_value(Call(callee(of), given), BOOL)
    return maybe(function(symbol), BOOL, scope.value(left), scope.value(array))


# Rows.


def _are_rows(node: Any) -> bool:
    """Return True for a comparison of two rows, of which one may be a query."""
    sides = [without_row_call(side) for side in (node.left, node.right)]
    rows = [isinstance(side, exp.Tuple) for side in sides]
    return all(rows) or (any(rows) and any(_is_query(side) for side in sides))


def _is_query(node: Any) -> bool:
    return isinstance(node, exp.Subquery | exp.Query)


def without_row_call(node: Any) -> Any:
    """Return the tuple `(a, b)` for `row(a, b)`; any other node as it is."""
    if isinstance(node, exp.Anonymous) and str(node.this).lower() == "row":
        return exp.Tuple(expressions=list(node.expressions))
    return node


def _compare_rows(node: Any, scope: Scope, *, wanted: bool) -> Expr:
    """Return the test of a comparison of rows field by field; refuse rows of different lengths."""
    left, right = (_row_fields(side, node, scope) for side in (node.left, node.right))
    fields = _pair_fields(left, right, node, scope)
    symbol = COMPARISONS[type(node)]
    return _compare_fields(symbol if wanted else OPPOSITE[symbol], fields, node, scope)


def _row_fields(side: Any, node: Any, scope: Scope) -> list[TypedValue]:
    """Return the values of a row: written out, or of the only row of a query."""
    row = without_row_call(side)
    if isinstance(row, exp.Tuple):
        return [scope.value(each) for each in row.expressions]
    if not _is_query(row):
        raise scope.error(node, "a row is compared with a row")
    value = scope.subquery(row, as_row=True)
    items = [Item(value.expr, constant(place)) for place in range(len(value.type.items))]
    return [
        TypedValue(item, kind, (value.expr, item))
        for item, kind in zip(items, value.type.items, strict=True)
    ]


def _pair_fields(
    left: Sequence[TypedValue], right: Sequence[TypedValue], node: Any, scope: Scope
) -> list[tuple[TypedValue, TypedValue]]:
    """Return the fields of two rows in pairs; refuse rows of different lengths."""
    if len(left) != len(right):
        raise scope.error(node, f"rows of {len(left)} and of {len(right)} fields are compared")
    return list(zip(left, right, strict=True))


def _compare_fields(
    symbol: str, fields: Sequence[tuple[TypedValue, TypedValue]], node: Any, scope: Scope
) -> Expr:
    """Return the test of two rows as pairs of fields; the first pair that differs decides."""

    def compare(symbol: str, left: TypedValue, right: TypedValue) -> Expr:
        return comparison(symbol, left, right, node, scope)

    if symbol == "==":
        return all_of(*(compare(symbol, *pair) for pair in fields))
    if symbol == "!=":
        return any_of(*(compare(symbol, *pair) for pair in fields))
    return compare_in_order(symbol, fields, compare)


# Other conditions.


def _in(node: Any, scope: Scope, *, wanted: bool) -> Expr:
    """Return the test that IN is TRUE, or that it is FALSE if not `wanted`."""
    if node.args.get("query") is not None:
        return scope.matches(node, negated=not wanted)
    if node.args.get("unnest") is not None or node.args.get("field") is not None:
        field = node.args.get("field") or node.args["unnest"].expressions[0]
        array = apply(rows.among, BOOL, scope.value(node.this), scope.value(field))
        return of_value(array, wanted=wanted)
    value = scope.value(node.this)
    if isinstance(without_row_call(node.this), exp.Tuple) and not scope.dialect.total_rows:
        return _in_rows(node, scope, wanted=wanted)
    if not node.expressions:
        return FALSE if wanted else TRUE
    others = [scope.value(each) for each in node.expressions]
    if scope.dialect.numeric_booleans:  # only the left says how they are compared
        items = [align(node, scope, value, bare(each)) for each in others]
    else:
        mine, *others = align(node, scope, value, *others)
        items = [(mine, theirs) for theirs in others]
    same = all(mine == items[0][0] for mine, _ in items)
    if same and not any(theirs.nullable for _, theirs in items):
        made = tuple(theirs.expr for _, theirs in items)
        return among_constants(items[0][0], made, wanted=wanted)
    tests = [compare_values("==" if wanted else "!=", mine, theirs) for mine, theirs in items]
    return any_of(*tests) if wanted else all_of(*tests)


def _in_rows(node: Any, scope: Scope, *, wanted: bool) -> Expr:
    """Return the test that a row is IN listed rows, by a comparison with each."""
    symbol = "==" if wanted else "!="
    left = _row_fields(node.this, node, scope)
    tests = []
    for each in node.expressions:
        fields = _pair_fields(left, _row_fields(each, node, scope), node, scope)
        tests.append(_compare_fields(symbol, fields, node, scope))
    return any_of(*tests) if wanted else all_of(*tests)


def _identity(node: Any, scope: Scope, *, wanted: bool) -> Expr:
    """Translate IS NULL, IS TRUE, IS FALSE."""
    other = node.expression
    take(other)
    if scope.dialect.name == "postgres" and isinstance(other, exp.Null):
        row = without_row_call(node.this)
        while isinstance(row, exp.Paren):
            row = without_row_call(row.this)
        if isinstance(row, exp.Tuple):
            values = [scope.value(each) for each in row.expressions]
            return _row_is_null(values, node, wanted=wanted)
        value = scope.value(node.this)
        if value.type.kind == "struct":
            values = [scope.field(value, name, node) for name in value.type.names]
            return _row_is_null(values, node, wanted=wanted)
    wanted = wanted is not bool(node.args.get("negate"))
    if node.meta.get(OF_BOOLEANS):
        _condition(scope.value(node.this), node, scope)
    if isinstance(other, exp.Null):
        return missing(scope.value(node.this), wanted=wanted)
    if isinstance(other, exp.Boolean):
        made = scope.true(node.this) if other.this else scope.false(node.this)
        return made if wanted else negate_test(made)
    return _test_distinct(node, scope, wanted=wanted)


def _row_is_null(values: Sequence[TypedValue], node: Any, *, wanted: bool) -> Expr:
    """Return the test that all fields of a row are NULL, or that none is."""
    if node.args.get("negate"):
        there = all_of(*(missing(value, wanted=False) for value in values))
        return there if wanted else negate_test(there)
    gone = all_of(*(missing(value, wanted=True) for value in values))
    return gone if wanted else negate_test(gone)


def _test_distinct(node: Any, scope: Scope, *, wanted: bool) -> Expr:
    """Translate IS [NOT] DISTINCT FROM: NULL is equal to NULL."""
    values = align(node, scope, scope.value(node.this), scope.value(node.expression))
    return Operation("==" if wanted else "!=", tuple(map(as_optional, values)))


def _test_between(node: Any, scope: Scope, *, wanted: bool) -> Expr:
    """Return the test that BETWEEN is TRUE, or that it is FALSE if not `wanted`."""
    parts = [node.args[each] for each in ("this", "low", "high")]
    if isinstance(without_row_call(parts[0]), exp.Tuple) and not scope.dialect.total_rows:
        return _row_between(parts, node, scope, wanted=wanted)
    value, low, high = map(scope.value, parts)
    if scope.dialect.name == "duckdb":
        one, low, high = align(node, scope, value, low, high, place="order")
        two = one
    else:
        one, low = align(node, scope, value, low, place="order")
        two, high = align(node, scope, value, high, place="order")
    if node.args.get("symmetric"):
        ways = [
            in_range(wanted, one, low, two, high, scope),
            in_range(wanted, two, high, one, low, scope),
        ]
        return any_of(*ways) if wanted else all_of(*ways)
    return in_range(wanted, one, low, two, high, scope)


def _row_between(parts: Sequence[Any], node: Any, scope: Scope, *, wanted: bool) -> Expr:
    """Return the test that a row is BETWEEN two others, or not if not `wanted`."""
    value, low, high = (_row_fields(each, node, scope) for each in parts)
    above, below = (_pair_fields(value, each, node, scope) for each in (low, high))

    def test(at_least: str, at_most: str) -> list[Expr]:
        return [
            _compare_fields(at_least, above, node, scope),
            _compare_fields(at_most, below, node, scope),
        ]

    def within() -> Expr:
        return all_of(*test(">=", "<=")) if wanted else any_of(*test("<", ">"))

    if not node.args.get("symmetric"):
        return within()
    ways = [within()]
    above, below = below, above
    ways.append(within())
    return any_of(*ways) if wanted else all_of(*ways)
