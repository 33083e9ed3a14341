"""Write rows with weights on Spark to files, without passing the driver; and changes to Kafka.

    changes --net--> columns, weight                              a batch of changes
    changes, rows --net, a bucket in one task--> columns          files of rows

A value that files cannot store, or a deleted row that is not there, makes the job fail; then
nothing of it counts.

State:  none: the owner of the rows keeps the files from that they are read.
Cost:   one job to write, O(rows).

`KafkaTopic` writes changes as messages, in Spark's own `kafka` format:

    without a key    a message per changed row                           weight in a header
    with a key       a message per changed key: its current row          a tombstone if it has none

The value is the row as JSON. A batch that is written again, after a failure, has the same messages
under the same number: in a topic with keys only the last one counts, so the repetition is harmless.

Source: log compaction; Spark's integration with Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from types import MappingProxyType

from py4j.protocol import Py4JNetworkError
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from reactive.errors import OffloadError
from spark_backend.cluster.files import with_literal_paths
from spark_backend.cluster.session import Session
from spark_backend.codec.schema import LARGEST, LEAST, Plain, Record, Typed, Whole
from spark_backend.codec.values import Value, as_type, field_of, map_values, spark_type
from spark_backend.sinks.rows import VALUE, WEIGHT
from spark_backend.sinks.rows_folder import BUCKET, HashedRows

ONE_TASK = 10_000
"""The most rows that one task writes, without a shuffle."""
REFUSED, END = "<refused by a sink: ", " :refused>"
BEYOND = (
    " is beyond 64 bits, which is what files hold of an integer\n"
    "  select it as something else, such as a text or a float"
)
GONE = (
    "{whose} does not have {{}}, which is to go: somebody else has changed it\n"
    "  the next batch compares it with the view"
)
DOUBLED = (
    "two rows have the key {key} of {{}}\n"
    "  give a key that no two rows of the view agree on, or none"
)
GONE_MEANWHILE = (
    "Spark has gone while a batch was written\n"
    "  its changes are kept, and are written with those that come until the next try"
)
LONGEST = 100
COUNT = "__weight__"
"""The column of the number of copies, beside the columns of a row."""
Made = Callable[[Typed], DataFrame]
"""Makes a frame of rows of a type, with their columns and `COUNT`, not netted."""


@dataclass(frozen=True, slots=True)
class FrameRows:
    """Rows with weights on Spark, as `reactive.engine.remote.remote_operator.RemoteRows`.

    The rows are read when they are written, and again for each write.
    """

    session: Session
    kept: Typed
    """The type of the rows."""
    rows: int
    """The maximum number of rows."""
    made: tuple[Made, ...]
    is_net: bool = False
    """True if each row is there once."""

    def with_rows(self, more: FrameRows) -> FrameRows:
        """Return these rows together with the rows of `more`."""
        return self._with(more.rows, *more.made)

    def without_changes(self, uris: Sequence[str], rows: int) -> FrameRows:
        """Return these rows minus the rows of files of changes, which have at most `rows` rows."""
        return (
            self._with(rows, partial(_read_changes, self.session, uris, -1, WEIGHT))
            if uris
            else self
        )

    def without_rows_in(self, uris: Sequence[str], rows: int) -> FrameRows:
        """Return these rows minus the rows of files of rows, which have at most `rows` rows."""
        return self._with(rows, partial(_read_rows, self.session, uris, -1)) if uris else self

    def with_rows_in(self, uris: Sequence[str], rows: int) -> FrameRows:
        """Return these rows and the rows of files of rows."""
        return self._with(rows, partial(_read_rows, self.session, uris, 1)) if uris else self

    def of_changes(self, uris: Sequence[str], rows: int) -> FrameRows:
        """Return the net changes of files that `write_changes` wrote by bucket, instead of these
        rows."""
        return replace(
            self,
            rows=rows,
            made=(partial(_read_changes, self.session, uris, 1, COUNT),),
            is_net=True,
        )

    def only_changes(self, uris: Sequence[str], rows: int) -> FrameRows:
        """Return the rows of files of changes, instead of these rows, but with their type."""
        read: Made = partial(_read_changes, self.session, uris, 1, WEIGHT)
        return replace(self, rows=rows, made=(read,), is_net=False)

    def _with(self, rows: int, *made: Made) -> FrameRows:
        return replace(self, rows=self.rows + rows, made=(*self.made, *made), is_net=False)

    def write_changes(self, of: Typed, folder: str, buckets: HashedRows | None = None) -> None:
        """Write the net rows, each once with its weight.

        Parameters
        ----------
        of: the type of the rows in files.
        buckets: write folders by these buckets; by default one folder, with the column `weight`.

        Raises
        ------
        OffloadError: the files cannot store a value.
        """
        with refusals():
            if buckets is None:
                found = self._net(self._union(of), _quoted_names(of)).withColumnRenamed(
                    COUNT, WEIGHT
                )
                found.coalesce(self.session.tasks).write.parquet(folder)
            else:
                net = self._net(self._with_buckets(of, buckets), [BUCKET, *_quoted_names(of)])
                net.write.partitionBy(BUCKET).parquet(folder)

    def write_rows(self, of: Typed, folder: str, buckets: HashedRows, whose: str) -> None:
        """Write the net rows, each as many times as its weight, in folders by bucket.

        Parameters
        ----------
        whose: the place of the rows, in words.

        Raises
        ------
        OffloadError: the files cannot store a value, a row has a negative weight, or two rows have
            one key that must be unique.
        """
        net = self._net(self._with_buckets(of, buckets), [BUCKET, *_quoted_names(of)])
        count = _guard_count(F.col(COUNT) >= 0, GONE.format(whose=whose), of)
        if buckets.is_unique:
            same = Window.partitionBy(BUCKET, *(f"`{name}`" for name in buckets.key))
            net = net.withColumn("__same__", F.sum(COUNT).over(same))
            key = ", ".join(buckets.key)
            count = F.when(F.col(COUNT) < 0, count).otherwise(
                _guard_count(F.col("__same__") < 2, DOUBLED.format(key=key), of)
            )
        times = F.explode(F.sequence(F.lit(1).cast("long"), count)).alias("__time__")
        with refusals():
            rows = net.select(BUCKET, *_quoted_names(of), times).drop("__time__")
            rows.write.partitionBy(BUCKET).parquet(folder)

    def _with_buckets(self, of: Typed, buckets: HashedRows) -> DataFrame:
        """Return rows with their bucket; all rows of a bucket are in one task."""
        key = [f"`{name}`" for name in buckets.key] or _quoted_names(of)
        bucket = F.pmod(F.xxhash64(*key), F.lit(buckets.count)).cast("int")
        found = self._union(of).withColumn(BUCKET, bucket)
        return found if self._is_small else found.repartition(self.session.tasks, BUCKET)

    def _net(self, found: DataFrame, by: list[str]) -> DataFrame:
        """Return the rows `found` with their copies added up by the columns `by`, without weights
        of 0; `found` itself if its rows are unique already."""
        if self.is_net and BUCKET not in by:
            return found
        if self._is_small:
            found = found.coalesce(1)
        summed = found.groupBy(*by).agg(F.sum(COUNT).alias(COUNT))
        return summed.filter(F.col(COUNT) != 0)

    @property
    def _is_small(self) -> bool:
        return self.rows <= ONE_TASK

    def _union(self, of: Typed) -> DataFrame:
        """Return all rows as one frame, in columns of the type `of`; starts Spark again if it has
        ended."""
        self.session.restart()
        return reduce(lambda a, b: a.unionByName(b), [made(of) for made in self.made])


def to_file_columns(rows: DataFrame, kept: Typed, of: Typed) -> DataFrame:
    """Return rows with the columns `row` and `weight` in the columns of files.

    The job fails for an integer beyond 64 bits.
    """
    row, weight = Value(F.col("row"), kept), F.col("weight").alias(COUNT)
    if not isinstance(of, Record):
        return rows.select(_check_value(row, of).alias(VALUE), weight)
    fields = [
        _check_value(field_of(row, at), f).alias(n) for at, (n, f) in enumerate(_file_fields(of))
    ]
    return rows.select(*fields, weight)


def _check_value(value: Value, of: Typed) -> Column:
    """Return a value in the type of files, with a check that it fits."""
    if isinstance(value.of, Plain) and value.of.is_wide and isinstance(of, Plain):
        fits = value.column.isNull() | value.column.between(F.lit(LEAST), F.lit(LARGEST))
        text = F.concat(F.lit(REFUSED), value.column.cast("string"), F.lit(BEYOND + END))
        return F.when(fits, value.column.cast("long")).otherwise(F.raise_error(text).cast("long"))
    if isinstance(value.of, Record) and isinstance(of, Record):
        both = enumerate(_file_fields(of))
        fields = [_check_value(field_of(value, at), f).alias(n) for at, (n, f) in both]
        return F.when(value.column.isNotNull(), F.struct(*fields))
    if isinstance(value.of, Whole) and isinstance(of, Whole) and of.of is not None:
        inside = of.of
        return map_values(value, lambda v: _check_value(v, inside)).cast(spark_type(of))
    return as_type(value, of)


def _read_changes(
    session: Session, uris: Sequence[str], sign: int, weight: str, of: Typed
) -> DataFrame:
    """Read files of changes, with their weights or the negated weights."""
    schema = T.StructType([*_file_fields_of_spark(of), T.StructField(weight, T.LongType())])
    found: DataFrame = with_literal_paths(session.spark.read).schema(schema).parquet(*uris)
    return found.select(*_quoted_names(of), (F.lit(sign) * F.col(weight)).cast("long").alias(COUNT))


def _read_rows(session: Session, uris: Sequence[str], weight: int, of: Typed) -> DataFrame:
    """Read files of rows, with a weight."""
    found: DataFrame = (
        with_literal_paths(session.spark.read)
        .schema(T.StructType(_file_fields_of_spark(of)))
        .parquet(*uris)
    )
    return found.withColumn(COUNT, F.lit(weight).cast("long"))


def _guard_count(holds: Column, message: str, of: Typed) -> Column:
    """Return the count of a row; the job fails where a condition does not hold."""
    row = F.substring(F.to_json(F.struct(*_quoted_names(of))), 1, LONGEST)
    before, _, after = message.partition("{}")
    text = F.concat(F.lit(REFUSED + before), row, F.lit(after + END))
    return F.when(holds, F.col(COUNT)).otherwise(F.raise_error(text).cast("long"))


def _file_fields_of_spark(of: Typed) -> list[T.StructField]:
    return [T.StructField(name, spark_type(f)) for name, f in _file_fields(of)]


def _file_fields(of: Typed) -> list[tuple[str, Typed]]:
    """Return the columns in files."""
    if isinstance(of, Record):
        return list(zip(of.names, of.fields, strict=True))
    return [(VALUE, of)]


def _quoted_names(of: Typed) -> list[str]:
    return [f"`{name}`" for name, _ in _file_fields(of)]


@contextmanager
def refusals() -> Iterator[None]:
    """Turn a row refused by a job in this context, or the end of Spark, into an `OffloadError`."""
    try:
        yield
    except Py4JNetworkError as error:
        raise OffloadError(GONE_MEANWHILE) from error
    except Exception as error:
        _, found, after = str(error).partition(REFUSED)
        if not found:
            raise
        raise OffloadError(after.partition(END)[0]) from error


BATCH_HEADER, WEIGHT_HEADER = "batch", "weight"
FORMAT = "kafka"
UNIQUE = "\n  give a key that no two rows of the view agree on, or none"
NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


class KafkaTopic:
    """A topic, for `View.changes_to`.

    Each message has the headers `batch`, the number of its batch, and `weight`: the number of
    inserted copies, or negative for deleted ones; both are text.

    Parameters
    ----------
    servers: `"host:port"`, several separated by commas.
    topic: its name.
    key: fields that are unique among the rows of the view. The key of a message is a JSON object of
        them, and the value the current row, or null if there is none. By default messages have no
        key, and there is one for each changed row.
    options: further options of the format, such as `{"kafka.security.protocol": "SSL"}`.
    """

    takes_frames = True

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        key: str | Sequence[str] = (),
        options: Mapping[str, str] = NO_OPTIONS,
    ) -> None:
        self._key = (key,) if isinstance(key, str) else tuple(key)
        self._options = {
            **options,
            "kafka.bootstrap.servers": servers,
            "topic": topic,
            "includeHeaders": "true",
        }
        self._topic = topic
        self.__qualname__ = f"topic {topic}"

    def messages(self, frame: DataFrame, number: int) -> DataFrame:
        """Return the messages of a batch: a DataFrame of `key`, `value` and `headers`.

        With a key there is one message per key, else one per row; deletions are first.

        Parameters
        ----------
        frame: the changes: the rows' columns, and `weight`.
        number: the number of the batch.

        Raises
        ------
        OffloadError: a field of the key is not among the columns.
        """
        names = [name for name in frame.columns if name != WEIGHT]
        missing = [name for name in self._key if name not in names]
        if missing:
            raise OffloadError(f"key {missing[0]!r} is none of the columns {', '.join(names)}")
        key = _json_object(self._key) if self._key else F.lit(None).cast("string")
        made = frame.select(key.alias("key"), _json_object(names).alias("value"), WEIGHT)
        if self._key:
            made = _last_by_key(made)
        headers = [(BATCH_HEADER, F.lit(str(number))), (WEIGHT_HEADER, F.col(WEIGHT))]
        pairs = [
            F.struct(F.lit(n).alias("key"), c.cast("string").cast("binary").alias("value"))
            for n, c in headers
        ]
        return made.orderBy(WEIGHT).select("key", "value", F.array(*pairs).alias("headers"))

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Write the messages of a batch.

        Raises
        ------
        OffloadError: the session does not have the format, or two rows have one key.
        """
        writer = self.messages(frame, number).write.format(FORMAT).options(**self._options)
        try:
            with refusals():
                writer.mode("append").save()
        except Exception as error:
            if "Failed to find data source: kafka" not in str(error):
                raise
            raise OffloadError(
                f"topic {self._topic!r} cannot be written: this Spark does not know Kafka\n"
                "  SparkOffload(config={'spark.jars.packages': "
                "'org.apache.spark:spark-sql-kafka-0-10_2.13:<version of Spark>'})"
            ) from error


def _json_object(names: Sequence[str]) -> Column:
    """Return columns as a JSON object."""
    return F.to_json(F.struct(*(f"`{name}`" for name in names)), {"ignoreNullFields": "false"})


def _last_by_key(made: DataFrame) -> DataFrame:
    """Return the current row of each key, with a weight of 1; or no value, and a weight of -1."""
    comes = F.col(WEIGHT) > 0
    now = F.max(F.when(comes, F.col("value")))
    count = F.sum(F.when(comes, F.col(WEIGHT)))
    found = made.groupBy("key").agg(now.alias("value"), count.alias("count"))
    text = F.concat(F.lit(f"{REFUSED}two rows have the key "), F.col("key"), F.lit(UNIQUE + END))
    checked = F.when(F.col("count") > 1, F.raise_error(text).cast("int")).otherwise(1)
    weight = F.when(F.col("value").isNull(), -1).otherwise(checked)
    return found.select("key", "value", weight.alias(WEIGHT))
