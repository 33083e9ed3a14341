"""The rows of a DataFrame or file as rows of a type: columns checked by name, type and content.

    columns number: int, customer: string      row: struct<number: bigint, customer: string>
    of any order                               weight: 1

Spark's statement that a column may be null is no refusal, as all columns of files may be: the
values are looked at, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from reactive.engine.collections.bag import Bag
from reactive.errors import OffloadError, TableError
from spark_backend.codec.lists import counted
from spark_backend.codec.schema import PLACES, Plain, Record, Typed, Whole, type_name
from spark_backend.codec.values import literal, spark_type

SHORTER = {
    int: (T.ByteType, T.ShortType, T.IntegerType, T.LongType),
    float: (T.FloatType, T.DoubleType),
    bytes: (T.BinaryType,),
    bool: (T.BooleanType,),
    date: (T.DateType,),
    datetime: (T.TimestampNTZType,),
}
"""The types of columns whose values a field of a type holds as they are."""
HINTS = {
    T.TimestampType: 'a moment without time zone: cast("timestamp_ntz")',
    T.DecimalType: "cast it, or annotate the field as Decimal",
}
PARQUET = "parquet"
ENDS = {date: (date.min, date.max), datetime: (datetime.min, datetime.max)}
"""Spark has years that Python has not."""


def read(spark: SparkSession, path: str, of: Typed, format: str | None) -> DataFrame:
    """The DataFrame of a path; of what format, if that is not said, is seen by its name.

    A CSV file has a header, and the types of the row. Delta needs its package in the session.
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
        return header  # what is wrong with it is said where columns are checked
    ordered = T.StructType([typed[name] for name in header.columns])
    return spark.read.csv(path, header=True, schema=ordered, mode="FAILFAST", enforceSchema=False)


def format_of(path: str, format: str | None) -> str:
    """The format of a path, as it is said or seen by its name."""
    return format or ("csv" if PurePosixPath(path).suffix == ".csv" else PARQUET)


def as_rows(frame: DataFrame, of: Typed, name: str) -> DataFrame:
    """The rows of a DataFrame, each with the weight 1.

    Parameters
    ----------
    of: the row. The columns of a tuple are taken in order, those of a class by name, a single
        value from the only column.
    name: of the table, for errors.

    Raises
    ------
    TableError: columns are missing, too many or of another type.
    """
    row = row_column(frame, of, f"table {name!r}")
    return frame.select(row.alias("row"), F.lit(1).cast("long").alias("weight"))


def row_column(frame: DataFrame, of: Typed, where: str) -> Column:
    """The columns of a DataFrame as one of rows; raises as `as_rows`."""
    columns = [F.col(f"`{n}`") for n in frame.columns]
    types = [field.dataType for field in frame.schema.fields]
    if isinstance(of, Record):
        if of.kind is tuple:
            _check_count(len(columns), len(of.fields), where)
            found = dict(zip(of.names, zip(columns, types, strict=True), strict=True))
        else:
            found = dict(zip(frame.columns, zip(columns, types, strict=True), strict=True))
        return _struct(found, of, where)
    _check_count(len(columns), 1, where)
    return _typed(columns[0], types[0], of, where)


def check_values(rows: DataFrame, of: Typed, name: str) -> int:
    """How many rows there are; all values are looked at that may not be of the type.

    Raises
    ------
    TableError: one is null where None is not of the type, or a date that Python has not.

    Cost: a scan of the columns concerned.
    """
    asked = list(checks(F.col("row"), of, "row" if isinstance(of, Plain) else ""))
    counts = [F.count(F.when(wrong, 1)) for _, _, wrong in asked]
    found = rows.agg(F.count(F.lit(1)), *counts).toArrow().to_pydict()
    total, *bad = (values[0] for values in found.values())
    for (path, reason, _), count in zip(asked, bad, strict=True):
        if count:
            raise TableError(f"table {name!r}: column {path} {reason} in {count} of {total} rows")
    return int(total)


