"""Feed a table from a stream: each batch is written aside, checked, and applied once.

    batch --as_changes--> given    rows, weights, unfit rows: written once, then checked
    without key                    `given` is the change, if all of it fits
    with key                       the last change of each key replaces the rows of the key
    unfit                          a separate table: both tables have all rows of the stream

State:  the rows and the unfit rows, each with the number of the last batch.
Cost:   per batch two jobs over its rows; with a key, a scan of the table.

`stream_frame` makes the DataFrame of a stream: from a path whose new files are followed, from a
query, or from a pair of them, for inserted and for deleted rows:

    inserts/ ---+1--.
                    +--> one query, one batch of both
    deletes/ ---(-1)'
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from optimizer.errors import PlanError
from reactive.borders.sources.net_changes import UnfitRow
from reactive.engine.remote.remote import FrameBatch, Once, StreamOptions
from reactive.errors import OffloadError, SourceError, TableError
from spark_backend.cluster.files import with_literal_paths
from spark_backend.cluster.session import Session
from spark_backend.codec.schema import Record, Typed
from spark_backend.codec.values import spark_type
from spark_backend.streams.forms import COLUMNS, CORRUPT, Batches, as_changes
from spark_backend.tables.frames import Frames
from spark_backend.tables.stateless import fetch_first, key_column, read_path
from spark_backend.tables.table import SparkRows


def make_feed(
    session: Session,
    rows: Any,
    row_type: Any,
    folder: str,
    key: Any,
    name: str,
    options: StreamOptions,
    is_kept: bool,
) -> Feed:
    """Return the feed of a table; unfit rows and the query are in folders below the folder of its
    rows."""
    frames = Frames(session, None, row_type, folder, key=key, name=name)
    unfit = None
    if options.drops:
        by = None if frames.key is None else "key"
        called = f"errors of {name}"
        left_out = Frames(session, None, UnfitRow, f"{folder}/unfit", key=by, name=called)
        unfit = SparkRows(session, left_out, is_kept=is_kept)
    frame = stream_frame(session, rows, frames.kept, options)
    if options.deletes is not None:
        options = replace(options, changes="weight")
    first = frame()
    check_runs(session, first, name)
    as_changes(first, frames.kept, frames.key, name, options)  # raises if columns do not fit
    batches = Batches(session, frame, f"{folder}/query", options)
    kept = SparkRows(session, frames, is_kept=is_kept)
    return Feed(session, kept, unfit, batches, options)


def check_runs(session: Session, frame: DataFrame, name: str) -> None:
    """Raise `OffloadError` for a query whose batches this process cannot receive."""
    if frame.isStreaming and session.is_connect:
        raise OffloadError(
            f"table {name!r} cannot follow a stream with Spark Connect: its batches are handed "
            "over in the server, and not in this process\n"
            '  give changes="snapshot" and a path or a table that is read again at each trigger, '
            "or use a session that is not of Connect"
        )


class Feed:
    """A `reactive.engine.remote.remote.ExternalStream`.

    Parameters
    ----------
    rows, unfit: the rows of the table, and the skipped rows; None to skip no rows.
    batches: the source of the batches.
    """

    def __init__(
        self,
        session: Session,
        rows: SparkRows,
        unfit: SparkRows | None,
        batches: Batches,
        options: StreamOptions,
    ) -> None:
        self.rows, self.unfit = rows, unfit
        self.name = rows.frames.name
        self._session, self._batches, self._options = session, batches, options
        self.waiting = batches.waiting

    @property
    def token(self) -> int | None:
        """The number of the last batch that counts; None before the first one."""
        return max(self.rows.frames.batches.values(), default=None)

    def batches(self, since: Any, stop: threading.Event) -> Iterator[FrameBatch]:
        """Yield the batches of the query, which continues from its own checkpoint."""
        return self._batches.since(self.token, stop)

    @contextmanager
    def write_aside(self, batch: FrameBatch) -> Iterator[_PreparedBatch]:
        """Write a batch and its changes aside.

        Raises
        ------
        TableError: a row does not fit, and rows are not to be skipped; or the last of several
            changes of a key is unknown.
        SourceError: the table has batches of another query.
        """
        frames = self.rows.frames
        known = frames.batches
        if known and batch.query not in known:
            raise SourceError(
                f"table {self.name!r} has the rows of another query, up to its batch {self.token}, "
                "and this one begins anew\n"
                "  the checkpoint of that query is gone: begin with an empty checkpoint, or give "
                "the table another name"
            )
        once = (batch.query, batch.token)
        if known.get(batch.query, -1) >= batch.token:
            yield _PreparedBatch(self, once, None, None, is_change=False)
            return
        with ExitStack() as aside:
            yield self._prepare(batch.frame, once, aside)

    def _prepare(self, frame: DataFrame, once: Once, aside: ExitStack) -> _PreparedBatch:
        """Write a batch aside, as the change that it makes of the table.

        `aside` deletes the files at the end. Raises for an unfit row, unless these are skipped.
        """
        frames = self.rows.frames
        if self._options.changes == "snapshot":
            return self._prepare_snapshot(frame, once, aside)
        given = self._write_changes(frame, aside)
        changes = with_literal_paths(self._session.spark.read).parquet(given)
        unfit = self._count_unfit(changes)
        if frames.key is None:
            if not unfit:
                return _PreparedBatch(self, once, given, None)
            rows = changes.filter("unfit is null").select("row", "weight")
            left_out = changes.filter("unfit is not null").withColumn("key", F.lit(""))
        else:
            last = self._last_by_key(changes, frames.key)
            new = last.filter("weight > 0 and unfit is null")
            rows = frames.replace_rows(
                new.select("row", F.lit(1).cast("long").alias("weight")), last.select("key")
            )
            left_out = self._unfit_by_key(changes, last, frames.key)
        path = aside.enter_context(frames.aside())
        rows.write.parquet(path)
        apart = self._write_unfit(left_out, changes, aside) if self.unfit is not None else None
        return _PreparedBatch(self, once, path, apart)

    def _prepare_snapshot(self, frame: DataFrame, once: Once, aside: ExitStack) -> _PreparedBatch:
        """Write a snapshot aside, as the difference from the current rows.

        Raises for an unfit row, unless these are skipped.
        """
        frames = self.rows.frames
        changes = with_literal_paths(self._session.spark.read).parquet(
            self._write_changes(frame, aside)
        )
        unfit = self._count_unfit(changes)
        fit = changes.filter("unfit is null").select("row", "weight")
        frames.check_keys(fit)
        path = aside.enter_context(frames.aside())
        frames.difference(fit).write.parquet(path)
        apart = None
        if self.unfit is not None and (unfit or self.unfit.version):
            key = F.lit("") if frames.key is None else _key_as_text(frames.key)
            left_out = changes.filter("unfit is not null").withColumn("key", key)
            apart = aside.enter_context(self.unfit.frames.aside())
            self.unfit.frames.difference(self._unfit_rows(left_out)).write.parquet(apart)
        found = _PreparedBatch(self, once, path, apart)
        found.is_change = bool(found.rows) or not frames.batches
        return found

    def _write_changes(self, frame: DataFrame, aside: ExitStack) -> str:
        """Write a batch as changes, once, and return the folder."""
        frames = self.rows.frames
        given = aside.enter_context(frames.aside())
        as_changes(frame, frames.kept, frames.key, self.name, self._options).write.parquet(given)
        return given

    def _count_unfit(self, changes: DataFrame) -> int:
        """Return the number of unfit rows; raise for one unless they are skipped."""
        found = fetch_first(
            changes.filter("unfit is not null").agg(
                F.count(F.lit(1)).alias("count"),
                F.first(F.struct("unfit", "shown")).alias("first"),
            )
        )
        count = int(found["count"])
        if count and self.unfit is None:
            first = found["first"]
            raise TableError(
                f"table {self.name!r}: {first['unfit']}, in {count} rows of a batch, such as "
                f"{str(first['shown'])[:200]}\n"
                '  mend what the stream reads and start the source again; or on_error="drop" leaves'
                " such rows out, and tells them"
            )
        return count

    def _last_by_key(self, changes: DataFrame, key: tuple[str, ...]) -> DataFrame:
        """Return the last change of each key: of several changes at the last place, the inserted
        row.

        Raises `TableError` if the order of the changes does not decide which one is last.
        """
        keyed = changes.filter("keyed").withColumn("key", key_column(F.col("row"), key))
        if self._options.changes in ("weight", "cdf"):  # opposite changes cancel
            odd = (F.max(name).alias(name) for name in ("unfit", "shown"))
            total = F.sum("weight").alias("weight")
            keyed = keyed.groupBy("key", "place", "row").agg(total, *odd).filter("weight != 0")
            rivals: list[Any] = [F.when(F.col("weight") > 0, F.col("row"))]
        else:
            rivals = [F.struct(F.col("weight") > 0, F.when(F.col("weight") > 0, F.col("row")))]
        by_key = Window.partitionBy("key")
        last = keyed.withColumn("last", F.max("place").over(by_key)).filter("place <=> last")
        rival = F.size(F.collect_set(rivals[0]).over(by_key))
        first = F.row_number().over(by_key.orderBy(F.col("weight").desc()))
        one = last.withColumn("rivals", rival).withColumn("first", first).filter("first = 1")
        wrong = fetch_first(one.filter("rivals > 1").select("key", "rivals"))
        if wrong is not None:
            shown = ", ".join(f"{name} {value!r}" for name, value in wrong["key"].items())
            raise TableError(
                f"table {self.name!r}: the key {shown} has {wrong['rivals']} changes in one batch, "
                "and nothing says which is the last\n"
                '  say by which column changes are ordered: spark_stream(..., order="version")'
            )
        return one

    def _unfit_by_key(self, changes: DataFrame, last: DataFrame, key: tuple[str, ...]) -> DataFrame:
        """Return the unfit rows: the last of each key, and all without a key."""
        names = ("weight", "unfit", "shown", "key")
        odd = last.filter("unfit is not null").withColumn("key", _key_as_text(key)).select(*names)
        lost = changes.filter("not keyed").withColumn("key", F.lit("")).select(*names)
        return odd.unionByName(lost)

    def _write_unfit(self, left_out: DataFrame, changes: DataFrame, aside: ExitStack) -> str:
        """Write the change of the unfit rows: it replaces the old ones with the keys of the
        batch."""
        assert self.unfit is not None
        frames, rows = self.unfit.frames, self._unfit_rows(left_out)
        key = self.rows.frames.key
        if key is not None and frames.version:
            keys = changes.filter("keyed").select(
                F.struct(_key_as_text(key).alias("key")).alias("key")
            )
            rows = frames.replace_rows(rows, keys)
        path = aside.enter_context(frames.aside())
        rows.write.parquet(path)
        return path

    def _unfit_rows(self, left_out: DataFrame) -> DataFrame:
        """Return skipped rows as rows of the table of errors."""
        error = F.struct(F.lit("TableError").alias("kind"), F.col("unfit").alias("message"))
        row = F.struct(
            F.lit(f"stream {self.name}").alias("operator"),
            F.coalesce("shown", F.lit("")).alias("row"),
            error.alias("error"),
            F.col("key").alias("key"),
        )
        return left_out.select(row.alias("row"), "weight")


class _PreparedBatch:
    """A batch that is written aside."""

    def __init__(
        self, feed: Feed, once: Once, path: str | None, apart: str | None, *, is_change: bool = True
    ) -> None:
        self._feed, self._once, self._path, self._apart = feed, once, path, apart
        self.is_change = is_change
        self.rows = 0 if path is None else feed.rows.frames.rows_in(path)
        if apart is not None and feed.unfit is not None:
            self.rows += feed.unfit.frames.rows_in(apart)

    def publish(self) -> None:
        """Publish the unfit rows first: after an interruption, the batch is repeated."""
        feed = self._feed
        if self._apart is not None and feed.unfit is not None:
            frames = feed.unfit.frames
            if frames.batches.get(self._once[0], -1) < self._once[1]:
                frames.keep(self._apart, self._once)
        assert self._path is not None
        feed.rows.frames.keep(self._path, self._once)


def _key_as_text(key: tuple[str, ...]) -> Column:
    """Return the key of rows as JSON."""
    return F.to_json(key_column(F.col("row"), key))


TEXT = ("csv", "json")
KINDS = ("append", "cdf", "debezium", "weight", "snapshot")


def stream_frame(
    session: Session, rows: Any, of: Typed, options: StreamOptions
) -> Callable[[], DataFrame]:
    """Return a function that makes the DataFrame in the current session.

    Raises
    ------
    PlanError: the rows are no stream, or contradict the form of changes.
    """
    check_options(options)
    if options.deletes is None:
        return lambda: _open_stream(session, rows, of, options)
    column = options.change_column or COLUMNS["weight"]

    def both() -> DataFrame:
        parts = ((rows, 1), (options.deletes, -1))
        come, go = (
            _open_stream(session, given, of, options).withColumn(column, F.lit(weight).cast("long"))
            for given, weight in parts
        )
        return come.unionByName(go)

    return both


def check_options(options: StreamOptions) -> None:
    """Raise `PlanError` for options that exclude each other."""
    if options.changes not in KINDS:
        raise PlanError(
            f"changes={options.changes!r} is no form of changes\n  one of {', '.join(KINDS)}"
        )
    if options.deletes is not None and options.changes != "append":
        raise PlanError(
            f'deletes= is beside rows that come, not beside changes="{options.changes}"\n'
            "  there each row says itself whether it comes or goes"
        )


def _open_stream(session: Session, rows: Any, of: Typed, options: StreamOptions) -> DataFrame:
    """Return the rows of a stream as a DataFrame: given, made by a callable, or read from a path.

    Raises `PlanError` for anything else.
    """
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
        return read_path(session.spark, path, of, options.format)
    reader = session.spark.readStream.format(options.format).schema(stream_schema(of, options))
    if options.format in TEXT:
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
    if options.format == "csv":
        reader = reader.option("header", True).option("enforceSchema", False)
    found: DataFrame = reader.load(path)
    return found


def stream_schema(of: Typed, options: StreamOptions) -> T.StructType:
    """Return the columns of the files to follow."""
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
