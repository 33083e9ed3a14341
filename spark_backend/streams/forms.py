"""Forms of changes in a stream, and the batches of a stream.

`as_changes` reads the rows of a stream as insertions and deletions:

    append      1, a, 2.5                                      +1 (1, a, 2.5)
    weight      1, a, 2.5, weight -1                           -1 (1, a, 2.5)
    cdf         1, a, 2.5, _change_type update_preimage        -1 (1, a, 2.5)
    debezium    op u, before (1, a, 2.5), after (1, a, 3.0)    -1 (1, a, 2.5), +1 (1, a, 3.0)

An unfit row is reported in its original form, with the reason.

Source: change data feeds of Delta and Iceberg, events of Debezium: each of them is a Z-set.

`Batches` yields the batches of a Spark query, of a DataFrame, or successive snapshots:

    Spark's thread    batch n -hand_over-> waits until it is done --> notes in its checkpoint
    this thread                 `--> take --> commit --> done

Spark records a batch after the table has it: if the process is killed in between, Spark repeats the
batch under its number, and the table skips it.

State:  Spark's own checkpoint.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reactive.engine.remote.remote import FrameBatch, StreamOptions
from reactive.engine.runtime import background
from reactive.errors import SourceError, TableError
from spark_backend.cluster.session import Session
from spark_backend.codec.schema import Record, Typed
from spark_backend.tables.stateless import row_column, value_checks

CORRUPT = "_corrupt_record"
"""The column for a line that Spark cannot parse."""
COLUMNS = {"cdf": "_change_type", "debezium": "op", "weight": "weight"}
BESIDE = ("_change_type", "_commit_version", "_commit_timestamp", "_change_ordinal")
"""The columns of change feeds beside the row; also `_commit_snapshot_id`."""
ORDERS = {"cdf": ("_commit_version", "_change_ordinal"), "debezium": ("offset", "ts_ms")}
_SAID = "reactive_"
"""The prefix of columns that are added here."""
COMES = ("insert", "update_postimage", "update_after")
GOES = ("delete", "update_preimage", "update_before")


def as_changes(
    frame: DataFrame, of: Typed, key: tuple[str, ...] | None, name: str, options: StreamOptions
) -> DataFrame:
    """Return the changes in rows of a stream.

    Returns
    -------
    A DataFrame of `row`, `weight`, `unfit` (why it does not fit, or null), `shown` (the original
    form of an unfit row, or null), `keyed` (whether its key is valid) and `place` (the order of the
    changes of a key, or null).

    Raises
    ------
    TableError: the columns do not fit.
    """
    said = _read_form(frame, of, name, options, is_keyed=key is not None)
    names = [n for n in said.columns if not n.startswith(_SAID) and n != CORRUPT]
    corrupt = F.col(CORRUPT) if CORRUPT in said.columns else F.lit(None).cast("string")
    rows = said.select(
        row_column(said.select(*(f"`{n}`" for n in names)), of, f"table {name!r}").alias("row"),
        F.col(f"{_SAID}weight").alias("weight"),
        F.col(f"{_SAID}place").alias("place"),
        F.coalesce(corrupt, F.to_json(F.struct(*(f"`{n}`" for n in names)))).alias("shown"),
        F.when(corrupt.isNotNull(), "it is malformed").otherwise(F.col(f"{_SAID}why")).alias("why"),
    ).filter(F.col("weight").isNull() | (F.col("weight") != 0))
    return _check_changes(rows, of, key)


def _check_changes(rows: DataFrame, of: Typed, key: tuple[str, ...] | None) -> DataFrame:
    """Add the reason why a row does not fit; for a deletion, only its key is checked."""
    row = F.col("row")
    no_weight = F.when(F.col("weight").isNull(), "it does not say whether it comes or goes")
    wrong = F.coalesce(F.col("why"), no_weight, *_reasons(value_checks(row, of, _root_path(of))))
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


def _root_path(of: Typed) -> str:
    return "" if isinstance(of, Record) else "row"


def _reasons(found: Iterator[tuple[str, str, Column]]) -> list[Column]:
    return [F.when(wrong, f"column {path} {reason.strip(',')}") for path, reason, wrong in found]


def _key_reasons(of: Typed, key: tuple[str, ...]) -> list[Column]:
    """Return, for each check of a field of the key, a column with the reason why it fails, or
    null."""
    assert isinstance(of, Record)
    found = []
    for name in key:
        column, field = F.col("row").getField(name), of.field(name)
        found += _reasons(value_checks(column, field, name))
        if field.kind is float:
            found.append(F.when(F.isnan(column), f"column {name} is NaN, which no key can be"))
    return found


def _read_form(
    frame: DataFrame, of: Typed, name: str, options: StreamOptions, *, is_keyed: bool
) -> DataFrame:
    """Return the columns of rows, with their weight, their order and the error."""
    changes = options.changes
    column = options.change_column or COLUMNS.get(changes)
    if column is not None and column not in frame.columns:
        raise TableError(
            f"table {name!r}: no column {column} says what changes\n"
            f'  it has {", ".join(frame.columns)}; give change_column=, or other changes="..."'
        )
    place, ordering = _change_order(frame, of, name, options)
    nothing = F.lit(None).cast("string")
    if changes == "debezium":
        return _read_debezium(frame, column, place, name, is_keyed=is_keyed)
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


def _change_order(
    frame: DataFrame, of: Typed, name: str, options: StreamOptions
) -> tuple[Column, str | None]:
    """Return the order of changes, and the name of its column; the name is None if it is a field of
    the row or there is no order. Raises `TableError` if the column is missing."""
    if options.order is not None:
        if options.order not in frame.columns:
            raise TableError(f"table {name!r}: no column {options.order} orders the changes")
        is_field = isinstance(of, Record) and options.order in of.names
        return F.col(f"`{options.order}`"), None if is_field else options.order
    usual = ORDERS.get(options.changes, ())
    found = next((n for n in usual if n in frame.columns), None)
    return (F.lit(None).cast("long") if found is None else F.col(found)), found


def _read_debezium(
    frame: DataFrame, column: Any, place: Column, name: str, *, is_keyed: bool
) -> DataFrame:
    """Return the rows of Debezium's events, each with weight, place and the reason why it is unfit,
    or null. An update is two rows, but with a key only the new one. Raises `TableError` if a column
    is missing."""
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


LOOK = 0.1
"""The seconds between checks of whether a query still runs, or is to stop."""
ONCE, SNAPSHOT = "rows", "snapshot"
"""The query names of batches that belong to no query."""
AT_ONCE = "available now"


class Batches:
    """The batches of a stream, with their numbers.

    Parameters
    ----------
    frame: makes the DataFrame in the current session.
    checkpoint: the folder of the query.
    """

    def __init__(
        self,
        session: Session,
        frame: Callable[[], DataFrame],
        checkpoint: str,
        options: StreamOptions,
    ) -> None:
        self._session, self._frame = session, frame
        self._checkpoint, self._options = checkpoint, options
        self._every = trigger_seconds(options.trigger)
        self._query: Any = None

    def since(self, last: int | None, stop: threading.Event) -> Iterator[FrameBatch]:
        """Yield the batches after a number; a query may repeat the last one."""
        self._session.restart()
        if self._options.changes == "snapshot":
            yield from self._snapshots(-1 if last is None else last, stop)
            return
        frame = self._frame()
        if frame.isStreaming:
            yield from self._query_batches(frame, stop)
        elif last is None:
            yield FrameBatch(frame, ONCE, 0, time.time())

    def waiting(self) -> int | None:
        """Return the number of rows in the source of a query after its last batch.

        Return None if it is unknown.
        """
        query = self._query
        progress = None
        if query is not None:
            with suppress(Exception):  # the JVM may be gone
                progress = query.lastProgress
        return None if progress is None else rows_behind(progress)

    def _snapshots(self, last: int, stop: threading.Event) -> Iterator[FrameBatch]:
        """Yield a snapshot every interval, until `stop` is set; only one without an interval."""
        while not stop.is_set():
            last += 1
            yield FrameBatch(self._frame(), SNAPSHOT, last, time.time())
            if self._every is None:
                return
            stop.wait(self._every)

    def _query_batches(self, frame: DataFrame, stop: threading.Event) -> Iterator[FrameBatch]:
        """Yield the batches of Spark's query, and stop the query at the end.

        A batch is finished when the next one is asked for. Raises `SourceError` if it fails.
        """
        exchange = _Exchange()
        writer = frame.writeStream.foreachBatch(exchange.hand_over)
        writer = writer.option("checkpointLocation", self._checkpoint)
        if self._every is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{int(self._every * 1000)} milliseconds")
        query = self._query = writer.start()
        try:
            while not stop.is_set():
                found = exchange.take()
                if found is not None:
                    rows, number, made = found
                    yield FrameBatch(rows, str(query.id), number, made)
                    exchange.done()
                elif not query.isActive:
                    self._raise_failure(query)
                    return
        finally:
            self._query = None
            exchange.close()
            with suppress(Exception):  # the JVM may be gone
                query.stop()

    def _raise_failure(self, query: Any) -> None:
        """Raise `SourceError` if the query has failed; return if it has ended."""
        error = query.exception()
        if error is not None:
            told = str(error).strip().partition("\n")[0]
            raise SourceError(
                f"the query of the stream has failed: {told:.500}\n"
                "  start the source again when the cause is mended; it goes on at the same batch"
            ) from error


class _Exchange:
    """Pass batches from the thread of Spark to the thread of the source, one at a time."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._batch: tuple[DataFrame, int, float] | None = None
        self._is_over = False

    def hand_over(self, rows: DataFrame, number: int) -> None:
        """Receive a batch from Spark, and return when it is committed.

        Raises `RuntimeError` if the source is stopped before.
        """
        with self._news:
            self._batch = (rows, number, time.time())
            self._news.notify_all()
            while self._batch is not None:
                if self._is_over:
                    raise RuntimeError("the source was stopped before the batch was committed")
                self._news.wait()

    def take(self) -> tuple[DataFrame, int, float] | None:
        """Return the waiting batch; None if none arrives within `LOOK` seconds."""
        with self._news:
            if self._batch is None:
                self._news.wait(LOOK)
            return self._batch

    def done(self) -> None:
        """Mark the batch as committed."""
        with self._news:
            self._batch = None
            self._news.notify_all()

    def close(self) -> None:
        """Stop the exchange: no further batch will be taken."""
        with self._news:
            self._is_over = True
            self._news.notify_all()


