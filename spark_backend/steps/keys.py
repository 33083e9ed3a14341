"""Keys as columns that are equal where Python says that the keys are.

    1, True             64 bits both
    1, 1.0              doubles, if the integers are small enough to be some
    (a, b)              a column each
    None                equals None
    NaN                 equals nothing in a join; such rows match nothing and are left out
    -0.0                is 0.0

Keys whose equality no columns have are refused (`Inexact`), and the join stays elsewhere.

How rows stand in an order, as columns that sort them as the engine does.

    keys        in their directions, None where `nulls` says, NaN after all numbers
    ties        by the row itself where rows compare: None, numbers, text, tuples part by part
    what is left    rows that Python does not compare, as records without an order: they tie

Sound:  Spark orders numbers, text by code points, bytes, moments and decimals as Python does; a key
        that may be None without a place for it, or of another type, is refused.
Source: `reactive/engine/collections/order.py`, `sorting.py`.

Keys and values of an aggregate that only Python computes, computed before it, row by row.

    aggregate Sum(f(o)) by g(o)    ->    aggregate Sum(r[1]) by r[0]
                                           select (g(o), f(o))        in Python workers

So what is opaque stays out of the state, and the aggregate is of columns.

Sound:  each function is asked of each row once, as before; those that a type is known of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property, reduce
from types import NoneType
from typing import Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    Apply,
    Attribute,
    Display,
    Expr,
    Function,
    Item,
    Lifted,
    Parameter,
    all_parameters,
    constant,
    substitute,
    tuple_of,
)
from optimizer.plans.forms import NO_KEY, Key
from optimizer.plans.properties import bindings
from optimizer.plans.side_conditions import AnyJoin
from reactive.engine.codegen.functions import compiled_of
from reactive.engine.collections.order import compares
from reactive.engine.collections.zset import Row
from reactive.engine.operators.accumulators import CountAccumulator
from reactive.engine.operators.plain import sides, spread
from spark_backend.codec.columns import truth_of, value_of
from spark_backend.codec.hashing import flattened_values
from spark_backend.codec.schema import Plain, Record, Typed, type_name
from spark_backend.codec.values import Inexact, Value, as_type, comparable, field_of
from spark_backend.direct.flush import Leaves, Lookup, fields_read

HASH = "hash"
"""The column of a keyed frame from which buckets are taken."""


@dataclass(frozen=True)
class Side:
    """What a join asks of the rows of one side: which can match at all, and their key.

    Columns are made once: each takes calls to the JVM.
    """

    kept: Typed
    bindings: int
    tests: tuple[Function, ...]
    keys: tuple[Function, ...]
    types: tuple[Typed, ...]
    """Of the columns of the key: those that both sides have in common."""
    given: tuple[Typed, ...]
    """Of each part of the key on this side."""
    optional: tuple[bool, ...]
    """Of each column of the key, whether it may be null on this side."""
    _made: dict[str, list[Column]] = field(default_factory=dict, compare=False)

    def keyed(self, rows: DataFrame, prefix: str) -> DataFrame:
        """Rows as the columns `{prefix}_row`, `{prefix}_weight` and their key, `{prefix}_0` and so
        on; without those that match nothing. Other columns stay."""
        matchable = self._matchable
        more = [name for name in rows.columns if name not in ("row", "weight")]
        found = rows if matchable is None else rows.filter(matchable)
        return found.select(*self._named(prefix), *more)

    def unmatchable(self, rows: DataFrame) -> DataFrame | None:
        """The rows that match nothing, whatever there is on the other side; None if all may."""
        matchable = self._matchable
        return None if matchable is None else rows.filter(~matchable)

    @cached_property
    def _matchable(self) -> Column | None:
        asked = [truth_of(test, self._values()) for test in self.tests]
        for column, of in zip(self._keys, self.types, strict=True):
            if of.kind is float:
                asked.append(~F.coalesce(F.isnan(column), F.lit(False)))
        return reduce(lambda a, b: a & b, asked) if asked else None

    @cached_property
    def _keys(self) -> list[Column]:
        return self.columns(self._values())

    def _named(self, prefix: str) -> list[Column]:
        """The row, its weight and its key, under names that begin alike; made once."""
        if prefix not in self._made:
            keys = (key.alias(f"{prefix}_{place}") for place, key in enumerate(self._keys))
            row, weight = F.col("row"), F.col("weight")
            self._made[prefix] = [
                row.alias(f"{prefix}_row"),
                weight.alias(f"{prefix}_weight"),
                *keys,
            ]
        return self._made[prefix]

    def _values(self) -> list[Value]:
        return bound(Value(F.col("row"), self.kept), self.bindings)

    def columns(self, values: Sequence[Value]) -> list[Column]:
        """The key of a row."""
        flat = [part for key in self.keys for part in flattened(value_of(key, values))]
        return [_plain(as_type(v, of), of) for v, of in zip(flat, self.types, strict=True)]

    @cached_property
    def hash(self) -> Column:
        """A hash of the key of the column `row`."""
        return F.xxhash64(*self._keys)

    # The same of rows that are here.

    @cached_property
    def lookup(self) -> Lookup:
        """Finds rows by the key."""
        return Lookup(self.types, fields_read(self.keys, self.kept, self.bindings))

    @cached_property
    def has_records(self) -> bool:
        """Whether a part of the key is made of several columns."""
        return any(isinstance(of, Record) for of in self.given)

    @cached_property
    def key_of(self) -> Callable[[Row], Leaves | None]:
        """Gives the key of a row; None for one that matches nothing."""
        tests = [spread(test, self.bindings, compiled_of) for test in self.tests]
        calls = [spread(key, self.bindings, compiled_of) for key in self.keys]
        floats = [place for place, of in enumerate(self.types) if of.kind is float]
        if len(calls) == 1 and not (tests or floats or self.has_records):
            only = calls[0]
            return lambda row: (only(row),)

        def key_of(row: Row) -> Leaves | None:
            for test in tests:
                if not test(row):
                    return None
            leaves = tuple([call(row) for call in calls])
            if self.has_records:
                pairs = zip(self.given, leaves, strict=True)
                leaves = tuple(leaf for of, part in pairs for leaf in flattened_values(of, part))
            for place in floats:
                if leaves[place] != leaves[place]:
                    return None
            return leaves

        return key_of


def sides_of(node: AnyJoin, left: Typed, right: Typed, count: int) -> tuple[Side, Side]:
    """Both sides of a join over rows of these types; the left has `count` bindings.

    Raises
    ------
    Inexact: there is no key, or one that columns do not have.
    """
    of_left, of_right = sides(node)
    tests = [tuple(s.function for s in steps if not s.is_key) for _, steps in (of_left, of_right)]
    keys = [
        tuple(f for f in (written, *(s.function for s in steps if s.is_key)) if f is not None)
        for written, steps in (of_left, of_right)
    ]
    if not keys[0]:
        raise Inexact("it pairs rows without a key")
    given = [
        [value_of(key, values) for key in own]
        for own, values in zip(keys, (bound(_row(left), count), bound(_row(right), 1)), strict=True)
    ]
    types = _types(*given)
    rows = ((left, count), (right, 1))
    made = tuple(
        Side(*of, tests[place], keys[place], types, tuple(v.of for v in values), _optional(values))
        for place, (of, values) in enumerate(zip(rows, given, strict=True))
    )
    for side in made:
        values = bound(_row(side.kept), side.bindings)
        for test in side.tests:
            truth_of(test, values)
    return made[0], made[1]


def bound(row: Value, count: int) -> list[Value]:
    """The bindings of a row."""
    if count == 1:
        return [row]
    assert isinstance(row.of, Record)
    return [field_of(row, place) for place in range(count)]


def flattened(value: Value, *, may_be_none: bool = False) -> list[Value]:
    """The plain columns that a value is made of; a record that is None has none, which does only
    where it `may_be_none`."""
    if not isinstance(value.of, Record):
        return [value]
    if value.of.optional and not may_be_none:
        raise Inexact("a part of a key is a record or None")
    parts = [field_of(value, place) for place in range(len(value.of.fields))]
    return [plain for part in parts for plain in flattened(part, may_be_none=may_be_none)]


def same(left: str, right: str, optional: Sequence[bool]) -> Column:
    """Whether the keys of two keyed frames are equal, None being equal to None.

    Parameters
    ----------
    optional: of each column, whether it may be null on both sides. What is not is compared without
        regard to that: Spark then finds integers in a map of integers, not of rows.
    """
    signs = ("<=>" if may_be else "=" for may_be in optional)
    return F.expr(" and ".join(f"{left}_{n} {sign} {right}_{n}" for n, sign in enumerate(signs)))


def _optional(key: Sequence[Value]) -> tuple[bool, ...]:
    return tuple(plain.optional for part in key for plain in flattened(part))


def _types(left: Sequence[Value], right: Sequence[Value]) -> tuple[Typed, ...]:
    found: list[Typed] = []
    for a, b in zip(left, right, strict=True):
        _check_alike(a, b)
        for x, y in zip(flattened(a), flattened(b), strict=True):
            found.append(comparable(x, y)[2])
    return tuple(found)


def _check_alike(a: Value, b: Value) -> None:
    """Records are equal only to records of their kind; a tuple and a named tuple are one."""
    if isinstance(a.of, Record) != isinstance(b.of, Record):
        raise Inexact("one side of a key is a record, the other is none")
    if isinstance(a.of, Record) and isinstance(b.of, Record):
        tuples = issubclass(a.of.kind, tuple) and issubclass(b.of.kind, tuple)
        if not (tuples or a.of.kind is b.of.kind) or len(a.of.fields) != len(b.of.fields):
            raise Inexact("the sides of a key are records of different kinds")
        if any(part.of.kind is float for part in (*flattened(a), *flattened(b))):
            raise Inexact("a NaN in a record is compared by identity")


def _row(kept: Typed) -> Value:
    return Value(F.col("row"), kept)


def _plain(column: Column, of: Typed) -> Column:
    """Of equal floats, one."""
    return column + F.lit(0.0) if of.kind is float else column


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