def _struct(found: dict[str, tuple[Column, T.DataType]], of: Record, where: str) -> Column:
    missing = [name for name in of.names if name not in found]
    extra = [name for name in found if name not in of.names]
    if missing or extra:
        said = [f"{what} {', '.join(names)}" for what, names in _named(missing, extra) if names]
        raise TableError(
            f"{where}: the columns are not the fields of {type_name(of)}: {'; '.join(said)}\n"
            f"  it has {', '.join(of.names)}; rename columns, or select those that are wanted"
        )
    fields = zip(of.names, of.fields, strict=True)
    return F.struct(*(_typed(*found[n], f, f"{where}, column {n}").alias(n) for n, f in fields))


def _named(missing: list[str], extra: list[str]) -> list[tuple[str, list[str]]]:
    return [("missing", missing), ("extra", extra)]


def _check_count(found: int, wanted: int, where: str) -> None:
    if found != wanted:
        raise TableError(f"{where}: {found} columns, but rows of {wanted}")


def _typed(column: Column, kind: T.DataType, of: Typed, where: str) -> Column:
    """The column as one of the type, where all of its values are the same there."""
    if isinstance(of, Record) and isinstance(kind, T.StructType):
        inner = {f.name: (column.getField(f.name), f.dataType) for f in kind.fields}
        made = _struct(inner, of, where)
        return F.when(column.isNotNull(), made) if of.optional else made
    if isinstance(of, Whole) and of.of is not None and isinstance(kind, T.ArrayType):
        return _of_array(column, kind.elementType, of, where)
    if not isinstance(of, Plain) or not _holds(of, kind):
        hint = next((h for k, h in HINTS.items() if isinstance(kind, k)), "cast it")
        raise TableError(f"{where} is {kind.simpleString()}, not {type_name(of)}\n  {hint}")
    return column if kind == spark_type(of) else column.cast(spark_type(of))


def _of_array(column: Column, kind: T.DataType, of: Whole, where: str) -> Column:
    """A list as a sequence, or as a bag: its values in order, each once, with how often it is
    there."""
    assert of.of is not None
    inside = of.of
    values = F.transform(column, lambda v: _typed(v, kind, inside, f"{where}, its values"))
    if of.kind is frozenset:
        return F.sort_array(F.array_distinct(values))
    return values if of.kind is tuple else counted(values)


def _holds(of: Plain, kind: T.DataType) -> bool:
    if of.kind is Decimal:
        fixed = isinstance(kind, T.DecimalType)
        return fixed and kind.scale <= PLACES and kind.precision - kind.scale <= 38 - PLACES  # type: ignore[attr-defined]
    if of.kind is str:
        plain = isinstance(kind, T.StringType) and kind == T.StringType()
        return plain or isinstance(kind, T.VarcharType | T.CharType)
    return isinstance(kind, SHORTER[of.kind])


def checks(column: Column, of: Typed, path: str) -> Iterator[tuple[str, str, Column]]:
    """What would be wrong of a value: where, why, and whether it is so."""
    if not of.optional:
        yield path or "row", f"is null, which {type_name(of)} is not,", column.isNull()
    if isinstance(of, Record):
        for name, field in zip(of.names, of.fields, strict=True):
            for place, reason, wrong in checks(
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
    """What would be wrong of values in a list: of one of them, what is wrong of a value."""

    def value(item: Column) -> Column:
        return item.getField("value") if is_counted else item

    def is_wrong(place: int) -> Callable[[Column], Column]:
        return lambda item: list(checks(value(item), of, ""))[place][2]

    for place, (at, reason, _) in enumerate(checks(F.lit(None), of, f"{path}[]")):
        yield at, reason, F.coalesce(F.exists(column, is_wrong(place)), F.lit(False))


def key_of(column: Column, key: tuple[str, ...]) -> Column:
    """The key of rows, as one value."""
    return F.struct(*(column.getField(name).alias(name) for name in key))


def first_row(frame: DataFrame) -> Any:
    """The first row as a dictionary, or None."""
    found = frame.limit(1).toArrow().to_pylist()
    return found[0] if found else None