def trigger_seconds(trigger: str | float) -> float | None:
    """Return the seconds between batches; None for a single run over the available rows.

    Raises
    ------
    PlanError: the trigger is no time.

    >>> trigger_seconds("10s"), trigger_seconds(0), trigger_seconds("available now")
    (10.0, 0.0, None)
    """
    if trigger == AT_ONCE:
        return None
    otherwise = '0 for as soon as rows come, or "available now" for those that are there'
    return background.seconds(trigger, otherwise=otherwise, may_be_zero=True)


def rows_behind(progress: Mapping[str, Any]) -> int | None:
    """Return the distance from the ends of a batch to the latest offsets, if both are numbers by
    partition, as in Kafka.

    >>> rows_behind({"sources": [{"endOffset": {"t": {"0": 5}}, "latestOffset": {"t": {"0": 7}}}]})
    2
    >>> rows_behind({"sources": [{"endOffset": None, "latestOffset": None}]})
    """
    found = [
        _offset_distance(source.get("endOffset"), source.get("latestOffset"))
        for source in progress.get("sources", ())
    ]
    known = [number for number in found if number is not None]
    return sum(known) if found and len(known) == len(found) else None


def _offset_distance(end: Any, latest: Any) -> int | None:
    """Return the number of messages from `end` to `latest`, added up over all parts.

    Return None if an offset is neither an integer nor a mapping of parts.
    """
    if isinstance(end, int) and isinstance(latest, int):
        return max(0, latest - end)
    if isinstance(latest, Mapping) and isinstance(end, Mapping):
        parts = [_offset_distance(end.get(key, 0), value) for key, value in latest.items()]
        return None if None in parts else sum(part for part in parts if part is not None)
    return None
