"""Operators of SQLite: comparisons by affinity and collation, and arithmetic of 64 bits.

Comparisons of SQLite: affinity of one side for the other, collations, storage classes.

    n = '12'                  n == 12                        n has INTEGER affinity
    s = 12                    s == '12'                      s has TEXT affinity
    s collate nocase = 'A'    without_case(s) == 'a'
    a < b                     rank(a) < rank(b)              unless both are numbers, or texts

Equality is Python's then: 1 equals 1.0, neither equals '1'.
Source: https://sqlite.org/datatype3.html, 4 and 7

Arithmetic of SQLite: operands are numbers or what texts begin with, integers have 64 bits.

'3abc' + 1     4          7 / 2      3        9223372036854775807 + 1    9.22e18
1 / 0          NULL       -7 % 3     -1       1 << 64                    0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Call, Constant, Slot, constant
from reactive.languages.sql.runtime import moments
from reactive.languages.sql.runtime.numbers import whole_quotient
from reactive.languages.sql.sqlite import values as runtime
from reactive.languages.sql.sqlite.values import GREATEST, LEAST, characters, integer, number
from reactive.languages.sql.terms.types import ANY, BOOL, FLOAT, INT, NUMBERS, TEXT, SqlType
from reactive.languages.sql.terms.values import (
    NULL_VALUE,
    TypedValue,
    as_optional,
    call_strictly,
    callee,
    is_column,
    is_null,
    is_simple,
    leaves,
    literal_value,
    nullable_value,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope


NUMERIC = frozenset({"INTEGER", "REAL", "NUMERIC"})


def column_type(declared: str, *, collation: str | None = None, is_rowid: bool = False) -> SqlType:
    """Return the type of a declared column; an INTEGER PRIMARY KEY has integers."""
    affinity = runtime.affinity_of(declared)
    kind = "int" if is_rowid else "any"
    return SqlType(kind, affinity=affinity, collation=collation or "BINARY")  # type: ignore[arg-type]


def bare(value: TypedValue) -> TypedValue:
    """Return a value without affinity and collation, like the value of an expression in SQLite."""
    return replace(
        value, type=replace(value.type, affinity=None, collation=None, is_collated=False)
    )


def without_collation(value: TypedValue) -> TypedValue:
    """Return the value of a sub-query, which has the affinity of its column, but no collation."""
    return replace(value, type=replace(value.type, collation=None, is_collated=False))


def map_value(function: Callable[[Any], Any], kind: SqlType, value: TypedValue) -> TypedValue:
    """Return the result of a function of a value, which is NULL only for NULL.

    For a constant the function is called now; not for a slot, whose value is not looked at.
    """
    if isinstance(value.expr, Slot):
        return TypedValue(Call(callee(function), (value.expr,)), kind)
    if isinstance(value.expr, Constant) and not value.nulls:
        return TypedValue(literal_value(function(value.expr.value)).expr, kind)
    if all(map(is_simple, leaves(value))):
        return call_strictly(function, kind, value)
    return nullable_value(
        Call(constant(moments.strict_call), (constant(function), as_optional(value))), kind
    )


def is_number(kind: SqlType) -> bool:
    """Return True if all values of a type are numbers."""
    return kind.kind in NUMBERS or kind.kind == "bool"


def collation_of(*types: SqlType) -> str | None:
    """Return the collation of a comparison: a written COLLATE, else that of the first column.

    Return None if no type has one.
    """
    for kind in types:
        if kind.is_collated:
            return kind.collation
    return next((kind.collation for kind in types if kind.collation is not None), None)


def collate(value: TypedValue, collation: str | None) -> TypedValue:
    """Return a value as a collation compares it."""
    function = runtime.COLLATIONS.get(collation or "")
    if function is None or is_number(value.type) or value.type.kind in ("null", "bytes"):
        return value
    return map_value(function, value.type, value)


def apply_affinity(value: TypedValue, affinity: str | None) -> TypedValue:
    """Return a value with the affinity that a comparison applies to it."""
    if value.type.kind in ("null", "bytes"):
        return value
    if affinity in NUMERIC and not is_number(value.type):
        return map_value(runtime.numeric, replace(value.type, kind="any"), value)
    if affinity == "TEXT" and value.type.kind != "text":
        return map_value(runtime.as_text, replace(value.type, kind="any"), value)
    return value


def _written(value: TypedValue) -> TypedValue:
    """Return a date or time of a class of Python as its text."""
    if value.type.kind not in ("date", "time", "timestamp", "timestamptz"):
        return value
    return map_value(runtime.characters, TEXT, value)


def _affinity_between(left: SqlType, right: SqlType) -> str | None:
    """Return the affinity that is applied to compare two types; None if there is none."""
    mine, theirs = left.affinity, right.affinity
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    return "NUMERIC" if {mine, theirs} & NUMERIC else None


def comparable_sides(
    left: TypedValue, right: TypedValue, *, ordered: bool
) -> tuple[TypedValue, TypedValue]:
    """Return both sides as what Python's `==` compares, or `<` if the comparison is `ordered`."""
    if left.type.kind != right.type.kind:
        left, right = _written(left), _written(right)
    affinity = _affinity_between(left.type, right.type)
    collation = collation_of(left.type, right.type)
    mine, theirs = (collate(apply_affinity(v, affinity), collation) for v in (left, right))
    if not ordered or _are_of_one_class(mine.type, theirs.type):
        return mine, theirs
    return rank_value(mine), rank_value(theirs)


