"""The rows of a table that lives on Spark: what was there at first, and each change since.

    version 0     the DataFrame or files that the table was made of
    version n     a folder of Parquet files: rows with weights, written aside, then noted

Rows do not pass through the driver, other than those that it is given. Whether what is removed is
there is not looked at, as that would be a scan for each change; `verify` does.

State:  on disk, the changes.
Cost:   a change costs what it brings; `upsert` and `current` read the whole table, and `upsert`
        shuffles no more of it than the rows of its keys.

What the ends of Parquet files say of a table that is made of them: how many rows there are, and
that no value is null where None is not of the type. Then nobody has to look at the values.

    orders/part-0.parquet    | ... | end: 250,000 rows; id: 0 nulls, customer: 0 nulls

Sound:  what Spark leaves out of a scan it leaves out by the same counts. A file that does not say
        enough, or a type of which not all values fit (dates), is left to a scan.
State:  none.
Cost:   two small reads a file.
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
from spark_backend.cluster.files import by_name, located
from spark_backend.cluster.paths import is_remote
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import pairs_of, to_arrow
from spark_backend.codec.schema import Kept, Pickled, Plain, Record, Typed, kept_as, type_name
from spark_backend.codec.values import Value, listed, spark_type
from spark_backend.state.ends import AT_A_TIME
from spark_backend.tables.chain import Weighted
from spark_backend.tables.changes import Changes
from spark_backend.tables.stateless import (
    ENDS,
    PARQUET,
    as_rows,
    check_values,
    first_row,
    format_of,
    key_of,
    read,
)

Source = DataFrame | str | None
MOST_LOCAL = 1_000
"""Changed rows up to which they are part of a query, rather than files that it reads."""


class Frames:
    """Rows of one type, and their changes, by version.

    Parameters
    ----------
    session: whose `spark` runs the queries.
    source: a DataFrame, or the path of Parquet or CSV files or a Delta table. It must go on giving
        the same rows: changes are made here. None for no rows.
    row_type: a frozen dataclass, named tuple or tuple of plain types, or one of these.
    folder: where changes are kept, as a path or URI. Changes that are there are gone on with.
    key: a field, or several, that at most one row has; for `upsert`.
    format: of the files: `"parquet"`, `"csv"`, `"delta"`.

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
        self.kept = _typed(row_type, name)
        self.key = _key(key, self.kept, name)
        self.name = name
        self._session, self._source, self._format = session, source, format
        self._changes = Changes(session, folder)
        self.rows_at_first = 0 if source is None else self._checked()

    @property
    def version(self) -> int:
        """Of the last change; 0 if there was none."""
        return self._changes.last

    @property
    def batches(self) -> Mapping[str, int]:
        """Of each query whose batches have come `once`, the number of the last one."""
        return self._changes.batches

    def change(self, pairs: Iterable[Pair]) -> int:
        """Rows that were inserted and deleted, with their weights: a new version, whose number is
        returned.

        Raises
        ------
        OffloadError: a row is not just of the row type, or would come back as something else;
            nothing has changed then.
        """
        number, given = self.version + 1, list(pairs)
        rows = to_arrow(self.kept, [row for row, _ in given])
        with self._changes.aside(number) as path:
            self._changes.put(path, rows, [weight for _, weight in given])
            return self._changes.keep(path, number)

    def add_rows(self, rows: Iterable[Row]) -> int:
        """Add rows, each once; raises as `change`."""
        return self.change((row, 1) for row in rows)

    def remove_rows(self, rows: Iterable[Row]) -> int:
        """Remove rows, each once."""
        return self.change((row, -1) for row in rows)

    def add_frame(self, frame: DataFrame, once: Once | None = None) -> int:
        """Add the rows of a DataFrame, which is evaluated once.

        Parameters
        ----------
        once: a query and the number of its batch: if this one has come already, or a later one of
            the query, nothing changes. It is noted together with the rows.

        Raises
        ------
        TableError: its columns or values do not fit the row type; nothing has changed then.
        """
        return self._write(frame, 1, once)

    def remove_frame(self, frame: DataFrame, once: Once | None = None) -> int:
        """Delete the rows of a DataFrame, with their multiplicities; raises as `add_frame`."""
        return self._write(frame, -1, once)

    def upsert_rows(self, rows: Iterable[Row]) -> int:
        """Add rows, in the place of the rows that have their keys; a scan and a join.

        Raises
        ------
        TableError: a key comes twice or is NaN, or there is no key.
        OffloadError: as `change`.
        """
        number, given = self.version + 1, to_arrow(self.kept, list(rows))
        with self._changes.aside(number) as path:
            self._changes.put(path, given, [1] * len(given))
            return self._replace(number, self.read([path]), None)

    def upsert_frame(self, frame: DataFrame, once: Once | None = None) -> int:
        """Add the rows of a DataFrame, in the place of those that have their keys.

        Raises
        ------
        TableError: a key comes twice or is NaN, there is no key, or it does not fit the rows.

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
        """Make the rows of a DataFrame those of the table; only the difference is a change.

        Raises
        ------
        TableError: as `add_frame`; or there is a key, and it comes twice or is NaN.

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
        """A folder to write the next change to; it is gone afterwards, unless it was kept."""
        return self._changes.aside(self.version + 1)

    def keep(self, path: str, once: Once | None) -> int:
        """Make a folder that was written aside the next change; quick."""
        return self._changes.keep(path, self.version + 1, once)

    def rows_in(self, path: str) -> int:
        """How many rows a folder has."""
        return self._changes.rows_in(path)

    def replaced(self, new: DataFrame, keys: DataFrame) -> DataFrame:
        """The change by which new rows come, and all that have some keys go.

        Parameters
        ----------
        keys: their column `key` is as `key_of` gives it.

        The table is read once, where it is: its rows of these keys alone are shuffled.
        """
        old = self.since(-1).frame
        same = key_of(old["row"], self.own_key).eqNullSafe(keys["key"])
        gone = _negated(old.join(keys, same, "left_semi"))
        return net(gone.unionByName(new))

    def difference(self, new: DataFrame) -> DataFrame:
        """What leads from the rows that are there to others."""
        return net(_negated(self.current().frame).unionByName(new))

    @property
    def own_key(self) -> tuple[str, ...]:
        """The fields of the key.

        Raises
        ------
        TableError: there is none.
        """
        if self.key is None:
            raise TableError(f"table {self.name!r} has no key to find rows by")
        return self.key

    def since(self, version: int, upto: int | None = None) -> Weighted:
        """The changes after a version, up to another or the last; after -1, all rows.

        They are not added up. Those that are few become part of the query, which then reads no
        files for them.
        """
        last = self.version if upto is None else upto
        if self.is_local(version, last):
            return Weighted(self._fetched(version + 1, last), self.kept)
        paths = self._changes.paths(max(version, 0) + 1, last)
        return Weighted(self._union(paths, whole=version < 0), self.kept)

    def few(self, version: int, upto: int) -> Collection[Pair]:
        """The changes after a version, up to another, in the driver; not added up."""
        if version >= upto:
            return ()
        return pairs_of(self.kept, self._changes.fetched(version + 1, upto))

    def is_local(self, version: int, upto: int) -> bool:
        """Whether `since` gives rows that are part of the query."""
        return 0 <= version < upto and self.changed(version, upto) <= MOST_LOCAL

    def changed(self, version: int, upto: int) -> int:
        """How many rows `since` gives; read from the ends of files."""
        at_first = self.rows_at_first if version < 0 else 0
        return at_first + self._changes.rows(max(version, 0) + 1, upto)

    def current(self, upto: int | None = None) -> Weighted:
        """The rows that are there, with positive weights; a scan of the table.

        A row is there once with its weight, other than in a table that has never changed.
        """
        last = self.version if upto is None else upto
        paths = self._changes.paths(1, last)
        rows = self._union(paths, whole=True)
        return Weighted(net(rows) if paths else rows, self.kept)

    def size(self) -> int:
        """How many rows there are; a scan of the weights of the changes."""
        paths = self._changes.paths(1, self.version)
        found = first_row(self.read(paths).agg(F.sum("weight").alias("size"))) if paths else None
        return self.rows_at_first + ((found and found["size"]) or 0)

    def verify(self) -> None:
        """Look whether all is in order; a scan of the table.

        Raises
        ------
        TableError: a row has been removed more often than it was there, or two rows have one key.
        """
        rows = self.current().frame
        wrong = first_row(rows.filter("weight < 0"))
        if wrong is not None:
            raise TableError(f"table {self.name!r}: {wrong['row']} was removed, but not there")
        self.check_keys(rows)

    def close(self) -> None:
        """Delete the changes."""
        self._changes.delete()

    def _checked(self) -> int:
        """How many rows there are at first; all their values are of the type.

        Raises
        ------
        TableError: one is not, or a column.
        """
        given, source = self._given(), self._source
        rows = as_rows(given, self.kept, self.name)
        if isinstance(source, str) and format_of(source, self._format) == PARQUET:
            found = rows_by_ends(self._session, given.inputFiles(), self.kept)
            if found is not None:
                return found
        return check_values(rows, self.kept, self.name)

    def _given(self) -> DataFrame:
        """What the table was made of."""
        source = self._source
        assert source is not None
        if isinstance(source, str):
            source = read(self._session.spark, source, self.kept, self._format)
        given: DataFrame = self._session.own(source)
        return given

    def _at_first(self) -> DataFrame:
        if self._source is None:
            return self.read([])
        return as_rows(self._given(), self.kept, self.name)

    def _union(self, paths: list[str], *, whole: bool) -> DataFrame:
        if not whole:
            return self.read(paths)
        return self._at_first().unionByName(self.read(paths)) if paths else self._at_first()

    def read(self, paths: list[str]) -> DataFrame:
        """Rows with weights that were written to folders."""
        spark: SparkSession = self._session.spark
        if paths:
            found: DataFrame = by_name(spark.read).schema(self._schema).parquet(*paths)
            return found
        return spark.createDataFrame([], self._schema)

    def _fetched(self, first: int, last: int) -> DataFrame:
        """Changes, by way of the driver."""
        spark: Any = self._session.spark
        found: DataFrame = spark.createDataFrame(self._changes.fetched(first, last), self._schema)
        return found

    @property
    def _schema(self) -> T.StructType:
        row = spark_type(self.kept)
        return T.StructType([T.StructField("row", row), T.StructField("weight", T.LongType())])

    def _write(self, frame: DataFrame, weight: int, once: Once | None) -> int:
        if self._changes.has(once):
            return self.version
        number, rows = self.version + 1, as_rows(frame, self.kept, self.name)
        with self._changes.aside(number) as path:
            rows.withColumn("weight", F.lit(weight).cast("long")).write.parquet(path)
            check_values(self.read([path]), self.kept, self.name)
            return self._changes.keep(path, number, once)

    def _replace(self, number: int, new: DataFrame, once: Once | None) -> int:
        keys = new.select(key_of(F.col("row"), self.own_key).alias("key"))
        self.check_keys(new)
        return self._keep(number, self.replaced(new, keys), once)

    def _keep(self, number: int, rows: DataFrame, once: Once | None) -> int:
        with self._changes.aside(number) as path:
            rows.write.parquet(path)
            return self._changes.keep(path, number, once)

    def check_keys(self, rows: DataFrame) -> None:
        """Raise `TableError` if two rows have one key, or one is NaN."""
        if self.key is None:
            return
        keys = rows.select(key_of(F.col("row"), self.key).alias("key"), "weight")
        counts = keys.groupBy("key").agg(F.sum("weight").alias("count"))
        odd = [F.isnan(F.col("key").getField(n)) for n in self.key if _is_float(self.kept, n)]
        wrong = reduce(lambda a, b: a | b, odd, F.col("count") > 1)
        found = first_row(counts.filter(wrong))
        if found is not None:
            key = ", ".join(f"{name} {value!r}" for name, value in found["key"].items())
            reason = "is NaN" if found["count"] == 1 else f"has {found['count']} rows"
            raise TableError(f"table {self.name!r}: the key {key} {reason}")


