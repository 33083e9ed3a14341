"""Rows with weights that Spark has, and how they get into files without passing the driver.

    changes --net--> columns, weight        a batch of changes

What the files would not hold, or what goes that is not there, makes the job fail, and then nothing
counts of it.

State:  none: what the rows are read from is what whoever made them keeps.
Cost:   one job to write, O(rows).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from reactive.errors import OffloadError
from spark_backend.cluster.files import by_name
from spark_backend.cluster.session import Session
from spark_backend.codec.schema import LARGEST, LEAST, Plain, Record, Typed
from spark_backend.codec.values import Value, as_type, field_of, spark_type
from spark_backend.sinks.rows import VALUE, WEIGHT

ONE_TASK = 10_000
"""Rows that one task writes, without a shuffle."""
REFUSED, END = "<refused by a sink: ", ">"
BEYOND = (
    " is beyond 64 bits, which is what files hold of an integer\n"
    "  select it as something else, such as a text or a float"
)
Made = Callable[[Typed], DataFrame]
"""Gives the columns of rows that are of a type, and `weight`; not added up."""


@dataclass(frozen=True, slots=True)
class FrameRows:
    """Rows with weights on Spark, as `reactive.remote.following.RemoteRows`.

    Nothing is read before it is written, and each time anew.
    """

    session: Session
    kept: Typed
    """What the rows are."""
    rows: int
    """There are no more than so many."""
    made: tuple[Made, ...]
    is_net: bool = False
    """Whether each row is there once."""

    def with_rows(self, more: FrameRows) -> FrameRows:
        """These and more."""
        rows, made = self.rows + more.rows, (*self.made, *more.made)
        return replace(self, rows=rows, made=made, is_net=False)

    def without_files(self, paths: Sequence[str], rows: int) -> FrameRows:
        """These without those of files of changes, which hold no more than so many."""
        if not paths:
            return self
        read: Made = partial(_undone, self.session, tuple(paths))
        made = (*self.made, read)
        return replace(self, rows=self.rows + rows, made=made, is_net=False)

    def write_changes(self, of: Typed, folder: str) -> None:
        """Write what they come to, each row once with its weight.

        Parameters
        ----------
        of: what the rows are in files.

        Raises
        ------
        OffloadError: the files would not hold a value.
        """
        with _refusals():
            self._net(of).write.parquet(folder)

    def _net(self, of: Typed) -> DataFrame:
        """The rows in the tasks that write them."""
        found = self._all(of)
        if self.is_net:
            return found.coalesce(self.session.tasks)
        if self.rows <= ONE_TASK:
            found = found.coalesce(1)
        summed = found.groupBy(*_names(of)).agg(F.sum(WEIGHT).alias(WEIGHT))
        return summed.filter(F.col(WEIGHT) != 0).coalesce(self.session.tasks)

    def _all(self, of: Typed) -> DataFrame:
        if not self.session.is_alive():
            self.session.restart()
        return reduce(lambda a, b: a.unionByName(b), [made(of) for made in self.made])


def columns(rows: DataFrame, kept: Typed, of: Typed) -> DataFrame:
    """Rows with the columns `row` and `weight` as those of files.

    An integer that 64 bits do not hold makes the job that reads it fail.
    """
    row = Value(F.col("row"), kept)
    if not isinstance(of, Record):
        return rows.select(_checked(row, of).alias(VALUE), WEIGHT)
    fields = [_checked(field_of(row, at), f).alias(n) for at, (n, f) in enumerate(_fields(of))]
    return rows.select(*fields, WEIGHT)


def _checked(value: Value, of: Typed) -> Column:
    """A value as it is in files, if it fits in there."""
    if isinstance(value.of, Plain) and value.of.is_wide and isinstance(of, Plain):
        fits = value.column.isNull() | value.column.between(F.lit(LEAST), F.lit(LARGEST))
        text = F.concat(F.lit(REFUSED), value.column.cast("string"), F.lit(BEYOND + END))
        return F.when(fits, value.column.cast("long")).otherwise(F.raise_error(text).cast("long"))
    if isinstance(value.of, Record) and isinstance(of, Record):
        both = enumerate(_fields(of))
        fields = [_checked(field_of(value, at), f).alias(n) for at, (n, f) in both]
        return F.when(value.column.isNotNull(), F.struct(*fields))
    return as_type(value, of)


def _undone(session: Session, paths: Sequence[str], of: Typed) -> DataFrame:
    """What is in files of changes, with the weights that undo it."""
    fields = [T.StructField(name, spark_type(f)) for name, f in _fields(of)]
    schema = T.StructType([*fields, T.StructField(WEIGHT, T.LongType())])
    found: DataFrame = by_name(session.spark.read).schema(schema).parquet(*paths)
    return found.withColumn(WEIGHT, -F.col(WEIGHT))


def _fields(of: Typed) -> list[tuple[str, Typed]]:
    """The columns in files."""
    if isinstance(of, Record):
        return list(zip(of.names, of.fields, strict=True))
    return [(VALUE, of)]


def _names(of: Typed) -> list[str]:
    return [f"`{name}`" for name, _ in _fields(of)]


@contextmanager
def _refusals() -> Iterator[None]:
    """Raises `OffloadError` for what makes a job fail that is meanwhile."""
    try:
        yield
    except Exception as error:
        _, found, after = str(error).partition(REFUSED)
        if not found:
            raise
        raise OffloadError(after.partition(END)[0]) from error
