"""What is given as the rows of a stream, as a DataFrame: folders whose files are followed, queries,
and pairs of these, of rows that come and rows that go.

    inserts/ ---+1--.
                    +--> one query, one batch of both
    deletes/ ---(-1)'
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from optimizer.errors import PlanError
from reactive.engine.remote.streams import StreamOptions
from spark_backend.cluster.session import Session
from spark_backend.codec.schema import Record, Typed
from spark_backend.codec.values import spark_type
from spark_backend.streams.forms import COLUMNS, CORRUPT
from spark_backend.tables.sources import read

TEXT = ("csv", "json")
KINDS = ("append", "cdf", "debezium", "weight", "snapshot")


def frame_of(
    session: Session, rows: Any, of: Typed, options: StreamOptions
) -> Callable[[], DataFrame]:
    """What makes the DataFrame, in the session of when it is called.

    Raises
    ------
    PlanError: what is given is no stream, or contradicts the form of its changes.
    """
    check(options)
    if options.deletes is None:
        return lambda: _frame(session, rows, of, options)
    column = options.change_column or COLUMNS["weight"]

    def both() -> DataFrame:
        parts = ((rows, 1), (options.deletes, -1))
        come, go = (
            _frame(session, given, of, options).withColumn(column, F.lit(weight).cast("long"))
            for given, weight in parts
        )
        return come.unionByName(go)

    return both


def check(options: StreamOptions) -> None:
    """Raise `PlanError` for options that do not go together."""
    if options.changes not in KINDS:
        raise PlanError(
            f"changes={options.changes!r} is no form of changes\n  one of {', '.join(KINDS)}"
        )
    if options.deletes is not None and options.changes != "append":
        raise PlanError(
            f'deletes= is beside rows that come, not beside changes="{options.changes}"\n'
            "  there each row says itself whether it comes or goes"
        )


def _frame(session: Session, rows: Any, of: Typed, options: StreamOptions) -> DataFrame:
    if isinstance(rows, DataFrame):
        own: DataFrame = session.own(rows)
        return own
    if callable(rows):
        made = rows(session.spark)
        if isinstance(made, DataFrame):
            return made
        raise PlanError(f"the callable gave {made!r:.100}, and not a DataFrame")
    if not isinstance(rows, str | os.PathLike):
        raise PlanError(
            f"{rows!r:.100} is no stream\n"
            "  give a DataFrame of spark.readStream, a path, or a callable that makes a DataFrame"
        )
    path = os.fspath(rows)
    if options.changes == "snapshot":
        return read(session.spark, path, of, options.format)
    reader = session.spark.readStream.format(options.format).schema(schema_of(of, options))
    if options.format in TEXT:
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
    if options.format == "csv":
        reader = reader.option("header", True).option("enforceSchema", False)
    found: DataFrame = reader.load(path)
    return found


def schema_of(of: Typed, options: StreamOptions) -> T.StructType:
    """The columns of files that are followed."""
    row = spark_type(of)
    if not isinstance(of, Record) or not isinstance(row, T.StructType):
        row = T.StructType([T.StructField("value", row)])
    column = options.change_column or COLUMNS.get(options.changes)
    fields = list(row.fields)
    match options.changes:
        case "debezium":
            pair = [T.StructField(name, row) for name in ("before", "after")]
            fields = [T.StructField(str(column), T.StringType()), *pair]
        case "cdf":
            fields.append(T.StructField(str(column), T.StringType()))
        case "weight":
            fields.append(T.StructField(str(column), T.LongType()))
    named = [field.name for field in fields]
    if options.order is not None and options.order not in named:
        fields.append(T.StructField(options.order, T.LongType()))
    if options.format in TEXT:
        fields.append(T.StructField(CORRUPT, T.StringType()))
    return T.StructType(fields)
