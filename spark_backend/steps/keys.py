"""Keys as columns that are equal if and only if Python says that the keys are.

    1, True             64 bits both
    1, 1.0              doubles, if all integers of the type are exact doubles
    (a, b)              a column each
    None                equals None
    NaN                 equals nothing in a join; its rows match nothing and are dropped
    -0.0                is 0.0

Keys whose equality columns cannot express are refused (`Inexact`), and the join stays elsewhere.

`sort_order` translates an order to columns that sort rows as the engine does:

    keys        in their directions, None at the place of `nulls`, NaN after all numbers
    ties        by the row itself if rows compare: None, numbers, text, tuples part by part
    others      rows that Python does not compare, as records without an order: they tie

Sound:  Spark orders numbers, text by code points, bytes, moments and decimals as Python does; a key
        that may be None without `nulls`, or of another type, is refused.
Source: `reactive/engine/collections/order.py`, `sorting.py`.

`precompute_inputs` computes keys and values that need Python before an aggregate, row by row:

    aggregate Sum(f(o)) by g(o)    ->    aggregate Sum(r[1]) by r[0]
                                           select (g(o), f(o))        in Python workers

So opaque callables stay out of the state, and the aggregate is in columns.

Sound:  each function is called once per row, as before; its result type must be known.
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
from reactive.engine.collections.order import is_comparable_class
from reactive.engine.collections.zset import Row
from reactive.engine.operators.accumulators import CountAccumulator
from reactive.engine.operators.plain import sides, spread_bindings
from spark_backend.codec.columns import truth_of, value_of
from spark_backend.codec.hashing import flattened_values
from spark_backend.codec.schema import Plain, Record, Typed, type_name
from spark_backend.codec.values import Inexact, Value, as_type, field_of, to_comparable
from spark_backend.direct.flush import Leaves, Lookup, key_fields

HASH = "hash"
"""The column of a keyed frame with the hash of the key."""


@dataclass(frozen=True)
class Side:
    """The part of a join condition on one side: the tests of a row, and its key.

    Columns are made once: each takes calls to the JVM.
    """

    kept: Typed
    bindings: int
    tests: tuple[Function, ...]
    keys: tuple[Function, ...]
    types: tuple[Typed, ...]
    """The types of the columns of the key, common to both sides."""
    given: tuple[Typed, ...]
    """The type of each part of the key on this side."""
    optional: tuple[bool, ...]
    """For each column of the key, True if it may be null on this side."""
    _made: dict[str, list[Column]] = field(default_factory=dict, compare=False)

    def keyed(self, rows: DataFrame, prefix: str) -> DataFrame:
        """Return rows with the columns `{prefix}_row`, `{prefix}_weight` and the key, `{prefix}_0`
        and so on, without rows that match nothing. Other columns stay."""
        matchable = self._matchable
        more = [name for name in rows.columns if name not in ("row", "weight")]
        found = rows if matchable is None else rows.filter(matchable)
        return found.select(*self._prefixed_columns(prefix), *more)

    def unmatchable(self, rows: DataFrame) -> DataFrame | None:
        """Return the rows that match no row of any other side; None if all may match."""
        matchable = self._matchable
        return None if matchable is None else rows.filter(~matchable)

    @cached_property
    def _matchable(self) -> Column | None:
        """Return the condition that a row can match any row: it passes the tests, and its key has
        no NaN; None if every row can."""
        asked = [truth_of(test, self._values()) for test in self.tests]
        for column, of in zip(self._keys, self.types, strict=True):
            if of.kind is float:
                asked.append(~F.coalesce(F.isnan(column), F.lit(False)))
        return reduce(lambda a, b: a & b, asked) if asked else None

    @cached_property
    def _keys(self) -> list[Column]:
        return self.columns(self._values())

    def _prefixed_columns(self, prefix: str) -> list[Column]:
        """Return the row, its weight and its key, with a prefix of their names; made once."""
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
        return row_bindings(Value(F.col("row"), self.kept), self.bindings)

    def columns(self, values: Sequence[Value]) -> list[Column]:
        """Return the columns of the key of a row."""
        flat = [part for key in self.keys for part in flatten_value(value_of(key, values))]
        return [
            _normalize_float(as_type(v, of), of) for v, of in zip(flat, self.types, strict=True)
        ]

    @cached_property
    def hash(self) -> Column:
        """The hash of the key of the column `row`."""
        return F.xxhash64(*self._keys)

    # For rows of this process.

    @cached_property
    def lookup(self) -> Lookup:
        """A look-up of rows by the key."""
        return Lookup(self.types, key_fields(self.keys, self.kept, self.bindings))

    @cached_property
    def has_records(self) -> bool:
        """True if a part of the key has several columns."""
        return any(isinstance(of, Record) for of in self.given)

    @cached_property
    def key_of(self) -> Callable[[Row], Leaves | None]:
        """A function from a row to its key, or None if it matches nothing."""
        tests = [spread_bindings(test, self.bindings, compiled_of) for test in self.tests]
        calls = [spread_bindings(key, self.bindings, compiled_of) for key in self.keys]
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


def make_sides(node: AnyJoin, left: Typed, right: Typed, count: int) -> tuple[Side, Side]:
    """Return both sides of a join over rows of the given types; the left side has `count` bindings.

    Raises
    ------
    Inexact: there is no key, or columns cannot express it.
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
        for own, values in zip(
            keys,
            (row_bindings(_row_value(left), count), row_bindings(_row_value(right), 1)),
            strict=True,
        )
    ]
    types = _common_types(*given)
    rows = ((left, count), (right, 1))
    made = tuple(
        Side(
            *of,
            tests[place],
            keys[place],
            types,
            tuple(v.of for v in values),
            _optional_columns(values),
        )
        for place, (of, values) in enumerate(zip(rows, given, strict=True))
    )
    for side in made:
        values = row_bindings(_row_value(side.kept), side.bindings)
        for test in side.tests:
            truth_of(test, values)
    return made[0], made[1]