def as_columns(weighted: Weighted, *, once: bool = False) -> DataFrame:
    """Rows as an ordinary DataFrame: a column per field, each row repeated by its weight.

    A value that is no record is in the column `value`, a pickled row in the column `row`; a bag is
    a list, with a value as often as it is there. Weights must be positive; if each row is there
    `once`, they are 1.
    """
    times = F.explode(F.sequence(F.lit(1).cast("long"), F.col("weight")))
    rows = weighted.frame if once else weighted.frame.select("row", times.alias("time"))
    rows = rows.select("row")
    if isinstance(weighted.kept, Pickled):
        return rows
    rows = rows.select(listed(Value(F.col("row"), weighted.kept)).alias("row"))
    if isinstance(weighted.kept, Record):
        return rows.select("row.*")
    return rows.withColumnRenamed("row", "value")


def _typed(row_type: Any, name: str) -> Typed:
    kept: Kept = kept_as(row_type)
    if isinstance(kept, Pickled):
        raise OffloadError(
            f"table {name!r} cannot live on Spark: {kept.reason}\n"
            "  rows need fields of plain types; or use db.table, whose rows may be anything"
        )
    return kept


def _key(key: str | Sequence[str] | None, of: Typed, name: str) -> tuple[str, ...] | None:
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


def _negated(rows: DataFrame) -> DataFrame:
    return rows.withColumn("weight", -F.col("weight"))