def _are_of_one_class(left: SqlType, right: SqlType) -> bool:
    """Return True if values of both types are all numbers, or all of one other kind."""
    kinds = {left.kind, right.kind} - {"null"}
    return kinds <= NUMBERS | {"bool"} or (len(kinds) == 1 and "any" not in kinds)


def has_collation(kind: SqlType) -> bool:
    """Return True if a type has a collation that makes different texts equal."""
    return kind.collation in runtime.COLLATIONS


def rank_by_collation(value: TypedValue) -> TypedValue:
    """Return a key that orders values by their collation, then by the values themselves.

    For a type whose collation makes no texts equal, it is the key of `rank_value`. `unrank_value`
    returns the value of either key.
    """
    if not has_collation(value.type):
        return rank_value(value)
    return map_value(runtime.RankBy(str(value.type.collation)), ANY, value)


def rank_value(value: TypedValue) -> TypedValue:
    """Return a key that orders values as SQLite does: by storage class, then within the class.

    The key of NULL is NULL.
    """
    return value if value.type.kind == "null" else map_value(runtime.rank, ANY, value)


def has_one_class(kind: SqlType) -> bool:
    """Return True if all values of a type are of one storage class, and compare as they are."""
    return kind.kind != "any"


def sorted_by(value: TypedValue) -> TypedValue:
    """Return the sort key of rows that are ordered by a value."""
    made = collate(value, value.type.collation)
    return made if has_one_class(made.type) else rank_value(made)


def grouped_by(value: TypedValue) -> TypedValue:
    """Return a value that is equal for all values of one group."""
    return collate(value, value.type.collation)


def unrank_value(value: TypedValue) -> TypedValue:
    """Return the value of a key that `rank_value` or `rank_by_collation` made."""
    return TypedValue(Call(constant(runtime.value_of), (value.expr,)), value.type, value.nulls)


def as_truth(value: TypedValue) -> TypedValue:
    """Return a value as a condition: a number or NULL itself, other values by their truth."""
    return (
        value
        if is_number(value.type) or value.type.kind == "null"
        else map_value(runtime.truth, BOOL, value)
    )


def output_value(value: TypedValue) -> TypedValue:
    """Return a value of a SELECT: a condition is 1 or 0."""
    return (
        value if value.type.kind != "bool" or is_column(value.expr) else map_value(int, INT, value)
    )


def common_column_type(types: Sequence[SqlType]) -> SqlType:
    """Return the type of values of several types, with the affinity of the first.

    The values keep their classes.
    """
    kinds = {kind.kind for kind in types} - {"null"}
    one = next(iter(kinds)) if len(kinds) == 1 else "float" if kinds and kinds <= NUMBERS else "any"
    return replace(types[0], kind=one, precision=None, scale=None, size=None)


Number = int | float


def _fitting(value: Number, of: Callable[[float, float], float], a: Number, b: Number) -> Any:
    """Return a result as a float if an integer exceeds 64 bits, and None for NaN."""
    if isinstance(value, int):
        return value if LEAST <= value <= GREATEST else of(float(a), float(b))
    return value if value == value else None


def total(a: Any, b: Any) -> Any:
    """Return `a + b`.

    >>> total("3abc", 1), total(GREATEST, 1)
    (4, 9.223372036854776e+18)
    """
    a, b = number(a), number(b)
    return _fitting(a + b, float.__add__, a, b)


def difference(a: Any, b: Any) -> Any:
    """Return `a - b`."""
    a, b = number(a), number(b)
    return _fitting(a - b, float.__sub__, a, b)


def product(a: Any, b: Any) -> Any:
    """Return `a * b`."""
    a, b = number(a), number(b)
    return _fitting(a * b, float.__mul__, a, b)


def quotient(a: Any, b: Any) -> Any:
    """Return `a / b`, truncated for integers, None by zero.

    >>> quotient(-7, 2), quotient(7, 2.0), quotient(1, 0)
    (-3, 3.5, None)
    """
    a, b = number(a), number(b)
    if not b:
        return None
    if isinstance(a, int) and isinstance(b, int):
        made = whole_quotient(a, b)
        return made if made <= GREATEST else float(a) / float(b)
    made_of_floats = float(a) / float(b)
    return made_of_floats if made_of_floats == made_of_floats else None


def remainder(a: Any, b: Any) -> Any:
    """Return `a % b` of the operands truncated to integers, None by zero."""
    one, other = integer(a), integer(b)
    if not other:
        return None
    left = one - other * whole_quotient(one, other)
    is_whole = isinstance(number(a), int) and isinstance(number(b), int)
    return left if is_whole else float(left)


def both_bits(a: Any, b: Any) -> int:
    """Return `a & b`."""
    return integer(a) & integer(b)


