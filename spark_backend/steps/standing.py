"""How rows stand in an order, as columns that sort them as the engine does.

    keys        in their directions, None where `nulls` says, NaN after all numbers
    ties        by the row itself where rows compare: None, numbers, text, tuples part by part
    what is left    rows that Python does not compare, as records without an order: they tie

Sound:  Spark orders numbers, text by code points, bytes, moments and decimals as Python does; a key
        that may be None without a place for it, or of another type, is refused.
Source: `reactive/engine/collections/order.py`, `sorting.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from types import NoneType
from typing import Any, Literal

from pyspark.sql import Column
from pyspark.sql import functions as F

from optimizer import plan
from optimizer.expr import (
    Attribute,
    Display,
    Expr,
    Function,
    Item,
    Lifted,
    Parameter,
    constant,
    substitute,
)
from optimizer.plans.properties import bindings
from optimizer.plans.unique_keys import NO_KEY, Key
from reactive.engine.collections.order import compares
from spark_backend.codec.columns import value_of
from spark_backend.codec.schema import Plain, Record, Typed, type_name
from spark_backend.codec.values import Inexact, Value, field_of
from spark_backend.steps.keys import bound

_ORDERED = (int, float, bool, str, bytes, date, datetime, Decimal)
Nulls = Literal["first", "last"]


@dataclass(frozen=True, slots=True)
class By:
    """A column that rows are sorted by."""

    column: Column
    descending: bool = False
    nulls: Nulls = "first"

    @property
    def sort(self) -> Column:
        """For `orderBy`."""
        match self.descending, self.nulls:
            case False, "first":
                return self.column.asc_nulls_first()
            case False, _:
                return self.column.asc_nulls_last()
            case True, "first":
                return self.column.desc_nulls_first()
            case _:
                return self.column.desc_nulls_last()


@dataclass(frozen=True, slots=True)
class Standing:
    """What the rows of an order are sorted by.

    `is_total`: rows that differ never tie.
    """

    by: tuple[By, ...]
    is_total: bool


def standing(
    keys: Sequence[plan.SortKey],
    row: Value,
    count: int,
    unique: Key,
    group: Function | None = None,
) -> Standing:
    """How rows stand.

    Parameters
    ----------
    count: how many bindings a row has.
    unique: what rows that differ do not have in common; nothing if that is not known.
    group: the key of the groups in each of which there is an order.

    Raises
    ------
    Inexact: Spark has another order, or Python may have none.
    """
    values = bound(row, count)
    by = [one for key in keys for one in _of_key(key, value_of(key.function, values))]
    asked = [*(key.function for key in keys), *([group] if group is not None else [])]
    known = frozenset(part for function in asked for part in parts_of(function))
    parts = [(value, Parameter(place)) for place, value in enumerate(values)]
    ties = [one for value, _ in parts for one in _of_tie(value)]
    is_known = bool(unique) and unique <= known
    is_total = is_known or all(_is_decided(value.of, path, known) for value, path in parts)
    return Standing((*by, *ties), is_total)


def unique_of(node: plan.Node, inputs: Mapping[int, Key]) -> Key:
    """What the rows of a node have alone, of the bindings of a row; nothing if that is not known.

    Parameters
    ----------
    inputs: what those of each input have, by its place.
    """
    match node:
        case plan.Recursive(index=index):
            return inputs[index]
        case plan.Where(source) | plan.Distinct(source):
            return unique_of(source, inputs)
        case plan.SemiJoin(left) | plan.AntiJoin(left) | plan.Difference(left):
            return unique_of(left, inputs)
        case plan.Join(left, right):
            one, other = unique_of(left, inputs), unique_of(right, inputs)
            shifted = (substitute(part, (Parameter(bindings(left)),)) for part in other)
            return one.union(shifted) if one and other else NO_KEY
        case _:
            return NO_KEY


def _of_key(key: plan.SortKey, value: Value) -> Iterator[By]:
    """The columns of a key."""
    if value.of.kind is NoneType:
        raise Inexact("a key that is always None")
    if value.optional and key.nulls is None:
        raise Inexact("an order may raise for None")
    nulls: Nulls = key.nulls or "first"
    if not isinstance(value.of, Record):
        if value.of.kind not in _ORDERED:
            raise Inexact(f"the order of {type_name(value.of)} is not Spark's")
        yield _by(value, key.descending, nulls)
        return
    _check_tuple(value.of)
    if value.optional:
        yield By(value.column.isNull(), nulls == "first")
    for place in range(len(value.of.fields)):
        yield from _of_key(key, field_of(value, place))


def _check_tuple(of: Record) -> None:
    same: Any = tuple
    if not issubclass(of.kind, tuple) or of.kind.__lt__ is not same.__lt__:
        raise Inexact(f"the order of {type_name(of)} is not Spark's")
    if of.kind is not tuple and any(part.kind is float for part in of.fields):
        raise Inexact(f"a NaN in {type_name(of)} has no place")


def _of_tie(value: Value) -> Iterator[By]:
    """The columns by which rows of equal keys stand; none of what does not compare."""
    if isinstance(value.of, Plain):
        yield _by(value)
        return
    if value.optional:
        yield By(value.column.isNotNull())
    if isinstance(value.of, Record) and compares(value.of.kind):
        for place in range(len(value.of.fields)):
            yield from _of_tie(field_of(value, place))


def _is_decided(of: Typed, path: Expr, known: frozenset[Expr]) -> bool:
    """Whether values that differ never tie, as they compare, or as keys are made of their parts."""
    if isinstance(of, Plain) or path in known:
        return True
    if not isinstance(of, Record):
        return False
    paths = [_part(of, path, place) for place in range(len(of.fields))]
    if compares(of.kind):
        return all(_is_decided(f, p, known) for f, p in zip(of.fields, paths, strict=True))
    return not of.optional and all(part in known for part in paths)


def _part(of: Record, path: Expr, place: int) -> Expr:
    if issubclass(of.kind, tuple):
        return Item(path, constant(place))
    return Attribute(path, of.names[place])


def parts_of(function: Function) -> Iterator[Expr]:
    """What a function gives as it is, alone or in a tuple."""
    if not isinstance(function, Lifted):
        return
    waiting = [function.body]
    while waiting:
        expr = waiting.pop()
        yield expr
        if isinstance(expr, Display) and expr.kind == "tuple":
            waiting.extend(expr.items)


def _by(value: Value, descending: bool = False, nulls: Nulls = "first") -> By:
    column = value.column
    if value.of.kind is float:
        column = column + F.lit(0.0)
    return By(column, descending, nulls)