def row_bindings(row: Value, count: int) -> list[Value]:
    """Return the bindings of a row."""
    if count == 1:
        return [row]
    assert isinstance(row.of, Record)
    return [field_of(row, place) for place in range(count)]


def flatten_value(value: Value, *, may_be_none: bool = False) -> list[Value]:
    """Return the plain columns of a value; a record that may be None is refused unless it
    `may_be_none`."""
    if not isinstance(value.of, Record):
        return [value]
    if value.of.optional and not may_be_none:
        raise Inexact("a part of a key is a record or None")
    parts = [field_of(value, place) for place in range(len(value.of.fields))]
    return [plain for part in parts for plain in flatten_value(part, may_be_none=may_be_none)]


def keys_equal(left: str, right: str, optional: Sequence[bool]) -> Column:
    """Return the equality of the keys of two keyed frames, where None equals None.

    Parameters
    ----------
    optional: for each column, True if it may be null on both sides. Others are compared by plain
        equality: Spark then uses a hash map of integers instead of rows.
        regard to that: Spark then finds integers in a map of integers, not of rows.
    """
    signs = ("<=>" if may_be else "=" for may_be in optional)
    return F.expr(" and ".join(f"{left}_{n} {sign} {right}_{n}" for n, sign in enumerate(signs)))


def _optional_columns(key: Sequence[Value]) -> tuple[bool, ...]:
    return tuple(plain.optional for part in key for plain in flatten_value(part))


def _common_types(left: Sequence[Value], right: Sequence[Value]) -> tuple[Typed, ...]:
    """Return the types that make the leaves of both keys comparable.

    Raises `Inexact` if Spark compares them otherwise.
    """
    found: list[Typed] = []
    for a, b in zip(left, right, strict=True):
        _check_alike(a, b)
        for x, y in zip(flatten_value(a), flatten_value(b), strict=True):
            found.append(to_comparable(x, y)[2])
    return tuple(found)


def _check_alike(a: Value, b: Value) -> None:
    """Check that records are compared with records of their kind; a tuple and a named tuple are one
    kind."""
    if isinstance(a.of, Record) != isinstance(b.of, Record):
        raise Inexact("one side of a key is a record, the other is none")
    if isinstance(a.of, Record) and isinstance(b.of, Record):
        tuples = issubclass(a.of.kind, tuple) and issubclass(b.of.kind, tuple)
        if not (tuples or a.of.kind is b.of.kind) or len(a.of.fields) != len(b.of.fields):
            raise Inexact("the sides of a key are records of different kinds")
        if any(part.of.kind is float for part in (*flatten_value(a), *flatten_value(b))):
            raise Inexact("a NaN in a record is compared by identity")


