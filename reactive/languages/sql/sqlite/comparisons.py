"""Comparisons of SQLite: affinity of one side for the other, collations, storage classes.

    n = '12'                  n == 12                        n has INTEGER affinity
    s = 12                    s == '12'                      s has TEXT affinity
    s collate nocase = 'A'    without_case(s) == 'a'
    a < b                     rank(a) < rank(b)              unless both are numbers, or texts

Equality is Python's then: 1 equals 1.0, neither equals '1'.
Source: https://sqlite.org/datatype3.html, 4 and 7
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from optimizer.expr import Call, Constant, constant
from reactive.languages.sql.runtime import nulls
from reactive.languages.sql.sqlite import values as runtime
from reactive.languages.sql.terms.types import ANY, BOOL, INT, NUMBERS, TEXT, SqlType
from reactive.languages.sql.terms.values import (
    Value,
    called,
    is_column,
    is_simple,
    itself,
    leaves,
    literal,
    whole,
)

NUMERIC = frozenset({"INTEGER", "REAL", "NUMERIC"})


def column_type(declared: str, *, collation: str | None = None, is_rowid: bool = False) -> SqlType:
    """The type of a column, by the words that declare it. An INTEGER PRIMARY KEY has integers."""
    affinity = runtime.affinity_of(declared)
    kind = "int" if is_rowid else "any"
    return SqlType(kind, affinity=affinity, collation=collation or "BINARY")  # type: ignore[arg-type]


def bare(value: Value) -> Value:
    """A value of an expression, which has no affinity."""
    return replace(
        value, type=replace(value.type, affinity=None, collation=None, is_collated=False)
    )


def without_collation(value: Value) -> Value:
    """Return the value of a sub-query, which has the affinity of its column, but no collation."""
    return replace(value, type=replace(value.type, collation=None, is_collated=False))


def mapped(function: Callable[[Any], Any], kind: SqlType, value: Value) -> Value:
    """A function of a value that is never NULL but where the value is; at once of a constant."""
    if isinstance(value.expr, Constant) and not value.nulls:
        return Value(literal(function(value.expr.value)).expr, kind)
    if all(map(is_simple, leaves(value))):
        return called(function, kind, value)
    return itself(Call(constant(nulls.strict_call), (constant(function), whole(value))), kind)


def is_number(kind: SqlType) -> bool:
    """Return True if all values of a type are numbers."""
    return kind.kind in NUMBERS or kind.kind == "bool"


def collation_of(*types: SqlType) -> str | None:
    """Return the collation of a comparison: a written COLLATE, else that of the first column."""
    for kind in types:
        if kind.is_collated:
            return kind.collation
    return next((kind.collation for kind in types if kind.collation is not None), None)


def collated(value: Value, collation: str | None) -> Value:
    """A value as a collation compares it."""
    function = runtime.COLLATIONS.get(collation or "")
    if function is None or is_number(value.type) or value.type.kind in ("null", "bytes"):
        return value
    return mapped(function, value.type, value)


def converted(value: Value, affinity: str | None) -> Value:
    """A value where the other side of a comparison has some affinity."""
    if value.type.kind in ("null", "bytes"):
        return value
    if affinity in NUMERIC and not is_number(value.type):
        return mapped(runtime.numeric, replace(value.type, kind="any"), value)
    if affinity == "TEXT" and value.type.kind != "text":
        return mapped(runtime.as_text, replace(value.type, kind="any"), value)
    return value


def _written(value: Value) -> Value:
    """A date or time of a class of Python as its text."""
    if value.type.kind not in ("date", "time", "timestamp", "timestamptz"):
        return value
    return mapped(runtime.characters, TEXT, value)


def _affinity_between(left: SqlType, right: SqlType) -> str | None:
    mine, theirs = left.affinity, right.affinity
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    return "NUMERIC" if {mine, theirs} & NUMERIC else None


def compared(left: Value, right: Value, *, ordered: bool) -> tuple[Value, Value]:
    """Both sides of a comparison as what Python's `==` compares, or `<` if it is `ordered`."""
    if left.type.kind != right.type.kind:
        left, right = _written(left), _written(right)
    affinity = _affinity_between(left.type, right.type)
    collation = collation_of(left.type, right.type)
    mine, theirs = (collated(converted(v, affinity), collation) for v in (left, right))
    if not ordered or _are_of_one_class(mine.type, theirs.type):
        return mine, theirs
    return ranked(mine), ranked(theirs)


def _are_of_one_class(left: SqlType, right: SqlType) -> bool:
    kinds = {left.kind, right.kind} - {"null"}
    return kinds <= NUMBERS | {"bool"} or (len(kinds) == 1 and "any" not in kinds)


def has_collation(kind: SqlType) -> bool:
    """Return True if a type has a collation by which different texts may be the same."""
    return kind.collation in runtime.COLLATIONS


def ranked_by_collation(value: Value) -> Value:
    """A value by its collation, of which `unranked` is the value itself."""
    if not has_collation(value.type):
        return ranked(value)
    return mapped(runtime.RankBy(str(value.type.collation)), ANY, value)


def ranked(value: Value) -> Value:
    """A value by its class, and among those of its class."""
    return value if value.type.kind == "null" else mapped(runtime.rank, ANY, value)


def has_one_class(kind: SqlType) -> bool:
    """Return True if all values of a type are of one storage class, and compare as they are."""
    return kind.kind != "any"


def sorted_by(value: Value) -> Value:
    """Return the sort key of rows that are ordered by a value."""
    made = collated(value, value.type.collation)
    return made if has_one_class(made.type) else ranked(made)


def grouped_by(value: Value) -> Value:
    """Return a value that is equal for all values of one group."""
    return collated(value, value.type.collation)


def unranked(value: Value) -> Value:
    """The value whose `rank` this is."""
    return Value(Call(constant(runtime.value_of), (value.expr,)), value.type, value.nulls)


def as_truth(value: Value) -> Value:
    """A value as a condition."""
    return (
        value
        if is_number(value.type) or value.type.kind == "null"
        else mapped(runtime.truth, BOOL, value)
    )


def shown(value: Value) -> Value:
    """A value of a SELECT: a condition is 1 or 0."""
    return value if value.type.kind != "bool" or is_column(value.expr) else mapped(int, INT, value)


def together(types: Sequence[SqlType]) -> SqlType:
    """The type of what may be of several, which keep their classes; the affinity is the first's."""
    kinds = {kind.kind for kind in types} - {"null"}
    one = next(iter(kinds)) if len(kinds) == 1 else "float" if kinds and kinds <= NUMBERS else "any"
    return replace(types[0], kind=one, precision=None, scale=None, size=None)
