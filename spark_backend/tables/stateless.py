"""Run linear nodes in Python workers; read DataFrames and files as rows of a type.

- `filter_rows`, `pack_rows`, `columnize_rows`, `chain_entries` run in Python workers: a chain of
  linear nodes over Arrow batches with the columns `row` and `weight`. They are pure functions that
  do not need Spark. An exception of a callable is raised again with the row in its text.
- `read_path`, `as_rows`, `check_values` turn a DataFrame or file into rows; columns are checked by
  name, type and content.
- `worker_function` sends a function to Python workers by name: a worker imports its module after
  adding the paths of the driver. `adopt_classes` makes the classes of the script known there.

Columns of a frame and the row:

    columns number: int, customer: string      row: struct<number: bigint, customer: string>
    of any order                               weight: 1

All columns of files are nullable, so a nullable column is accepted, and its values are checked
once.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from itertools import compress
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from optimizer import plan
from optimizer.plans.explain import headline
from optimizer.plans.join_lists import callable_of_row
from optimizer.plans.properties import bindings
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.remote.fragments import offloaded_fragment
from reactive.errors import OffloadError, TableError
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.codec import Codec, loads
from spark_backend.codec.schema import PLACES, Kept, Pickled, Plain, Record, Typed, Whole, type_name
from spark_backend.codec.values import count_values, literal, spark_type

RAISED = "a callable of the query raised: "
"""The text before the exception of a callable, in the message of a worker."""
PACKED = pa.schema([("row", pa.binary()), ("weight", pa.int64())])
ENTRIES = pa.schema(
    [
        ("bucket", pa.int64()),
        ("side", pa.int8()),
        ("row", pa.binary()),
        ("weight", pa.int64()),
    ]
)
Weighted = tuple[list[Row], list[int]]
Batches = Iterable[pa.RecordBatch]


def filter_rows(
    plan_bytes: bytes, classes: dict[str, bytes], kept_as: bytes, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """Drop the rows of batches that a chain of `where` rejects; rows stay as they are encoded."""
    adopt_classes(classes)
    chain, kept = _load_chain(plan_bytes), pickle.loads(kept_as)
    for batch in batches:
        rows = decode_batch(kept, batch)
        yield batch.filter(pa.array(_mask(chain, rows), pa.bool_()))


def pack_rows(
    plan_bytes: bytes, classes: dict[str, bytes], kept_as: bytes, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """Run a chain over batches, and yield its result as pickled rows with weights."""
    adopt_classes(classes)
    chain, kept, codec = _load_chain(plan_bytes), pickle.loads(kept_as), Codec(stable=False)
    for batch in batches:
        rows, weights = _run_chain(chain, _decode_weighted(kept, batch))
        packed = [codec.dumps(row) for row in rows]
        yield pa.record_batch(
            [pa.array(packed, pa.binary()), pa.array(weights, pa.int64())], schema=PACKED
        )


def columnize_rows(
    plan_bytes: bytes, classes: dict[str, bytes], kept_as: bytes, wanted: bytes, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """Run a chain over batches, and yield its result as columns of the type that its last node is
    known to return; raise for a row of another type."""
    adopt_classes(classes)
    chain, kept, of = _load_chain(plan_bytes), pickle.loads(kept_as), pickle.loads(wanted)
    for batch in batches:
        rows, weights = _run_chain(chain, _decode_weighted(kept, batch))
        try:
            array = to_arrow(of, rows)
        except OffloadError as error:
            what = str(error).partition("\n")[0]
            raise RuntimeError(
                f"{RAISED}OffloadError: {what}; annotate what {headline(chain[-1])} calls as it is"
            ) from None
        yield pa.record_batch([array, pa.array(weights, pa.int64())], names=["row", "weight"])


def chain_entries(
    plan_bytes: bytes,
    classes: dict[str, bytes],
    kept_as: bytes,
    onto: bytes,
    place: int,
    stable: bool,
    batches: Batches,
) -> Iterator[pa.RecordBatch]:
    """Run a chain over batches, and yield its result as entries of an input of a part."""
    adopt_classes(classes)
    chain, kept, codec = _load_chain(plan_bytes), pickle.loads(kept_as), Codec(stable=stable)
    prepare = offloaded_fragment(_load_node(onto)).prepare[place]
    for batch in batches:
        rows, weights = _run_chain(chain, _decode_weighted(kept, batch))
        found = [(*p, weight) for p, weight in zip(map(prepare, rows), weights, strict=True) if p]
        columns: tuple[list[Any], ...] = (
            [codec.bucket(key) for key, _, _ in found],
            [place] * len(found),
            [codec.dumps(row) for _, row, _ in found],
            [weight for _, _, weight in found],
        )
        yield _record_batch(ENTRIES, *columns)


def decode_batch(kept: Kept, batch: Any) -> list[Row]:
    """Decode the rows of a batch or table, pickled or in columns."""
    column = batch.column("row")
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(kept, Pickled):
        return [loads(data) for data in column.to_pylist()]
    return from_arrow(kept, column)


def _record_batch(schema: pa.Schema, *columns: list[Any]) -> pa.RecordBatch:
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def _decode_weighted(kept: Kept, batch: pa.RecordBatch) -> Weighted:
    return decode_batch(kept, batch), batch.column("weight").to_pylist()


def _run_chain(chain: list[plan.Node], weighted: Weighted) -> Weighted:
    """Run the nodes over rows, one after the other."""
    for node in chain:
        weighted = _run_node(node, *weighted)
    return weighted


def _mask(chain: list[plan.Node], rows: list[Row]) -> list[bool]:
    """Return a mask of the rows that pass all predicates; a predicate sees only rows that passed
    the earlier ones."""
    there = list(range(len(rows)))
    for node in chain:
        assert isinstance(node, plan.Where)
        passed = _call_each(node, node.predicate, [rows[place] for place in there])
        there = list(compress(there, passed))
    mask = [False] * len(rows)
    for place in there:
        mask[place] = True
    return mask


def _run_node(node: plan.Node, rows: list[Row], weights: list[int]) -> Weighted:
    """Return the rows and weights after a linear node. Raises `TypeError` for any other node."""
    match node:
        case plan.Where(_, predicate):
            passed = _call_each(node, predicate, rows)
            return list(compress(rows, passed)), list(compress(weights, passed))
        case plan.Select(_, function):
            return list(map(canonical, _call_each(node, function, rows))), weights
        case plan.Extend():
            return list(map(canonical, _call_each(node, callable_of_row(node), rows))), weights
        case plan.SelectMany(_, function):
            return _repeat_weights(weights, _call_each(node, function, rows, list))
        case plan.Unnest(source, function):
            alone = bindings(source) == 1
            found = _call_each(node, function, rows, list)
            pairs = [
                [(row, e) if alone else (*row, e) for e in elements]
                for row, elements in zip(rows, found, strict=True)
            ]
            return _repeat_weights(weights, pairs)
        case _:
            raise TypeError(f"{type(node).__name__} is not done row by row")


def _repeat_weights(weights: list[int], found: list[list[Any]]) -> Weighted:
    """Return all rows of the lists `found`, each with the weight of the row that its list is
    from."""
    rows = [canonical(row) for several in found for row in several]
    each = (weight for several, weight in zip(found, weights, strict=True) for _ in several)
    return rows, list(each)


def _call_each(
    node: Any, function: Any, rows: list[Row], finish: Callable[[Any], Any] | None = None
) -> list[Any]:
    """Call a callable on each row, and return its results, each converted by `finish`.

    Raises `RuntimeError`, with the row, if a call raises.
    """
    call, alone, out = callable_of(function), bindings(node.input) == 1, []
    finish = finish or (bool if isinstance(node, plan.Where) else None)
    row = None
    try:
        for row in rows:
            found = call(row) if alone else call(*row)
            out.append(found if finish is None else finish(found))
    except (Exception, SystemExit) as error:
        kind = type(error).__name__
        raise RuntimeError(
            f"{RAISED}{kind}: {error}; in {headline(node)}, on row {row!r:.200}"
        ) from error
    return out


@lru_cache(maxsize=16)
def _load_node(plan_bytes: bytes) -> plan.Node:
    node: plan.Node = pickle.loads(plan_bytes)
    return node


def _load_chain(plan_bytes: bytes) -> list[plan.Node]:
    """Return the nodes of a chain, from input to output."""
    found, node = [], _load_node(plan_bytes)
    while not isinstance(node, plan.Recursive):
        found.append(node)
        node = node.inputs()[0]
    return found[::-1]


SHORTER = {
    int: (T.ByteType, T.ShortType, T.IntegerType, T.LongType),
    float: (T.FloatType, T.DoubleType),
    bytes: (T.BinaryType,),
    bool: (T.BooleanType,),
    date: (T.DateType,),
    datetime: (T.TimestampNTZType,),
}
"""The column types whose values a field of a type stores unchanged."""
HINTS = {
    T.TimestampType: 'a moment without time zone: cast("timestamp_ntz")',
    T.DecimalType: "cast it, or annotate the field as Decimal",
}
PARQUET = "parquet"
ENDS = {date: (date.min, date.max), datetime: (datetime.min, datetime.max)}
"""The range of dates in Python, which is smaller than in Spark."""


def read_path(spark: SparkSession, path: str, of: Typed, format: str | None) -> DataFrame:
    """Return the DataFrame of a path; without `format`, the name of the file decides.

    Raises `OffloadError` for a CSV file whose rows are not records.

    A CSV file has a header, and is read with the types of the row. Delta needs its package in the
    session.
    """
    format = format_of(path, format)
    if format != "csv":
        return spark.read.format(format).load(path)
    header = spark.read.csv(path, header=True)
    if not isinstance(of, Record):
        raise OffloadError(f"{path}: rows of {type_name(of)} have no columns to read from CSV")
    names = set(header.columns)
    typed = spark_type(of)
    assert isinstance(typed, T.StructType)
    if names != set(of.names):
        return header  # the caller reports which columns are wrong
    ordered = T.StructType([typed[name] for name in header.columns])
    return spark.read.csv(path, header=True, schema=ordered, mode="FAILFAST", enforceSchema=False)


def format_of(path: str, format: str | None) -> str:
    """Return the format of a path: `format`, or by the name of the file."""
    return format or ("csv" if PurePosixPath(path).suffix == ".csv" else PARQUET)


def as_rows(frame: DataFrame, of: Typed, name: str) -> DataFrame:
    """Return the rows of a DataFrame, each with the weight 1.

    Parameters
    ----------
    of: the row type. A tuple takes the columns in order, a class by name, a single value the only
        column.
    name: the name of the table, for errors.

    Raises
    ------
    TableError: columns are missing, superfluous or of another type.
    """
    row = row_column(frame, of, f"table {name!r}")
    return frame.select(row.alias("row"), F.lit(1).cast("long").alias("weight"))


def row_column(frame: DataFrame, of: Typed, where: str) -> Column:
    """Combine the columns of a DataFrame to one column of rows; raise as `as_rows` does."""
    columns = [F.col(f"`{n}`") for n in frame.columns]
    types = [field.dataType for field in frame.schema.fields]
    if isinstance(of, Record):
        if of.kind is tuple:
            _check_count(len(columns), len(of.fields), where)
            found = dict(zip(of.names, zip(columns, types, strict=True), strict=True))
        else:
            found = dict(zip(frame.columns, zip(columns, types, strict=True), strict=True))
        return _struct_column(found, of, where)
    _check_count(len(columns), 1, where)
    return _cast_column(columns[0], types[0], of, where)


def check_values(rows: DataFrame, of: Typed, name: str) -> int:
    """Check all values that may not be of the type, and return the number of rows.

    Raises
    ------
    TableError: a value is null where the type excludes None, or a date is outside the years of
        Python.

    Cost: a scan of the columns concerned.
    """
    asked = list(value_checks(F.col("row"), of, "row" if isinstance(of, Plain) else ""))
    counts = [F.count(F.when(wrong, 1)) for _, _, wrong in asked]
    found = rows.agg(F.count(F.lit(1)), *counts).toArrow().to_pydict()
    total, *bad = (values[0] for values in found.values())
    for (path, reason, _), count in zip(asked, bad, strict=True):
        if count:
            raise TableError(f"table {name!r}: column {path} {reason} in {count} of {total} rows")
    return int(total)


def _struct_column(found: dict[str, tuple[Column, T.DataType]], of: Record, where: str) -> Column:
    """Return the columns `found` as a struct of the record type.

    Raises `TableError` if names or types do not fit.
    """
    missing = [name for name in of.names if name not in found]
    extra = [name for name in found if name not in of.names]
    if missing or extra:
        said = [
            f"{what} {', '.join(names)}" for what, names in _label_names(missing, extra) if names
        ]
        raise TableError(
            f"{where}: the columns are not the fields of {type_name(of)}: {'; '.join(said)}\n"
            f"  it has {', '.join(of.names)}; rename columns, or select those that are wanted"
        )
    fields = zip(of.names, of.fields, strict=True)
    return F.struct(
        *(_cast_column(*found[n], f, f"{where}, column {n}").alias(n) for n, f in fields)
    )


def _label_names(missing: list[str], extra: list[str]) -> list[tuple[str, list[str]]]:
    return [("missing", missing), ("extra", extra)]


def _check_count(found: int, wanted: int, where: str) -> None:
    """Raise `TableError` unless the columns are as many as the fields of a row."""
    if found != wanted:
        raise TableError(f"{where}: {found} columns, but rows of {wanted}")


def _cast_column(column: Column, kind: T.DataType, of: Typed, where: str) -> Column:
    """Return the column as one of the type `of`.

    Raises `TableError` if the cast could change a value.
    """
    if isinstance(of, Record) and isinstance(kind, T.StructType):
        inner = {f.name: (column.getField(f.name), f.dataType) for f in kind.fields}
        made = _struct_column(inner, of, where)
        return F.when(column.isNotNull(), made) if of.optional else made
    if isinstance(of, Whole) and of.of is not None and isinstance(kind, T.ArrayType):
        return _cast_array(column, kind.elementType, of, where)
    if not isinstance(of, Plain) or not _can_hold(of, kind):
        hint = next((h for k, h in HINTS.items() if isinstance(kind, k)), "cast it")
        raise TableError(f"{where} is {kind.simpleString()}, not {type_name(of)}\n  {hint}")
    return column if kind == spark_type(of) else column.cast(spark_type(of))


def _cast_array(column: Column, kind: T.DataType, of: Whole, where: str) -> Column:
    """Return a list as a sequence; or as a bag: its distinct values in order, with their counts."""
    assert of.of is not None
    inside = of.of
    values = F.transform(column, lambda v: _cast_column(v, kind, inside, f"{where}, its values"))
    if of.kind is frozenset:
        return F.sort_array(F.array_distinct(values))
    return values if of.kind is tuple else count_values(values)


def _can_hold(of: Plain, kind: T.DataType) -> bool:
    """Return True if every value of a Spark type fits into a column of the type `of`."""
    if of.kind is Decimal:
        fixed = isinstance(kind, T.DecimalType)
        return fixed and kind.scale <= PLACES and kind.precision - kind.scale <= 38 - PLACES  # type: ignore[attr-defined]
    if of.kind is str:
        plain = isinstance(kind, T.StringType) and kind == T.StringType()
        return plain or isinstance(kind, T.VarcharType | T.CharType)
    return isinstance(kind, SHORTER[of.kind])


def value_checks(column: Column, of: Typed, path: str) -> Iterator[tuple[str, str, Column]]:
    """Yield the possible errors of a value: its path, the reason, and the condition."""
    if not of.optional:
        yield path or "row", f"is null, which {type_name(of)} is not,", column.isNull()
    if isinstance(of, Record):
        for name, field in zip(of.names, of.fields, strict=True):
            for place, reason, wrong in value_checks(
                column.getField(name), field, f"{path}.{name}".lstrip(".")
            ):
                yield place, reason, column.isNotNull() & wrong
    elif of.kind in ENDS:
        least, last = (literal(end).column for end in ENDS[of.kind])
        yield path, "is beyond the years 1 to 9999", (column < least) | (column > last)
    elif isinstance(of, Whole) and of.of is not None:
        yield from _checks_inside(column, of.of, path, is_counted=of.kind is Bag)


def _checks_inside(
    column: Column, of: Typed, path: str, *, is_counted: bool
) -> Iterator[tuple[str, str, Column]]:
    """Yield the possible errors of values in a list: one error per kind of error of an element."""

    def value(item: Column) -> Column:
        return item.getField("value") if is_counted else item

    def is_wrong(place: int) -> Callable[[Column], Column]:
        return lambda item: list(value_checks(value(item), of, ""))[place][2]

    for place, (at, reason, _) in enumerate(value_checks(F.lit(None), of, f"{path}[]")):
        yield at, reason, F.coalesce(F.exists(column, is_wrong(place)), F.lit(False))


def key_column(column: Column, key: tuple[str, ...]) -> Column:
    """Return the key of rows as one value."""
    return F.struct(*(column.getField(name).alias(name) for name in key))


def fetch_first(frame: DataFrame) -> Any:
    """Return the first row as a dictionary, or None."""
    found = frame.limit(1).toArrow().to_pylist()
    return found[0] if found else None


def worker_function(paths: list[str], module: str, name: str, *given: Any) -> Callable[..., Any]:
    """Return a function for `mapInArrow`: it calls `name` of a module with `given` and the batches.

    Nothing in it has to be imported before the worker has the paths of the driver.
    """

    def run(batches: Any) -> Any:
        import importlib
        import sys

        sys.path.extend([path for path in paths if path not in sys.path])
        return getattr(importlib.import_module(module), name)(*given, batches)

    return run


def adopt_classes(classes: dict[str, bytes]) -> None:
    """Define the classes of the script of the driver in `__main__`, where pickled rows look for
    them."""
    main = sys.modules["__main__"]
    for name, data in classes.items():
        if name not in vars(main):
            setattr(main, name, pickle.loads(data))
