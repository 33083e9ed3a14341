"""The rows of a table on Spark: the initial rows, and each later change.

    version 0     the DataFrame or files that the table was made of
    version n     a folder of Parquet files: rows with weights, written aside, then noted

Rows do not pass through the driver, except rows that a caller passes as objects. Removing a row
does not check that the table contains it, which would be a scan per change; `verify` does.

State:  the changes, on disk.
Cost:   a change O(its rows); `upsert` and `current` read the whole table, and `upsert` shuffles
        only the table rows with its keys.

`rows_by_ends` validates Parquet files without reading their values: their ends give the number of
rows, and prove that columns contain no null.

    orders/part-0.parquet    | ... | end: 250,000 rows; id: 0 nulls, customer: 0 nulls

Sound:  Spark skips row groups by the same counts. A scan replaces it if a file gives no counts, or
        if a type excludes some values of its column (dates).
Cost:   two small reads per file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial, reduce
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from reactive.engine.collections.zset import Pair, Row
from reactive.engine.remote.remote import Once
from reactive.errors import OffloadError, TableError
from spark_backend.cluster.files import locate, with_literal_paths
from spark_backend.cluster.paths import is_remote
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import pairs_of, to_arrow
from spark_backend.codec.schema import Kept, Pickled, Plain, Record, Typed, kept_as, type_name
from spark_backend.codec.values import Value, list_values, spark_type
from spark_backend.state.ends import AT_A_TIME
from spark_backend.tables.chain import Weighted
from spark_backend.tables.changes import Changes
from spark_backend.tables.stateless import (
    ENDS,
    PARQUET,
    as_rows,
    check_values,
    fetch_first,
    format_of,
    key_column,
    read_path,
)

Source = DataFrame | str | None
MOST_LOCAL = 1_000
"""The most changed rows that a query contains, instead of reading them from files."""


class Frames:
    """Rows of one type, and their changes, by version.

    Parameters
    ----------
    session: its `spark` runs the queries.
    source: a DataFrame, or the path of Parquet or CSV files or a Delta table. It must keep giving
        the same rows: changes are stored here. None for no rows.
    row_type: a frozen dataclass, named tuple or tuple of plain types, or a plain type.
    folder: the path or URI of the changes. Existing changes are continued.
    key: one or several fields that identify a row; for `upsert`.
    format: the format of the files: `"parquet"`, `"csv"`, `"delta"`.

    Raises
    ------
    OffloadError: rows of this type have no Spark type.
    TableError: the columns do not fit it, or a value is null where None is not of the type.
    """

    def __init__(
        self,
        session: Session,
        source: Source,
        row_type: Any,
        folder: str,
        *,
        key: str | Sequence[str] | None = None,
        name: str = "table",
        format: str | None = None,
    ) -> None:
        self.kept = require_columns(row_type, name)
        self.key = _check_key(key, self.kept, name)
        self.name = name
        self._session, self._source, self._format = session, source, format
        self._changes = Changes(session, folder)
        self.rows_at_first = 0 if source is None else self._validate()

    @property
    def version(self) -> int:
        """The number of the last change; 0 if there was none."""
        return self._changes.last

    @property
    def batches(self) -> Mapping[str, int]:
        """The number of the last batch of each query that sends batches with `once`."""
        return self._changes.batches

    def change(self, pairs: Iterable[Pair]) -> int:
        """Insert and delete rows, given with their weights, and return the new version.

        Raises
        ------
        OffloadError: a row is not exactly of the row type, or would be read back as another value;
            nothing has changed then.
        """
        number, given = self.version + 1, list(pairs)
        rows = to_arrow(self.kept, [row for row, _ in given])
        with self._changes.aside(number) as path:
            self._changes.put(path, rows, [weight for _, weight in given])
            return self._changes.keep(path, number)

    def add_rows(self, rows: Iterable[Row]) -> int:
        """Add each row once; raise as `change` does."""
        return self.change((row, 1) for row in rows)

    def remove_rows(self, rows: Iterable[Row]) -> int:
        """Remove each row once; raise as `change` does."""
        return self.change((row, -1) for row in rows)

    def add_frame(self, frame: DataFrame, once: Once | None = None) -> int:
        """Add the rows of a DataFrame, which is evaluated once.

        Parameters
        ----------
        once: a query and the number of its batch. If this batch or a later one of the query is
            already included, nothing changes. It is noted together with the rows.

        Raises
        ------
        TableError: its columns or values do not fit the row type; nothing has changed then.
        """
        return self._write(frame, 1, once)

    def remove_frame(self, frame: DataFrame, once: Once | None = None) -> int:
        """Delete the rows of a DataFrame, with their multiplicities; raise as `add_frame` does."""
        return self._write(frame, -1, once)

    def upsert_rows(self, rows: Iterable[Row]) -> int:
        """Add rows, which replace the rows with their keys; a scan and a join.

        Raises
        ------
        TableError: a key occurs twice or is NaN, or the table has no key.
        OffloadError: as for `change`.
        """
        number, given = self.version + 1, to_arrow(self.kept, list(rows))
        with self._changes.aside(number) as path:
            self._changes.put(path, given, [1] * len(given))
            return self._replace(number, self.read([path]), None)

    def upsert_frame(self, frame: DataFrame, once: Once | None = None) -> int:
        """Add the rows of a DataFrame, which replace the rows with their keys.

        Raises
        ------
        TableError: a key occurs twice or is NaN, the table has no key, or the columns do not fit.

        Cost: a scan of the table and a join.
        """
        if self._changes.has(once):
            return self.version
        number, rows = self.version + 1, as_rows(frame, self.kept, self.name)
        with self._changes.aside(number) as path:
            rows.write.parquet(path)
            check_values(self.read([path]), self.kept, self.name)
            return self._replace(number, self.read([path]), once)

    def replace_frame(self, frame: DataFrame, once: Once | None = None) -> int:
        """Replace all rows of the table by the rows of a DataFrame; the change is the difference.

        Raises
        ------
        TableError: as for `add_frame`; or a key occurs twice or is NaN.

        Cost: a scan of both, which are grouped by row.
        """
        if self._changes.has(once):
            return self.version
        number, rows = self.version + 1, as_rows(frame, self.kept, self.name)
        with self._changes.aside(number) as path:
            rows.write.parquet(path)
            new = self.read([path])
            check_values(new, self.kept, self.name)
            self.check_keys(new)
            return self._keep(number, self.difference(new), once)

    def aside(self) -> AbstractContextManager[str]:
        """Return a context with a folder for the next change; it is deleted afterwards unless
        `keep` made it the change."""
        return self._changes.aside(self.version + 1)

    def keep(self, path: str, once: Once | None) -> int:
        """Make a folder of `aside` the next change, without reading it."""
        return self._changes.keep(path, self.version + 1, once)

    def rows_in(self, path: str) -> int:
        """Return the number of rows in the files of a folder of `aside`."""
        return self._changes.rows_in(path)

    def replace_rows(self, new: DataFrame, keys: DataFrame) -> DataFrame:
        """Return the change that inserts `new` and deletes all rows with the given keys.

        Parameters
        ----------
        keys: a frame whose column `key` is as `key_column` returns it.

        Only the table rows with these keys are shuffled; the table is read once.
        """
        old = self.since(-1).frame
        same = key_column(old["row"], self.own_key).eqNullSafe(keys["key"])
        gone = _negate_weights(old.join(keys, same, "left_semi"))
        return net_weights(gone.unionByName(new))

    def difference(self, new: DataFrame) -> DataFrame:
        """Return the change from the current rows to `new`."""
        return net_weights(_negate_weights(self.current().frame).unionByName(new))

    @property
    def own_key(self) -> tuple[str, ...]:
        """The fields of the key.

        Raises
        ------
        TableError: the table has no key.
        """
        if self.key is None:
            raise TableError(f"table {self.name!r} has no key to find rows by")
        return self.key

    def since(self, version: int, upto: int | None = None) -> Weighted:
        """Return the changes after a version, up to another or the last; after -1, all rows.

        Copies of a row are not added up. Few changes become part of the query, which then reads no
        files for them.
        """
        last = self.version if upto is None else upto
        if self.is_local(version, last):
            return Weighted(self._fetch(version + 1, last), self.kept)
        paths = self._changes.paths(max(version, 0) + 1, last)
        return Weighted(self._union(paths, whole=version < 0), self.kept)

    def few(self, version: int, upto: int) -> Collection[Pair]:
        """Return the changes after a version, up to `upto`, in the driver; () if there are none.

        Copies of a row are not added up.
        """
        if version >= upto:
            return ()
        return pairs_of(self.kept, self._changes.fetched(version + 1, upto))

    def is_local(self, version: int, upto: int) -> bool:
        """Return True if `since` returns rows that are part of the query."""
        return 0 <= version < upto and self.changed(version, upto) <= MOST_LOCAL

    def changed(self, version: int, upto: int) -> int:
        """Return the number of rows of `since`, from the ends of files."""
        at_first = self.rows_at_first if version < 0 else 0
        return at_first + self._changes.rows(max(version, 0) + 1, upto)

    def current(self, upto: int | None = None) -> Weighted:
        """Return the current rows, with positive weights; a scan of the table.

        Each row occurs once with its weight, except in a table that has never changed.
        """
        last = self.version if upto is None else upto
        paths = self._changes.paths(1, last)
        rows = self._union(paths, whole=True)
        return Weighted(net_weights(rows) if paths else rows, self.kept)

    def size(self) -> int:
        """Return the number of current rows; a scan of the weights of the changes."""
        paths = self._changes.paths(1, self.version)
        found = fetch_first(self.read(paths).agg(F.sum("weight").alias("size"))) if paths else None
        return self.rows_at_first + ((found and found["size"]) or 0)

    def verify(self) -> None:
        """Check the weights and keys of all rows; a scan of the table.

        Raises
        ------
        TableError: a row was removed more often than it was inserted, or two rows have one key.
        """
        rows = self.current().frame
        wrong = fetch_first(rows.filter("weight < 0"))
        if wrong is not None:
            raise TableError(f"table {self.name!r}: {wrong['row']} was removed, but not there")
        self.check_keys(rows)

    def close(self) -> None:
        """Delete the changes."""
        self._changes.delete()

    def _validate(self) -> int:
        """Validate the initial rows against the row type, and return their number.

        Raises
        ------
        TableError: a column or a value is not of the type.
        """
        given, source = self._source_frame(), self._source
        rows = as_rows(given, self.kept, self.name)
        if isinstance(source, str) and format_of(source, self._format) == PARQUET:
            found = rows_by_ends(self._session, given.inputFiles(), self.kept)
            if found is not None:
                return found
        return check_values(rows, self.kept, self.name)

    def _source_frame(self) -> DataFrame:
        """Return the DataFrame of the source."""
        source = self._source
        assert source is not None
        if isinstance(source, str):
            source = read_path(self._session.spark, source, self.kept, self._format)
        given: DataFrame = self._session.own(source)
        return given

    def _initial_rows(self) -> DataFrame:
        """Return the rows of the source with weight 1; no rows without a source."""
        if self._source is None:
            return self.read([])
        return as_rows(self._source_frame(), self.kept, self.name)

    def _union(self, paths: list[str], *, whole: bool) -> DataFrame:
        """Return the changes in folders, and with `whole` also the initial rows."""
        if not whole:
            return self.read(paths)
        return self._initial_rows().unionByName(self.read(paths)) if paths else self._initial_rows()

    def read(self, paths: list[str]) -> DataFrame:
        """Read the rows with weights of folders."""
        spark: SparkSession = self._session.spark
        if paths:
            found: DataFrame = with_literal_paths(spark.read).schema(self._schema).parquet(*paths)
            return found
        return spark.createDataFrame([], self._schema)

    def _fetch(self, first: int, last: int) -> DataFrame:
        """Read changes into the driver, and return them as a DataFrame of local rows."""
        spark: Any = self._session.spark
        found: DataFrame = spark.createDataFrame(self._changes.fetched(first, last), self._schema)
        return found

    @property
    def _schema(self) -> T.StructType:
        row = spark_type(self.kept)
        return T.StructType([T.StructField("row", row), T.StructField("weight", T.LongType())])

    def _write(self, frame: DataFrame, weight: int, once: Once | None) -> int:
        """Write rows, all of one weight, as a new version, and return its number.

        Nothing is written if `once` says that it was done before. Raises if a value does not fit.
        """
        if self._changes.has(once):
            return self.version
        number, rows = self.version + 1, as_rows(frame, self.kept, self.name)
        with self._changes.aside(number) as path:
            rows.withColumn("weight", F.lit(weight).cast("long")).write.parquet(path)
            check_values(self.read([path]), self.kept, self.name)
            return self._changes.keep(path, number, once)

    def _replace(self, number: int, new: DataFrame, once: Once | None) -> int:
        """Write the change that `new` rows replace the rows with their keys.

        Raises `TableError` if two have one key.
        """
        keys = new.select(key_column(F.col("row"), self.own_key).alias("key"))
        self.check_keys(new)
        return self._keep(number, self.replace_rows(new, keys), once)

    def _keep(self, number: int, rows: DataFrame, once: Once | None) -> int:
        """Write rows with weights as the change `number`, and return the number."""
        with self._changes.aside(number) as path:
            rows.write.parquet(path)
            return self._changes.keep(path, number, once)

    def check_keys(self, rows: DataFrame) -> None:
        """Raise `TableError` if two rows have one key, or one is NaN."""
        if self.key is None:
            return
        keys = rows.select(key_column(F.col("row"), self.key).alias("key"), "weight")
        counts = keys.groupBy("key").agg(F.sum("weight").alias("count"))
        odd = [F.isnan(F.col("key").getField(n)) for n in self.key if _is_float(self.kept, n)]
        wrong = reduce(lambda a, b: a | b, odd, F.col("count") > 1)
        found = fetch_first(counts.filter(wrong))
        if found is not None:
            key = ", ".join(f"{name} {value!r}" for name, value in found["key"].items())
            reason = "is NaN" if found["count"] == 1 else f"has {found['count']} rows"
            raise TableError(f"table {self.name!r}: the key {key} {reason}")


def as_columns(weighted: Weighted, *, once: bool = False) -> DataFrame:
    """Return rows as an ordinary DataFrame: a column per field, each row repeated by its weight.

    A value that is no record is in the column `value`, a pickled row in the column `row`; a bag is
    a list that repeats its values. Weights must be positive; if each row is there `once`, they are
    1.
    """
    times = F.explode(F.sequence(F.lit(1).cast("long"), F.col("weight")))
    rows = weighted.frame if once else weighted.frame.select("row", times.alias("time"))
    rows = rows.select("row")
    if isinstance(weighted.kept, Pickled):
        return rows
    rows = rows.select(list_values(Value(F.col("row"), weighted.kept)).alias("row"))
    if isinstance(weighted.kept, Record):
        return rows.select("row.*")
    return rows.withColumnRenamed("row", "value")


def require_columns(row_type: Any, name: str) -> Typed:
    """Return the column type of rows. Raises `OffloadError` if they have none."""
    kept: Kept = kept_as(row_type)
    if isinstance(kept, Pickled):
        raise OffloadError(
            f"table {name!r} cannot live on Spark: {kept.reason}\n"
            "  rows need fields of plain types; or use db.table, whose rows may be anything"
        )
    return kept


def _check_key(key: str | Sequence[str] | None, of: Typed, name: str) -> tuple[str, ...] | None:
    """Return the fields of a key; None without a key.

    Raises `OffloadError` if it is not a field of the rows.
    """
    if key is None:
        return None
    if callable(key):
        raise OffloadError(f"the key of table {name!r} must be a field: Spark cannot call {key!r}")
    names = (key,) if isinstance(key, str) else tuple(key)
    missing = [n for n in names if not isinstance(of, Record) or n not in of.names]
    if missing or not names:
        raise OffloadError(f"key {key!r} of table {name!r}: no field of {type_name(of)}")
    return names


def _is_float(of: Typed, name: str) -> bool:
    return isinstance(of, Record) and of.fields[of.names.index(name)].kind is float


def _negate_weights(rows: DataFrame) -> DataFrame:
    return rows.withColumn("weight", -F.col("weight"))


def net_weights(rows: DataFrame) -> DataFrame:
    """Return each row once, with the sum of its weights, without rows whose sum is 0."""
    summed = rows.groupBy("row").agg(F.sum("weight").alias("weight"))
    return summed.filter(F.col("weight") != 0)


MOST_FILES = 1_000
"""The most files whose ends are read faster than a scan."""


def rows_by_ends(session: Session, files: Sequence[str], of: Typed) -> int | None:
    """Return the number of rows of files, or None unless their ends prove the types.

    Parameters
    ----------
    files: all files to read, as Spark names them.
    of: the type; its fields are columns, by name.
    """
    names = _never_null(of)
    if names is None or not 0 < len(files) <= MOST_FILES:
        return None
    try:
        with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="reactive-ends") as pool:
            return _sum_if_known(pool.map(partial(_count_file, session, names), files))
    except (OSError, ValueError, pa.ArrowException, OffloadError):
        return None  # a scan reports the error of a file


def _never_null(of: Typed) -> list[str] | None:
    """Return the columns that must not contain null; None if the type demands further checks."""
    if not isinstance(of, Record) or not all(isinstance(f, Plain) for f in of.fields):
        return None
    if of.kind is tuple or any(field.kind in ENDS for field in of.fields):
        return None
    return [name for name, field in zip(of.names, of.fields, strict=True) if not field.optional]


def _sum_if_known(each: Iterable[int | None]) -> int | None:
    """Return the sum; None as soon as one of the numbers is None."""
    total = 0
    for rows in each:
        if rows is None:
            return None
        total += rows
    return total


def _count_file(session: Session, names: Sequence[str], file: str) -> int | None:
    """Return the number of rows of a file if its end proves that the columns contain no null; else
    None."""
    folder, _, name = file.rpartition("/")
    if not is_remote(folder):
        folder, name = unquote(folder), unquote(name)
    place = locate(folder, session)
    with place.files.open_input_file(f"{place.root}/{name}") as opened:
        found = pq.ParquetFile(opened).metadata
    columns = {found.schema.column(n).path: n for n in range(found.num_columns)}
    groups = [found.row_group(n) for n in range(found.num_row_groups)]
    if not all(name in columns for name in names):
        return None
    is_sure = all(_has_none_null(group.column(columns[n])) for group in groups for n in names)
    return int(found.num_rows) if is_sure else None


def _has_none_null(chunk: Any) -> bool:
    """Return True if the statistics of a column prove that it contains no null."""
    said = chunk.statistics
    return said is not None and said.has_null_count and said.null_count == 0
