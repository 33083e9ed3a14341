"""What the rows of a stream say: which row comes or goes, and which does not fit.

    append      1, a, 2.5                                      +1 (1, a, 2.5)
    weight      1, a, 2.5, weight -1                           -1 (1, a, 2.5)
    cdf         1, a, 2.5, _change_type update_preimage        -1 (1, a, 2.5)
    debezium    op u, before (1, a, 2.5), after (1, a, 3.0)    -1 (1, a, 2.5), +1 (1, a, 3.0)

A row that does not fit is told with the reason, and as it came.

Source: change data feeds of Delta and Iceberg, events of Debezium: each of them is a Z-set.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reactive.engine.remote.streams import StreamOptions
from reactive.errors import TableError
from spark_backend.codec.schema import Record, Typed
from spark_backend.tables.sources import checks, row_column

CORRUPT = "_corrupt_record"
"""The column in which Spark puts a line that it cannot read."""
COLUMNS = {"cdf": "_change_type", "debezium": "op", "weight": "weight"}
BESIDE = ("_change_type", "_commit_version", "_commit_timestamp", "_change_ordinal")
"""What change feeds have beside the row; also `_commit_snapshot_id`."""
ORDERS = {"cdf": ("_commit_version", "_change_ordinal"), "debezium": ("offset", "ts_ms")}
_SAID = "reactive_"
"""Begins the names of columns that are added here."""
COMES = ("insert", "update_postimage", "update_after")
GOES = ("delete", "update_preimage", "update_before")


def as_changes(
    frame: DataFrame, of: Typed, key: tuple[str, ...] | None, name: str, options: StreamOptions
) -> DataFrame:
    """The changes that rows of a stream say.

    Returns
    -------
    A DataFrame of `row`, `weight`, `unfit` (why it does not fit, or null), `shown` (how an unfit
    one came, or null), `keyed` (whether its key is one) and `place` (what orders the changes of a
    key, or null).

    Raises
    ------
    TableError: the columns do not fit.
    """
    said = _said(frame, of, name, options, is_keyed=key is not None)
    names = [n for n in said.columns if not n.startswith(_SAID) and n != CORRUPT]
    corrupt = F.col(CORRUPT) if CORRUPT in said.columns else F.lit(None).cast("string")
    rows = said.select(
        row_column(said.select(*(f"`{n}`" for n in names)), of, f"table {name!r}").alias("row"),
        F.col(f"{_SAID}weight").alias("weight"),
        F.col(f"{_SAID}place").alias("place"),
        F.coalesce(corrupt, F.to_json(F.struct(*(f"`{n}`" for n in names)))).alias("shown"),
        F.when(corrupt.isNotNull(), "it is malformed").otherwise(F.col(f"{_SAID}why")).alias("why"),
    ).filter(F.col("weight").isNull() | (F.col("weight") != 0))
    return _judged(rows, of, key)


def _judged(rows: DataFrame, of: Typed, key: tuple[str, ...] | None) -> DataFrame:
    """With the reason why a row does not fit; of one that is deleted, its key alone is asked."""
    row = F.col("row")
    no_weight = F.when(F.col("weight").isNull(), "it does not say whether it comes or goes")
    wrong = F.coalesce(F.col("why"), no_weight, *_reasons(checks(row, of, _root(of))))
    if key is None:
        unfit, keyed = wrong, F.lit(True)
    else:
        of_key = F.coalesce(F.col("why"), no_weight, *_key_reasons(of, key))
        unfit = F.when(F.col("weight") < 0, of_key).otherwise(F.coalesce(of_key, wrong))
        keyed = of_key.isNull()
    found = rows.select(
        "row",
        F.coalesce("weight", F.lit(1).cast("long")).alias("weight"),
        "place",
        "shown",
        unfit.alias("unfit"),
        keyed.alias("keyed"),
    )
    return found.withColumn("shown", F.when(F.col("unfit").isNotNull(), F.col("shown")))


def _root(of: Typed) -> str:
    return "" if isinstance(of, Record) else "row"


def _reasons(found: Iterator[tuple[str, str, Column]]) -> list[Column]:
    return [F.when(wrong, f"column {path} {reason.strip(',')}") for path, reason, wrong in found]


def _key_reasons(of: Typed, key: tuple[str, ...]) -> list[Column]:
    assert isinstance(of, Record)
    found = []
    for name in key:
        column, field = F.col("row").getField(name), of.field(name)
        found += _reasons(checks(column, field, name))
        if field.kind is float:
            found.append(F.when(F.isnan(column), f"column {name} is NaN, which no key can be"))
    return found


def _said(
    frame: DataFrame, of: Typed, name: str, options: StreamOptions, *, is_keyed: bool
) -> DataFrame:
    """The columns of rows, and beside them the weight, the order and what is wrong."""
    changes = options.changes
    column = options.change_column or COLUMNS.get(changes)
    if column is not None and column not in frame.columns:
        raise TableError(
            f"table {name!r}: no column {column} says what changes\n"
            f'  it has {", ".join(frame.columns)}; give change_column=, or other changes="..."'
        )
    place, ordering = _place(frame, of, name, options)
    nothing = F.lit(None).cast("string")
    if changes == "debezium":
        return _of_debezium(frame, column, place, name, is_keyed=is_keyed)
    weight, why = F.lit(1).cast("long"), nothing
    if changes == "weight":
        weight = F.col(f"`{column}`").cast("long")
    elif changes == "cdf":
        kind = F.lower(F.col(f"`{column}`"))
        weight = F.when(kind.isin(*COMES), 1).when(kind.isin(*GOES), -1).cast("long")
    gone = {column, *([ordering] if ordering else []), *(BESIDE if changes == "cdf" else ())}
    kept = [n for n in frame.columns if n not in gone and not n.startswith("_commit_snapshot")]
    return frame.select(
        *(F.col(f"`{n}`") for n in kept),
        weight.alias(f"{_SAID}weight"),
        place.alias(f"{_SAID}place"),
        why.alias(f"{_SAID}why"),
    )


def _place(
    frame: DataFrame, of: Typed, name: str, options: StreamOptions
) -> tuple[Column, str | None]:
    """What orders changes, and the column of it that is none of the row."""
    if options.order is not None:
        if options.order not in frame.columns:
            raise TableError(f"table {name!r}: no column {options.order} orders the changes")
        is_field = isinstance(of, Record) and options.order in of.names
        return F.col(f"`{options.order}`"), None if is_field else options.order
    usual = ORDERS.get(options.changes, ())
    found = next((n for n in usual if n in frame.columns), None)
    return (F.lit(None).cast("long") if found is None else F.col(found)), found


def _of_debezium(
    frame: DataFrame, column: Any, place: Column, name: str, *, is_keyed: bool
) -> DataFrame:
    missing = [n for n in ("before", "after") if n not in frame.columns]
    if missing:
        raise TableError(
            f"table {name!r}: an event of Debezium has {' and '.join(missing)}\n"
            "  read its value: select(from_json(col('value').cast('string'), schema).alias('e'))"
            ".select('e.*')"
        )
    op = F.col(f"`{column}`")
    kinds: dict[str, tuple[str, ...]] = {"c": ("after",), "r": ("after",), "d": ("before",)}
    kinds["u"] = ("after",) if is_keyed else ("before", "after")
    kind = frame.schema["after"].dataType
    nothing = F.lit(None).cast(kind)

    def change(of: str) -> Column:
        row = F.col(of).cast(kind)
        lost = F.concat(F.lit("an event "), op, F.lit(f" comes without the row {of}"))
        weight = F.lit(1 if of == "after" else -1).cast("long")
        why = F.when(row.isNull(), lost)
        return F.struct(row.alias("row"), weight.alias("weight"), why.alias("why"))

    unknown = F.concat(F.lit("op "), F.coalesce(op, F.lit("null")), F.lit(" is none of c, u, d, r"))
    other = F.struct(
        nothing.alias("row"), F.lit(1).cast("long").alias("weight"), unknown.alias("why")
    )
    events = reduce(
        lambda found, kind: found.when(op == kind, F.array(*map(change, kinds[kind]))),
        kinds,
        F.when(op.isNull() & F.col("before").isNull() & F.col("after").isNull(), F.array()),
    ).otherwise(F.array(other))
    found = frame.select(F.explode(events).alias("e"), place.alias(f"{_SAID}place"))
    return found.select(
        "e.row.*",
        F.col("e.weight").alias(f"{_SAID}weight"),
        f"{_SAID}place",
        F.col("e.why").alias(f"{_SAID}why"),
    )