def _row_value(kept: Typed) -> Value:
    return Value(F.col("row"), kept)


def _normalize_float(column: Column, of: Typed) -> Column:
    """Return the column with equal floats made identical."""
    return column + F.lit(0.0) if of.kind is float else column


_ORDERED = (int, float, bool, str, bytes, date, datetime, Decimal)
Nulls = Literal["first", "last"]


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column of a sort order."""

    column: Column
    descending: bool = False
    nulls: Nulls = "first"

    @property
    def sort(self) -> Column:
        """The column for `orderBy`."""
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
class SortOrder:
    """The sort columns of an order.

    `is_total`: True if different rows never tie.
    """

    by: tuple[SortColumn, ...]
    is_total: bool


def sort_order(
    keys: Sequence[plan.SortKey],
    row: Value,
    count: int,
    unique: Key,
    group: Function | None = None,
) -> SortOrder:
    """Translate an order to sort columns.

    Parameters
    ----------
    count: the number of bindings of a row.
    unique: expressions that identify a row; empty if none are known.
    group: the key of the groups that are ordered separately.

    Raises
    ------
    Inexact: Spark has another order, or Python may have none.
    """
    values = row_bindings(row, count)
    by = [one for key in keys for one in _key_columns(key, value_of(key.function, values))]
    asked = [*(key.function for key in keys), *([group] if group is not None else [])]
    known = frozenset(part for function in asked for part in returned_parts(function))
    parts = [(value, Parameter(place)) for place, value in enumerate(values)]
    ties = [one for value, _ in parts for one in _tie_columns(value)]
    is_known = bool(unique) and unique <= known
    is_total = is_known or all(_is_decided(value.of, path, known) for value, path in parts)
    return SortOrder((*by, *ties), is_total)


def unique_key_of(node: plan.Node, inputs: Mapping[int, Key]) -> Key:
    """Return expressions over the bindings of a row that identify it; empty if none are known.

    Parameters
    ----------
    inputs: the expressions that identify the rows of each input, by position.
    """
    match node:
        case plan.Recursive(index=index):
            return inputs[index]
        case plan.Where(source) | plan.Distinct(source):
            return unique_key_of(source, inputs)
        case plan.SemiJoin(left) | plan.AntiJoin(left) | plan.Difference(left):
            return unique_key_of(left, inputs)
        case plan.Join(left, right):
            one, other = unique_key_of(left, inputs), unique_key_of(right, inputs)
            shifted = (substitute(part, (Parameter(bindings(left)),)) for part in other)
            return one.union(shifted) if one and other else NO_KEY
        case _:
            return NO_KEY


def _key_columns(key: plan.SortKey, value: Value) -> Iterator[SortColumn]:
    """Yield the sort columns of a key.

    Raises `Inexact` if Spark orders its values otherwise than Python, or comparing them may raise.
    """
    if value.of.kind is NoneType:
        raise Inexact("a key that is always None")
    if value.optional and key.nulls is None:
        raise Inexact("an order may raise for None")
    nulls: Nulls = key.nulls or "first"
    if not isinstance(value.of, Record):
        if value.of.kind not in _ORDERED:
            raise Inexact(f"the order of {type_name(value.of)} is not Spark's")
        yield _sort_column(value, key.descending, nulls)
        return
    _check_tuple(value.of)
    if value.optional:
        yield SortColumn(value.column.isNull(), nulls == "first")
    for place in range(len(value.of.fields)):
        yield from _key_columns(key, field_of(value, place))


def _check_tuple(of: Record) -> None:
    """Raise `Inexact` unless Spark orders records of this type as Python does."""
    plain: Any = tuple
    if not issubclass(of.kind, tuple) or of.kind.__lt__ is not plain.__lt__:
        raise Inexact(f"the order of {type_name(of)} is not Spark's")
    if of.kind is not tuple and any(part.kind is float for part in of.fields):
        raise Inexact(f"a NaN in {type_name(of)} has no place")


def _tie_columns(value: Value) -> Iterator[SortColumn]:
    """Yield the sort columns for rows with equal keys; none for values that do not compare."""
    if isinstance(value.of, Plain):
        yield _sort_column(value)
        return
    if value.optional:
        yield SortColumn(value.column.isNotNull())
    if isinstance(value.of, Record) and is_comparable_class(value.of.kind):
        for place in range(len(value.of.fields)):
            yield from _tie_columns(field_of(value, place))


def _is_decided(of: Typed, path: Expr, known: frozenset[Expr]) -> bool:
    """Return True if different values never tie: they compare, or their parts are keys."""
    if isinstance(of, Plain) or path in known:
        return True
    if not isinstance(of, Record):
        return False
    paths = [_part_path(of, path, place) for place in range(len(of.fields))]
    if is_comparable_class(of.kind):
        return all(_is_decided(f, p, known) for f, p in zip(of.fields, paths, strict=True))
    return not of.optional and all(part in known for part in paths)


def _part_path(of: Record, path: Expr, place: int) -> Expr:
    if issubclass(of.kind, tuple):
        return Item(path, constant(place))
    return Attribute(path, of.names[place])


def returned_parts(function: Function) -> Iterator[Expr]:
    """Yield the expressions that a function returns unchanged, alone or in a tuple."""
    if not isinstance(function, Lifted):
        return
    waiting = [function.body]
    while waiting:
        expr = waiting.pop()
        yield expr
        if isinstance(expr, Display) and expr.kind == "tuple":
            waiting.extend(expr.items)


def _sort_column(value: Value, descending: bool = False, nulls: Nulls = "first") -> SortColumn:
    """Return a value as a column to sort by, in which -0.0 equals 0.0."""
    column = value.column
    if value.of.kind is float:
        column = column + F.lit(0.0)
    return SortColumn(column, descending, nulls)


def precompute_inputs(node: plan.Aggregate, kept: Typed) -> plan.Aggregate:
    """Return an aggregate over a select of the values that it reads; `node` itself if columns have
    all of them.

    Parameters
    ----------
    kept: the type of the rows of its input.
    """
    count = bindings(node.input)
    row = row_bindings(Value(F.col("row"), kept), count)
    read = [f for f in (node.key, *(folded.value for folded in node.aggregates)) if f is not None]
    distinct = list(dict.fromkeys(read))
    reads_row = any(f.value is None and not _is_count(f) for f in node.aggregates)
    if reads_row or all(_is_column(function, row) for function in distinct):
        return node
    items = tuple(_function_body(function, count) for function in distinct)
    selected = Lifted(
        tuple_of(*items), _parameter_names(distinct, count), _origins(distinct), count
    )
    places = {function: _item_function(place) for place, function in enumerate(distinct)}
    folded = tuple(
        f if f.value is None else replace(f, value=places[f.value]) for f in node.aggregates
    )
    key = None if node.key is None else places[node.key]
    return replace(node, input=plan.Select(node.input, selected), key=key, aggregates=folded)


def _is_count(folded: plan.Folded) -> bool:
    return isinstance(folded.accumulator, CountAccumulator)


def _is_column(function: Function, row: Sequence[Value]) -> bool:
    """Return True if Spark can compute the function from the columns of a row."""
    try:
        value_of(function, row)
    except Inexact:
        return False
    return True


def _function_body(function: Function, count: int) -> Expr:
    if isinstance(function, Opaque):
        return Apply(function, all_parameters(count))
    return function.body


def _parameter_names(functions: Sequence[Function], count: int) -> tuple[str, ...]:
    named = next((f.names for f in functions if isinstance(f, Lifted)), None)
    return named or tuple(f"row{place}" for place in range(count))


def _origins(functions: Sequence[Function]) -> tuple[Opaque, ...]:
    each = ((f,) if isinstance(f, Opaque) else f.origins for f in functions)
    return tuple(origin for several in each for origin in several)


def _item_function(place: int) -> Lifted:
    return Lifted(Item(Parameter(0), constant(place)), ("row",), (), 1)