def net(rows: DataFrame) -> DataFrame:
    """Each row once, with the sum of its weights; without rows whose weights cancel."""
    summed = rows.groupBy("row").agg(F.sum("weight").alias("weight"))
    return summed.filter(F.col("weight") != 0)


MOST_FILES = 1_000
"""Of more files a scan says it sooner."""


def rows_by_ends(session: Session, files: Sequence[str], of: Typed) -> int | None:
    """How many rows files have, if their ends say that all are of the type; None otherwise.

    Parameters
    ----------
    files: as Spark names them, all that are read.
    of: the type; its fields are columns, by name.
    """
    names = _never_null(of)
    if names is None or not 0 < len(files) <= MOST_FILES:
        return None
    try:
        with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="reactive-ends") as pool:
            return _total(pool.map(partial(_rows, session, names), files))
    except (OSError, ValueError, pa.ArrowException, OffloadError):
        return None  # whatever is wrong with a file, a scan tells it


def _never_null(of: Typed) -> list[str] | None:
    """The columns of which no value is to be null; None where that does not say all."""
    if not isinstance(of, Record) or not all(isinstance(f, Plain) for f in of.fields):
        return None
    if of.kind is tuple or any(field.kind in ENDS for field in of.fields):
        return None
    return [name for name, field in zip(of.names, of.fields, strict=True) if not field.optional]


def _total(each: Iterable[int | None]) -> int | None:
    total = 0
    for rows in each:
        if rows is None:
            return None
        total += rows
    return total


def _rows(session: Session, names: Sequence[str], file: str) -> int | None:
    """How many rows a file has, if it says that none of these columns is null anywhere."""
    folder, _, name = file.rpartition("/")
    if not is_remote(folder):
        folder, name = unquote(folder), unquote(name)
    place = located(folder, session)
    with place.files.open_input_file(f"{place.root}/{name}") as opened:
        found = pq.ParquetFile(opened).metadata
    columns = {found.schema.column(n).path: n for n in range(found.num_columns)}
    groups = [found.row_group(n) for n in range(found.num_row_groups)]
    if not all(name in columns for name in names):
        return None
    is_sure = all(_has_none_null(group.column(columns[n])) for group in groups for n in names)
    return int(found.num_rows) if is_sure else None


def _has_none_null(chunk: Any) -> bool:
    said = chunk.statistics
    return said is not None and said.has_null_count and said.null_count == 0