def any_bits(a: Any, b: Any) -> int:
    """Return `a | b`."""
    return integer(a) | integer(b)


def other_bits(a: Any) -> int:
    """Return `~a`."""
    return ~integer(a)


def shifted_left(a: Any, b: Any) -> int:
    """Return `a << b` in 64 bits; shift right if `b` is negative.

    >>> shifted_left(1, 63) == LEAST, shifted_left(-8, -1), shifted_left(1, 64)
    (True, -4, 0)
    """
    value, places = integer(a), integer(b)
    if places < 0:
        return value >> min(-places, 64)
    made = (value << places if places < 64 else 0) & ((1 << 64) - 1)
    return made - (1 << 64) if made > GREATEST else made


def shifted_right(a: Any, b: Any) -> int:
    """Return `a >> b`."""
    return shifted_left(a, -integer(b))


def negative(value: Any) -> Any:
    """Return `-a`."""
    return difference(0, value)


def joined(a: Any, b: Any) -> str:
    """Return `a || b`."""
    return characters(a) + characters(b)


BINARY: dict[type[exp.Expr], tuple[Callable[..., Any], SqlType, bool]] = {
    exp.Add: (total, FLOAT, True),
    exp.Sub: (difference, FLOAT, True),
    exp.Mul: (product, FLOAT, True),
    exp.Div: (quotient, FLOAT, True),
    exp.Mod: (remainder, FLOAT, True),
    exp.BitwiseAnd: (both_bits, INT, False),
    exp.BitwiseOr: (any_bits, INT, False),
    exp.BitwiseLeftShift: (shifted_left, INT, False),
    exp.BitwiseRightShift: (shifted_right, INT, False),
    exp.DPipe: (joined, TEXT, False),
}
"""Function, type of the result, and whether it may give NULL by itself, of each operator."""


def is_sqlite_operator(node: exp.Expr) -> bool:
    """Return True if `translate_sqlite_operator` translates a node."""
    return type(node) in BINARY or isinstance(node, exp.Neg | exp.BitwiseNot)


def translate_sqlite_operator(node: Any, scope: Scope) -> TypedValue:
    """Return the value of an operator.

    Raises
    ------
    PlanError: it stands before an arrow of JSON, which SQLite takes after it.
    """
    last = node.right if isinstance(node, exp.DPipe) else node.this
    if isinstance(node, exp.DPipe | exp.Neg | exp.BitwiseNot) and (
        isinstance(last, exp.Anonymous) and str(last.this) in ("->", "->>")
    ):
        raise scope.error(
            last,
            f"{last.this} behind another operator of sqlite is not supported",
            "write brackets around what belongs together",
        )
    if isinstance(node, exp.Neg):
        return _negate_value(node, scope)
    if isinstance(node, exp.BitwiseNot):
        return map_value(other_bits, INT, scope.value(node.this))
    function, kind, may_be_null = BINARY[type(node)]
    if isinstance(node, exp.Div | exp.DPipe):
        _ = [node.args.get(each) for each in ("typed", "safe")]  # of the dialect, not of the text
    left, right = scope.value(node.left), scope.value(node.right)
    if is_null(left) or is_null(right):
        return NULL_VALUE
    return of_two(function, kind, left, right, may_be_null=may_be_null)


def of_two(
    function: Callable[..., Any], kind: SqlType, *values: TypedValue, may_be_null: bool
) -> TypedValue:
    """Return the result of a function of values, which is NULL if one is NULL.

    For constants the function is called now. `may_be_null`: True if it may return None otherwise.
    """
    said = next((v.type for v in values if v.type.is_collated), None)
    if said is not None:  # a COLLATE applies to the enclosing expression
        kind = replace(kind, collation=said.collation, is_collated=True)
    if all(isinstance(v.expr, Constant) and not v.nulls for v in values):
        try:
            return literal_of(function(*(v.expr.value for v in values)), kind)  # type: ignore[attr-defined]
        except (ArithmeticError, ValueError):
            pass  # an error of the rows that need it
    may_be_null &= not all(v.type.kind in ("int", "bool") for v in values) or function in (
        quotient,
        remainder,
    )
    if not leaves(*values):
        made = Call(constant(function), tuple(v.expr for v in values))
        return nullable_value(made, kind) if may_be_null else TypedValue(made, kind)
    return nullable_value(
        Call(constant(moments.strict_call), (constant(function), *map(as_optional, values))), kind
    )


def literal_of(value: Any, kind: SqlType) -> TypedValue:
    """Return a constant of a type."""
    return NULL_VALUE if value is None else TypedValue(literal_value(value).expr, kind)


def _negate_value(node: Any, scope: Scope) -> TypedValue:
    """Return the value of `-x`; a literal below the least integer becomes a float."""
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        opposite = -int(inner.this) if inner.this.isdigit() else -float(inner.this)
        is_whole = isinstance(opposite, int) and opposite >= LEAST
        return literal_value(opposite if is_whole else float(opposite))
    value = scope.value(inner)
    if is_null(value):
        return NULL_VALUE
    return map_value(negative, FLOAT if not is_number(value.type) else value.type, value)
